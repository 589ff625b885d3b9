"""Places: where a message stands in its timeline, so that one that comes in late moves its neighbours alone. Pure. A
place is the key of the block that a message stands in, which the order key of its first message gives, and the rank
within it: places sort as the timeline does. Times are in microseconds since 1970."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, NamedTuple

# Time, source and index of an order key, and four bytes that are zero.
_SLOT: Final = struct.Struct(">Q16sQI")
_RANK: Final = struct.Struct(">I")
KEY_BYTES: Final = _SLOT.size
PLACE_BYTES: Final = KEY_BYTES + _RANK.size
_HALF: Final = 1 << 63
# Sorts behind every place.
BEYOND: Final = b"\xff" * PLACE_BYTES


class BlockSize(NamedTuple):
    """A block: its key, and how many messages it holds."""

    key: bytes
    size: int


def name_slot(instant: int, source: bytes, line: int) -> bytes:
    """The place of a message of this order key where it begins a block; it sorts as its timeline does."""
    return _SLOT.pack(instant + _HALF, source[:16], line + _HALF, 0) + _RANK.pack(0)


def slot_of(at: datetime, source: bytes, index: int) -> bytes:
    """The border of a block that would begin with a message of this order key."""
    return name_slot(count_microseconds(at), source, index)[:KEY_BYTES]


def make_place(border: bytes, rank: int) -> bytes:
    """The place of the message of a rank, counted from zero, in the block that begins at a border."""
    return border + _RANK.pack(rank)


class Places:
    """The blocks of a timeline as they are asked: positions count its messages from zero."""

    def __init__(self, blocks: Sequence[BlockSize] = ()) -> None:
        self.blocks = blocks
        self._keys = [block.key for block in blocks]
        self._starts = [0, *accumulate(block.size for block in blocks)]
        self.count = self._starts[-1]

    def find_position(self, place: bytes | memoryview | None) -> int:
        """The position of a place; -1 of a message that is not placed."""
        if place is None:
            return -1
        said = bytes(place)
        at = bisect_right(self._keys, said[:KEY_BYTES]) - 1
        return (self._starts[at] if at >= 0 else 0) + int(_RANK.unpack(said[KEY_BYTES:])[0])

    def find_place(self, position: int) -> bytes:
        """The place of a position; beyond the end one behind every place."""
        if not 0 <= position < self.count:
            return b"" if position < 0 else BEYOND
        at = bisect_right(self._starts, position) - 1
        return self._keys[at] + _RANK.pack(position - self._starts[at])


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def count_microseconds(at: datetime) -> int:
    """The microseconds from 1970 to a time."""
    return (at - _EPOCH) // _MICROSECOND


def read_instant(microseconds: int) -> datetime:
    """The time that so many microseconds after 1970 is."""
    return _EPOCH + timedelta(microseconds=microseconds)
