"""The blocks of a stored tree that are opened to change it: what stands where in them, and what is put in. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from .blocks import (
    DEPTH_BYTES,
    LEAST_LINES,
    LINE_BYTES,
    MOST_LINES,
    Block,
    Entry,
    StoredLine,
    read_depths,
    read_ids,
    read_lines,
    seal_block,
    write_depths,
    write_lines,
)
from .outline import Kind, Line


class Packed(NamedTuple):
    """The lines of a block and their depths, as they are stored."""

    depths: bytes
    lines: bytes


class Bounds(NamedTuple):
    """How many lines a block has at least, where there are as many, and at most."""

    least: int
    most: int


BOUNDS: Final = Bounds(LEAST_LINES, MOST_LINES)
# Where a line stands: the number of its block, and its place in it.
Where = tuple[int, int]


class OpenedBlocks:
    """A tree of which some blocks are open; places count its lines from zero, as they stood before any change."""

    def __init__(self, entries: Sequence[Entry], sought: Collection[bytes]) -> None:
        """Open no block yet.

        Args:
            entries: the directory.
            sought: the ids of lines of which it is to be noted where they stand.
        """
        self.entries = entries
        self._starts = [0, *accumulate(entry.size for entry in entries)]
        self._least = [entry.least_depth for entry in entries]
        self._sought = sought
        self._packed: dict[int, Packed] = {}
        self._depths: dict[int, array[int]] = {}
        self._found: dict[tuple[bytes, Kind], Where] = {}
        self._changed: dict[int, dict[int, bytes]] = defaultdict(dict)
        self._added: dict[int, list[tuple[int, Packed]]] = defaultdict(list)

    @property
    def count(self) -> int:
        """How many lines the tree had before."""
        return self._starts[-1]

    def open(self, blocks: Mapping[int, Packed]) -> None:
        """Take in what these blocks hold, by their numbers."""
        for number, packed in blocks.items():
            self._packed[number], self._depths[number] = packed, read_depths(packed.depths)
            for within, name in enumerate(read_ids(packed.lines)):
                if name in self._sought:
                    self._found[name, self._read_line(number, within).kind] = number, within

    def number_of(self, place: int) -> int:
        """The number of the block that holds this place of the tree; of the first one where there is none."""
        return max(0, bisect_right(self._starts, place) - 1)

    def list_closed(self, deepest: int | None = None) -> list[int]:
        """The numbers of the blocks that are not open; of those alone that have a line no deeper than this."""
        return [
            number
            for number, least in enumerate(self._least)
            if number not in self._packed and (deepest is None or least <= deepest)
        ]

    def find(self, name: bytes, kind: Kind) -> Where | None:
        """Where the line of this id stands, if one of the open blocks holds it."""
        return self._found.get((name, kind))

    def is_message(self, place: int, name: bytes) -> bool:
        """Whether the message of this id stands at this place, of which the block is open."""
        if not 0 <= place < self.count:
            return False
        number = self.number_of(place)
        line = self._read_line(number, place - self._starts[number])
        return line.kind is Kind.MESSAGE and line.id == name

    def read(self, where: Where) -> tuple[int, StoredLine]:
        """The depth of a line, and the line."""
        number, within = where
        return self._depths[number][within], self._read_line(number, within)

    def _read_line(self, number: int, within: int) -> StoredLine:
        start = within * LINE_BYTES
        return read_lines(self._packed[number].lines[start : start + LINE_BYTES])[0]

    def find_end(self, where: Where, depth: int) -> tuple[int, int]:
        """The place behind everything below a line, and the number of a block to put more there: it may be closed.

        While that block is closed the place is a guess: its first line.
        """
        number, within = where
        shallow = self._find_shallow(number, within + 1, depth)
        if shallow is not None:
            return self._starts[number] + shallow, number
        following = next((other for other in range(number + 1, len(self._least)) if self._least[other] <= depth), None)
        if following is None:
            return self.count, len(self.entries) - 1
        if self.entries[following].first_depth <= depth:
            return self._starts[following], following - 1 if following - 1 in self._packed else following
        found = self._find_shallow(following, 0, depth) if following in self._packed else None
        return self._starts[following] + (found or 0), following

    def is_open(self, number: int) -> bool:
        """Whether this block is open."""
        return number in self._packed

    def _find_shallow(self, number: int, start: int, depth: int) -> int | None:
        depths = self._depths[number]
        return next((at for at in range(start, len(depths)) if depths[at] <= depth), None)

    def change(self, where: Where, line: StoredLine) -> None:
        """Put this line where another one stands."""
        self._changed[where[0]][where[1]] = write_lines([line])

    def add(self, place: int, lines: Sequence[Line]) -> None:
        """Put lines before that of this place; what is added there later stands behind them."""
        number = self.number_of(place)
        # At a border the block before it takes them, if it is open.
        if number > 0 and place == self._starts[number] and number - 1 in self._packed:
            number -= 1
        packed = Packed(write_depths([line.depth for line in lines]), write_lines(lines))
        self._added[number].append((place - self._starts[number], packed))

    def cut(self, bounds: Bounds = BOUNDS) -> Iterator[tuple[Entry, Block | None]]:
        """The directory as it is now, each entry with its block where that is another one than before."""
        touched = self._changed.keys() | self._added.keys()
        for number, entry in enumerate(self.entries):
            if number in touched:
                yield from ((block.entry, block) for block in cut_packed(self._write(number), bounds))
            else:
                yield entry, None
        if not self.entries and self._added:
            self._packed[0] = Packed(b"", b"")
            yield from ((block.entry, block) for block in cut_packed(self._write(0), bounds))

    def _write(self, number: int) -> Packed:
        depths, lines = self._packed[number]
        text = bytearray(lines)
        for within, line in self._changed[number].items():
            text[within * LINE_BYTES : (within + 1) * LINE_BYTES] = line
        pieces: list[Packed] = []
        low = 0
        for high, new in sorted(self._added[number], key=lambda each: each[0]):
            pieces += (slice_packed(depths, text, low, high), new)
            low = high
        pieces.append(slice_packed(depths, text, low, len(depths) // DEPTH_BYTES))
        return Packed(b"".join(piece.depths for piece in pieces), b"".join(piece.lines for piece in pieces))


def slice_packed(depths: bytes, lines: bytes | bytearray, low: int, high: int) -> Packed:
    """The lines of a block from one place up to another."""
    return Packed(depths[low * DEPTH_BYTES : high * DEPTH_BYTES], bytes(lines[low * LINE_BYTES : high * LINE_BYTES]))


def cut_packed(packed: Packed, bounds: Bounds) -> Iterator[Block]:
    """The blocks of these lines, of about the same size: one where that is not too large."""
    size = len(packed.depths) // DEPTH_BYTES
    count = 1 if size <= bounds.most else -(-size // ((bounds.least + bounds.most) // 2))
    borders = [size * number // count for number in range(count + 1)]
    for low, high in pairwise(borders):
        yield seal_block(*slice_packed(packed.depths, packed.lines, low, high))
