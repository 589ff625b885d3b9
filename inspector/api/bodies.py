"""Request bodies as streams of plain bytes: chunked or sized, gzip or zstd, never whole in memory."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from django.conf import settings
from django.http import HttpRequest

from inspector.intake.containers import READ_BYTES, ContainerError, unfold

from .problems import ProblemError

# How long a sender may be silent in the middle of a body.
SILENCE_SECONDS: Final = 30


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
    elif encoding in ("gzip", "zstd"):
        try:
            yield from unfold(encoding, raw, most_bytes=settings.LIMITS["delivery_bytes"])
        except ContainerError as error:
            raise BrokenBodyError(f"the body cannot be unfolded: {error}") from error
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
