"""Containers around a log, gzip and zstd: bytes in, bytes out, within limits and never whole in memory.

The first bytes decide what a container is, and never a name. A container within a container is not opened: that is
how a small file hides a large one. What a container gave before it failed stands.
"""

from __future__ import annotations

import hashlib
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import zstandard

READ_BYTES: Final = 128 * 1024
HEAD_BYTES: Final = 4
MOST_RATIO: Final = 200
FREE_BYTES: Final = 16 * 1024 * 1024
ZIP: Final = "zip"

_MAGIC: Final = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    # A zstd file may begin with a frame that is to be skipped, of any of sixteen kinds.
    **{bytes([kind]) + b"\x2a\x4d\x18": "zstd" for kind in range(0x50, 0x60)},
    b"PK\x03\x04": ZIP,
    b"PK\x05\x06": ZIP,
}
# One call unfolds all it is given; this much gives at most some megabytes.
_ZSTD_BITE_BYTES: Final = 256
_ZSTD_WINDOW_BYTES: Final = 2**27


class ContainerError(Exception):
    """A container is damaged, cut short, nested, or unfolds beyond the limits."""


class BeyondLimitsError(ContainerError):
    """A container unfolds to more than the limits allow; it need not be damaged."""


class Arrival:
    """Pieces on their way in, counted and digested as they pass."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self._digest.update(piece)
        self.size_bytes += len(piece)
        return piece

    @property
    def sha256(self) -> bytes:
        """The digest of what has passed."""
        return self._digest.digest()

    def drain(self) -> None:
        """Let the rest pass, for a digest of the whole."""
        for _ in self:
            continue


def name_container(head: bytes) -> str | None:
    """What begins with these bytes (at least `HEAD_BYTES` where there are so many): gzip, zstd, zip, or None."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def peek(pieces: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes of a stream, and the stream with them."""
    rest = iter(pieces)
    head = b""
    for piece in rest:
        head += piece
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES], itertools.chain([head] if head else [], rest)


def unfold(kind: str, pieces: Iterable[bytes], *, most_bytes: int) -> Iterator[bytes]:
    """What a gzip or zstd stream holds, in pieces of bounded size.

    Args:
        kind: `gzip` or `zstd`.
        pieces: the stream; several members or frames one after the other are one.
        most_bytes: how much it may unfold to at all.

    Raises:
        ContainerError: at the place where it cannot go on; what was yielded before stands.
    """
    plain = _bound(kind, _UNFOLD[kind](iter(pieces)), most_bytes)
    head, plain = peek(plain)
    inner = name_container(head)
    if inner:
        raise ContainerError(f"the {kind} holds a {inner}: a container within a container is not opened")
    yield from plain


def skip_bytes(pieces: Iterable[bytes], count: int) -> Iterator[bytes]:
    """The stream behind its first `count` bytes."""
    for piece in pieces:
        if count < len(piece):
            yield piece[count:] if count else piece
        count = max(0, count - len(piece))


def is_beyond(unfolded_bytes: int, packed_bytes: int, *, most_bytes: int) -> bool:
    """Whether so much out of so little is a bomb: past 16 MiB, more than 200 bytes of one; or too much at all."""
    if unfolded_bytes > most_bytes:
        return True
    return unfolded_bytes > FREE_BYTES and unfolded_bytes > packed_bytes * MOST_RATIO


def _bound(kind: str, pieces: Iterator[tuple[bytes, int]], most_bytes: int) -> Iterator[bytes]:
    total = 0
    for piece, taken in pieces:
        total += len(piece)
        if is_beyond(total, taken, most_bytes=most_bytes):
            raise BeyondLimitsError(
                f"the {kind} unfolds beyond the limits: at most {most_bytes:,} bytes, "
                f"and past {FREE_BYTES:,} at most {MOST_RATIO} of one"
            )
        if piece:
            yield piece


def _inflate(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    member, taken, is_later = None, 0, False
    for piece in pieces:
        taken += len(piece)
        data = piece
        while data:
            if member is None:
                # Zeros may pad the end of a gzip file.
                data = data.lstrip(b"\0") if is_later else data
                if not data:
                    break
                member = zlib.decompressobj(wbits=31)
            try:
                plain = member.decompress(data, READ_BYTES)
            except zlib.error as error:
                where = "is damaged, or followed by bytes that are no gzip" if is_later else "is damaged"
                raise ContainerError(f"the gzip {where}: {error}") from error
            yield plain, taken
            data = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member, is_later = None, True
    if member is not None:
        # What zlib still holds comes out without more input.
        while plain := member.decompress(b"", READ_BYTES):
            yield plain, taken
        raise ContainerError("the gzip is cut short")


def _unfold_zstd(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, int]]:
    frame, taken = None, 0
    for piece in pieces:
        for start in range(0, len(piece), _ZSTD_BITE_BYTES):
            data = piece[start : start + _ZSTD_BITE_BYTES]
            taken += len(data)
            while data:
                if frame is None:
                    frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).decompressobj()
                try:
                    plain = frame.decompress(data)
                except zstandard.ZstdError as error:
                    raise ContainerError(f"the zstd is damaged: {error}") from error
                yield plain, taken
                data = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = None
    if frame is not None:
        raise ContainerError("the zstd is cut short")


_UNFOLD: Final[dict[str, Callable[[Iterator[bytes]], Iterator[tuple[bytes, int]]]]] = {
    "gzip": _inflate,
    "zstd": _unfold_zstd,
}
