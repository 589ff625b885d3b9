"""Places: where a message stands in its timeline, said so that one that comes in late moves its neighbours alone. Pure.

A timeline is cut into blocks of about 128 messages. Where a block begins is decided by the order keys themselves, so
that a late message changes the block that it comes into and no other. A place is the key of its block, which the order
key of the block's first slot gives, and the rank within it: places sort as the timeline does. The directory says how
many messages each block holds, and so turns places into numbers and back.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple

# Of so many messages one begins a block, on average; where none does for long, one has to.
_SPACING: Final = 128
_MOST: Final = 512

# Time, source and index of an order key, and a count of those before it that have the same.
_SLOT: Final = struct.Struct(">Q16sQI")
_RANK: Final = struct.Struct(">I")
_ENTRY: Final = struct.Struct(f">{_SLOT.size}sI")
KEY_BYTES: Final = _SLOT.size
PLACE_BYTES: Final = KEY_BYTES + _RANK.size
_HALF: Final = 1 << 63
# Sorts behind every place.
BEYOND: Final = b"\xff" * PLACE_BYTES


class Slot(NamedTuple):
    """An order key as places need it: microseconds since 1970, source, line, and the mark that it gives."""

    instant: int
    source: bytes
    line: int
    mark: int


class BlockSize(NamedTuple):
    """A block of the directory: its key, and how many messages it holds."""

    key: bytes
    size: int


def cut_places(slots: Iterable[Slot], *, after: Sequence[BlockSize] = ()) -> tuple[list[bytes], list[BlockSize]]:
    """The places of these slots in order, and the directory of their timeline.

    Args:
        slots: those of the timeline, or those that come after what it holds already, each of a later order key.
        after: the directory of what it holds already.
    """
    places: list[bytes] = []
    directory = list(after)
    key, size = directory.pop() if directory else (b"", 0)
    before: tuple[int, bytes, int] | None = None
    same = 0
    for instant, source, line, mark in slots:
        # Records of one order key, and the parts of a record, are counted: no two slots are one.
        same = same + 1 if before == (instant, source, line) else 0
        before = (instant, source, line)
        if not size or mark % _SPACING == 0 or size == _MOST:
            if size:
                directory.append(BlockSize(key, size))
            key, size = _SLOT.pack(instant + _HALF, source[:16], line + _HALF, same), 0
        places.append(key + _RANK.pack(size))
        size += 1
    if size:
        directory.append(BlockSize(key, size))
    return places, directory


def write_sizes(blocks: Iterable[BlockSize]) -> bytes:
    """The directory as bytes."""
    return b"".join([_ENTRY.pack(*block) for block in blocks])


def read_sizes(data: bytes | memoryview) -> list[BlockSize]:
    """The directory that `write_sizes` wrote."""
    return [BlockSize(*said) for said in _ENTRY.iter_unpack(data)]


def name_slot(instant: int, source: bytes, line: int) -> bytes:
    """The place of a message of this order key where it begins a block; it sorts as its timeline does."""
    return _SLOT.pack(instant + _HALF, source[:16], line + _HALF, 0) + _RANK.pack(0)


def begins_block(mark: int) -> bool:
    """Whether a message of this mark begins a block, whatever comes before it."""
    return mark % _SPACING == 0


def read_instant_of(place: bytes) -> int:
    """The time of the order key that begins the block of a place, in microseconds since 1970."""
    return int(_SLOT.unpack(place[:KEY_BYTES])[0]) - _HALF


def follow_place(place: bytes) -> bytes:
    """What is greater than a place, and not greater than any that comes after it."""
    return place[:KEY_BYTES] + _RANK.pack(_RANK.unpack(place[KEY_BYTES:])[0] + 1)


@dataclass(frozen=True, slots=True)
class Places:
    """The directory of a timeline as it is asked: positions count its messages from zero."""

    blocks: Sequence[BlockSize] = ()
    _keys: list[bytes] = field(init=False)
    _starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keys", [block.key for block in self.blocks])
        object.__setattr__(self, "_starts", [0, *accumulate(block.size for block in self.blocks)])

    @property
    def count(self) -> int:
        """How many messages it holds."""
        return self._starts[-1]

    def cut(self, count: int) -> Places:
        """The directory as it was when it held no more than the first so many of its messages."""
        at = bisect_right(self._starts, count) - 1
        blocks = list(self.blocks[:at])
        if at < len(self.blocks) and count > self._starts[at]:
            blocks.append(BlockSize(self._keys[at], count - self._starts[at]))
        return Places(blocks)

    def list_from(self, count: int) -> list[BlockSize]:
        """The blocks that come after so many messages, where one ends there."""
        return list(self.blocks[bisect_right(self._starts, count) - 1 :])

    @property
    def border(self) -> bytes:
        """What is greater than every place in it, and not greater than any that comes after."""
        return self._keys[-1] + _RANK.pack(self.blocks[-1].size) if self.blocks else b""

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
