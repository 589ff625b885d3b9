"""Request bodies as streams of plain bytes: chunked or sized, gzip or zstd, never whole in memory."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import zstandard
from django.conf import settings
from django.http import HttpRequest

from .problems import ProblemError

READ_BYTES: Final = 128 * 1024
# How long a sender may be silent in the middle of a body.
SILENCE_SECONDS: Final = 30
_MOST_RATIO: Final = 200
_FREE_BYTES: Final = 16 * 1024 * 1024


class BrokenBodyError(Exception):
    """The body ended before it was complete, or its compression is damaged; `status` is what to answer."""

    def __init__(self, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


def read_body(request: HttpRequest) -> Iterator[bytes]:
    """The body's bytes in pieces, decompressed as Content-Encoding says.

    Under WSGI a chunked body has no length: it is read to its end where the server says that the input terminates
    (`wsgi.input_terminated`). Plain Django would see an empty body and accept nothing with a 202.

    Raises:
        ProblemError: 413 over the limit, 415 for an unknown encoding.
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
    left = int(length) if length.isascii() and length.isdigit() else None
    if left is None and not request.META.get("wsgi.input_terminated"):
        return
    if left is not None and left > settings.LIMITS["delivery_bytes"]:
        raise ProblemError(413, f"a delivery has at most {settings.LIMITS['delivery_bytes']} bytes")
    read = request.META["wsgi.input"].read if left is None else request.read
    with _patience(request) as give_up:
        while left is None or left:
            try:
                piece = read(READ_BYTES if left is None else min(READ_BYTES, left))
            except Exception as error:
                give_up()
                yield from _drain(read)
                is_silent = isinstance(error.__cause__ or error, TimeoutError)
                reason = f"nothing came for {SILENCE_SECONDS} seconds" if is_silent else f"{error}"
                raise BrokenBodyError(f"the body broke off: {reason}", status=408 if is_silent else 400) from error
            if not piece and left is None:
                return
            if not piece:
                raise BrokenBodyError(f"the body broke off {left} bytes before its declared length")
            yield piece
            left = None if left is None else left - len(piece)


@contextmanager
def _patience(request: HttpRequest) -> Iterator[Callable[[], None]]:
    """Bound how long a sender may be silent, where the server lends us its socket; a thread waits for no one longer.

    Yields:
        what to call when waiting has ended: from then on reading gives what has already arrived, and then the end.
    """
    server_socket = request.META.get("gunicorn.socket")
    if server_socket is None:
        yield lambda: None
        return

    def give_up() -> None:
        with suppress(OSError):  # The other side may have closed it.
            server_socket.shutdown(socket.SHUT_RD)

    before = server_socket.gettimeout()
    server_socket.settimeout(SILENCE_SECONDS)
    try:
        yield give_up
    finally:
        server_socket.settimeout(before)


def _drain(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """What the server had taken from the network when the body broke off, and had not handed on yet."""
    with suppress(Exception):  # The body is broken already; only what is left of it counts.
        while piece := read(READ_BYTES):
            yield piece


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
    unfolder = zstandard.ZstdDecompressor(max_window_size=2**27)
    frame = unfolder.decompressobj()
    taken, is_open = 0, False
    try:
        for piece in pieces:
            # Small bites, for one call unfolds all it is given.
            for start in range(0, len(piece), 1024):
                data = piece[start : start + 1024]
                taken += len(data)
                while data:
                    is_open = True
                    yield frame.decompress(data), taken
                    data = frame.unused_data if frame.eof else b""
                    if frame.eof:
                        frame, is_open = unfolder.decompressobj(), False
    except zstandard.ZstdError as error:
        raise BrokenBodyError(f"the zstd body is damaged: {error}") from error
    if is_open:
        raise BrokenBodyError("the zstd body is cut short")
