"""Request bodies as streams of plain bytes: chunked or sized, gzip or zstd, never whole in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import zstandard
from django.conf import settings
from django.http import HttpRequest

from .problems import ProblemError

READ_BYTES: Final = 128 * 1024
_MOST_RATIO: Final = 200
_FREE_BYTES: Final = 16 * 1024 * 1024


class BrokenBodyError(Exception):
    """The body ended before it was complete, or its compression is damaged."""


def read_body(request: HttpRequest) -> Iterator[bytes]:
    """The body's bytes in pieces, decompressed as Content-Encoding says.

    Under WSGI a chunked body has no length: it is read to its end where the server says that the input terminates
    (`wsgi.input_terminated`). Plain Django would see an empty body and accept nothing with a 202.

    Raises:
        ProblemError: 411 without length or termination, 413 over the limit, 415 for an unknown encoding.
        BrokenBodyError: when the body breaks off; what was yielded before stands.
    """
    raw = _limit(_read_raw(request))
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        yield from raw
    elif encoding == "gzip":
        yield from _bound(_inflate(raw))
    elif encoding == "zstd":
        yield from _bound(_unzstd(raw))
    else:
        raise ProblemError(415, f"Content-Encoding {encoding!r} is not understood: send identity, gzip or zstd")


def _read_raw(request: HttpRequest) -> Iterator[bytes]:
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdigit():
        left = int(length)
        if left > settings.LIMITS["delivery_bytes"]:
            raise ProblemError(413, f"a delivery has at most {settings.LIMITS['delivery_bytes']} bytes")
        while left:
            piece = _read(request, min(READ_BYTES, left))
            if not piece:
                raise BrokenBodyError(f"the body broke off {left} bytes before its declared length")
            left -= len(piece)
            yield piece
        return
    stream = request.META.get("wsgi.input")
    if stream is None or not request.META.get("wsgi.input_terminated"):
        return
    while True:
        try:
            piece = stream.read(READ_BYTES)
        except Exception as error:
            raise BrokenBodyError(f"the chunked body broke off: {error}") from error
        if not piece:
            return
        yield piece


def _read(request: HttpRequest, size: int) -> bytes:
    try:
        return request.read(size)
    except OSError as error:
        raise BrokenBodyError(f"the body broke off: {error}") from error


def _limit(pieces: Iterator[bytes]) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > settings.LIMITS["delivery_bytes"]:
            raise BrokenBodyError(f"a delivery has at most {settings.LIMITS['delivery_bytes']} bytes")
        yield piece


def _bound(pieces: Iterator[tuple[bytes, int]]) -> Iterator[bytes]:
    """Stop a bomb: past 16 MiB no more than 200 bytes come of one, and never more than a delivery may have."""
    total = 0
    for piece, taken in pieces:
        total += len(piece)
        if total > settings.LIMITS["delivery_bytes"] or (total > _FREE_BYTES and total > taken * _MOST_RATIO):
            raise BrokenBodyError("the compressed body unfolds beyond the limits")
        yield piece


def _inflate(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    inflater = zlib.decompressobj(wbits=31)
    taken, is_open = 0, False
    try:
        for piece in pieces:
            taken += len(piece)
            data = piece
            while data:
                is_open = True
                yield inflater.decompress(data, READ_BYTES), taken
                data = inflater.unconsumed_tail
                if inflater.eof:
                    data, is_open = inflater.unused_data, False
                    inflater = zlib.decompressobj(wbits=31)
    except zlib.error as error:
        raise BrokenBodyError(f"the gzip body is damaged: {error}") from error
    if is_open:
        raise BrokenBodyError("the gzip body is cut short")


def _unzstd(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    unfolder = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj(read_across_frames=True)
    taken = 0
    try:
        for piece in pieces:
            # Small bites, for one call unfolds all it is given.
            for start in range(0, len(piece), 1024):
                taken += len(piece[start : start + 1024])
                yield unfolder.decompress(piece[start : start + 1024]), taken
    except zstandard.ZstdError as error:
        raise BrokenBodyError(f"the zstd body is damaged: {error}") from error
