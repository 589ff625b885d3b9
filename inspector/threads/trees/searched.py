"""A stored tree that is searched: its blocks are opened, and facts of its messages learned, as they are needed. Pure.

Whatever searches is a generator that yields what it needs and goes on once that is there. Many of them go forward
together, so that all of them, in all the trees that are changed at once, ask in the same few statements.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Generator, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeVar

from .blocks import LINE_BYTES, Entry, StoredLine, find_line, read_depths, read_ids, read_lines
from .grafting import Anchor, GraftError
from .opened import Packed
from .outline import Kind

# Of so few ids each is looked for in a block; of more the ids of the block are gone through.
_FEW_NAMES: Final = 8

Got = TypeVar("Got")


class Fact(NamedTuple):
    """What the lines do not say of a message.

    `order` says where it stands in the timeline: those of one tree compare. `at` is its time in microseconds since
    1970, `group` its conversation. `is_answer` says that it answers one of the same conversation or trace.
    """

    order: Any
    at: int
    performative: str | None
    group: bytes
    is_answer: bool


@dataclass(slots=True)
class Wish:
    """What is needed: blocks by their numbers, of ids the block that holds each among some, and facts of messages."""

    numbers: set[int] = field(default_factory=set)
    names: dict[bytes, Sequence[int]] = field(default_factory=dict)
    facts: set[bytes] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names or self.facts)


class Found(NamedTuple):
    """What was wished for: blocks by their numbers, those that hold an id among them, and facts by ids."""

    blocks: Mapping[int, Packed]
    facts: Mapping[bytes, Fact]


Steps = Generator[Wish, None, Got]


def together(steps: Iterable[Steps[Got]]) -> Steps[list[Got]]:
    """Take all of these forward at once, and return what each returned."""
    running = dict(enumerate(steps))
    ended: dict[int, Got] = {}
    while running:
        wish = Wish()
        for at, step in list(running.items()):
            try:
                wished = next(step)
            except StopIteration as end:
                ended[at] = end.value
                del running[at]
                continue
            wish.numbers |= wished.numbers
            wish.names |= wished.names
            wish.facts |= wished.facts
        if running:
            yield wish
    return [ended[at] for at in sorted(ended)]


class SearchedTree:
    """A tree of which some blocks are open; places count its lines from zero, as they stand before any change."""

    def __init__(self, entries: Sequence[Entry], sought: Set[bytes], top: int) -> None:
        """Open no block yet.

        Args:
            entries: the directory.
            sought: the ids of lines of which it is to be noted where they stand.
            top: the depth of a message that hangs on none.
        """
        self.entries, self.top = entries, top
        self.starts = [0, *accumulate(entry.size for entry in entries)]
        self.least = [entry.least_depth for entry in entries]
        self.facts: dict[bytes, Fact] = {}
        self._sought = sought
        self._packed: dict[int, Packed] = {}
        self._depths: dict[int, array[int]] = {}
        self._found: dict[Anchor, int] = {}

    @property
    def count(self) -> int:
        """How many lines it has."""
        return self.starts[-1]

    @property
    def opened(self) -> int:
        """How many of its blocks are open."""
        return len(self._packed)

    def take(self, wish: Wish, found: Found) -> None:
        """Take in what was found of a wish.

        Raises:
            GraftError: something is not there.
        """
        for number, packed in found.blocks.items():
            self._packed[number], self._depths[number] = packed, read_depths(packed.depths)
            self._note(number)
        self.facts.update(found.facts)
        if not wish.numbers <= self._packed.keys():
            raise GraftError("a block of the tree is missing")
        if not wish.facts <= self.facts.keys():
            raise GraftError("a message of the tree is not there")

    def _note(self, number: int) -> None:
        lines = self._packed[number].lines
        if len(self._sought) > _FEW_NAMES:
            for within, name in enumerate(read_ids(lines)):
                if name in self._sought:
                    place = self.starts[number] + within
                    self._found[name, self.line(place).kind] = place
            return
        for name in self._sought:
            if name in lines:
                for kind in Kind:
                    found = find_line(lines, name, kind)
                    if found is not None:
                        self._found[name, kind] = self.starts[number] + found

    def reach(self, numbers: Iterable[int]) -> Steps[None]:
        """Open these blocks."""
        closed = {number for number in numbers if number not in self._packed}
        if closed:
            yield Wish(numbers=closed)

    def learn(self, names: Iterable[bytes]) -> Steps[None]:
        """Learn the facts of these messages."""
        unknown = {name for name in names if name not in self.facts}
        if unknown:
            yield Wish(facts=unknown)

    def is_open(self, number: int) -> bool:
        """Whether this block is open."""
        return number in self._packed

    def find(self, anchor: Anchor) -> int | None:
        """The place of a line that is sought, if one of the open blocks holds it."""
        return self._found.get(anchor)

    def packed(self, number: int) -> Packed:
        """An open block."""
        return self._packed[number]

    def number_of(self, place: int) -> int:
        """The number of the block that holds this place."""
        return bisect_right(self.starts, place) - 1

    def depth(self, place: int) -> int:
        """The depth of a line in an open block; -1 before the first line."""
        if place < 0:
            return -1
        number = self.number_of(place)
        return self._depths[number][place - self.starts[number]]

    def line(self, place: int) -> StoredLine:
        """A line in an open block."""
        number = self.number_of(place)
        start = (place - self.starts[number]) * LINE_BYTES
        return read_lines(self._packed[number].lines[start : start + LINE_BYTES])[0]

    def read(self, place: int) -> Steps[StoredLine]:
        """A line, wherever it stands."""
        yield from self.reach([self.number_of(place)])
        return self.line(place)

    def list_shallow(self, number: int, low: int, high: int, depth: int) -> list[int]:
        """The places of an open block, of those from one up to another, of which the line is no deeper than this."""
        start, depths = self.starts[number], self._depths[number]
        low, high = max(low - start, 0), min(high - start, len(depths))
        return [start + within for within in range(low, high) if depths[within] <= depth]

    def find_end(self, place: int) -> Steps[int]:
        """The place behind everything below a line of an open block."""
        if place < 0:
            return self.count
        number, depth = self.number_of(place), self.depth(place)
        depths, start = self._depths[number], self.starts[number]
        within = next((at for at in range(place + 1 - start, len(depths)) if depths[at] <= depth), None)
        if within is not None:
            return start + within
        following = next((other for other in range(number + 1, len(self.least)) if self.least[other] <= depth), None)
        if following is None:
            return self.count
        if self.entries[following].first_depth > depth:
            yield from self.reach([following])
            depths = self._depths[following]
            return self.starts[following] + next(at for at in range(len(depths)) if depths[at] <= depth)
        return self.starts[following]

    def find_above(self, place: int, depth: int) -> Steps[int]:
        """The place of the last line before this one that is no deeper than so much, -1 where there is none."""
        if depth < 0:
            return -1
        number = self.number_of(place)
        yield from self.reach([number])
        start, depths = self.starts[number], self._depths[number]
        within = next((at for at in range(place - start - 1, -1, -1) if depths[at] <= depth), None)
        if within is not None:
            return start + within
        earlier = next((other for other in range(number - 1, -1, -1) if self.least[other] <= depth), None)
        if earlier is None:
            return -1
        yield from self.reach([earlier])
        depths = self._depths[earlier]
        return self.starts[earlier] + next(at for at in range(len(depths) - 1, -1, -1) if depths[at] <= depth)
