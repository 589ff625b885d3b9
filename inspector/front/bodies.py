"""The body of a request as it comes in: in chunks or by its length, at a least rate, and kept until it is whole."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from .heads import MAX_BYTES, Head

Got = TypeVar("Got")
PIECE_BYTES: Final = 64 * 1024
_MAX_TRAILERS: Final = 100


class BrokenError(Exception):
    """The body ended before it was whole."""


class SlowError(BrokenError):
    """The body came too slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How slow a sender may be: how long it may be silent, its least bytes a second after a grace, and the longest."""

    silence_s: float = 30.0
    grace_s: float = 30.0
    bytes_per_s: float = 5.0
    total_s: float = 3600.0


@dataclass(slots=True)
class Clock:
    """Holds one sender to its pace."""

    pace: Pace
    received: int = 0
    started: float = field(default_factory=time.monotonic)

    async def wait(self, coming: Awaitable[Got]) -> Got:
        """What comes, if it comes in time.

        Raises:
            SlowError: if not.
        """
        now, pace = time.monotonic(), self.pace
        earned = self.started + pace.grace_s + self.received / pace.bytes_per_s
        until = min(now + pace.silence_s, earned, self.started + pace.total_s)
        try:
            async with asyncio.timeout(max(0.0, until - now)):
                return await coming
        except TimeoutError:
            raise SlowError from None


async def read_pieces(head: Head, reader: asyncio.StreamReader, pace: Pace) -> AsyncIterator[bytes]:
    """The body without its chunks' frames.

    Raises:
        BrokenError: from the iterator; what it yielded before stands.
    """
    clock = Clock(pace)
    if not head.is_chunked:
        async for piece in _read_sized(reader, head.length or 0, clock):
            yield piece
        return
    try:
        while size := _read_size(await clock.wait(reader.readuntil(b"\r\n"))):
            async for piece in _read_sized(reader, size, clock):
                yield piece
            if await clock.wait(reader.readexactly(2)) != b"\r\n":
                raise BrokenError
        for _ in range(_MAX_TRAILERS):
            if await clock.wait(reader.readuntil(b"\r\n")) == b"\r\n":
                return
        raise BrokenError
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise BrokenError from error


async def _read_sized(reader: asyncio.StreamReader, left: int, clock: Clock) -> AsyncIterator[bytes]:
    while left:
        try:
            piece = await clock.wait(reader.read(min(left, PIECE_BYTES)))
        except ConnectionError as error:
            raise BrokenError from error
        if not piece:
            raise BrokenError
        clock.received += len(piece)
        left -= len(piece)
        yield piece


def _read_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not 0 < len(digits) <= 16 or digits.strip(b"0123456789abcdefABCDEF"):
        raise BrokenError
    return int(digits, 16)


class FullError(Exception):
    """What all bodies together may take on the disk is used up."""


@dataclass(slots=True)
class Room:
    """How many bytes all bodies that are coming in may take together."""

    left: int


class Kept:
    """A body that is kept until it is handed on: in memory at first, then in a file that has no name."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._file = tempfile.SpooledTemporaryFile(max_size=MAX_BYTES)  # noqa: SIM115  # `close` closes it
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Keep a piece.

        Raises:
            FullError: where there is no room for it.
        """
        if len(piece) > self._room.left:
            raise FullError
        self._room.left -= len(piece)
        self.size += len(piece)
        self._file.write(piece)

    def read(self) -> Iterator[bytes]:
        """All of it, from its beginning."""
        self._file.seek(0)
        return iter(lambda: self._file.read(PIECE_BYTES), b"")

    def close(self) -> None:
        """Give its room back."""
        self._file.close()
        self._room.left += self.size
        self.size = 0
