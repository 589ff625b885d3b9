"""Seeking: lines by their ids, and the place of a line among those that hang where it is to hang. Pure.

Those that hang on one line stand by the timeline. So a place among them is searched by halves, and most blocks are
passed over by the times that the directory has of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .grafting import Anchor
from .outline import Kind
from .searched import SearchedTree, Steps, Wish

# So few blocks in which a line may stand are opened without being searched first.
_FEW: Final = 2


class Moment(NamedTuple):
    """Where something stands in the timeline: the time and the id of the message that decides it.

    That is a message itself, of a ghost the first that cites it, of a heading the first top below it. One without an id
    is before all of its time.
    """

    at: int
    id: bytes


def locate(tree: SearchedTree, sought: Mapping[Anchor, int | None]) -> Steps[None]:
    """Open the blocks in which these lines stand, each with the time of its message where that is known."""
    wish = Wish()
    # A time that many lines may have is looked for in the directory once.
    closed = [number for number in range(len(tree.entries)) if not tree.is_open(number)]
    shallow = [number for number in closed if tree.least[number] <= tree.top]
    around: dict[int, list[int]] = {}
    for anchor, at in sought.items():
        if tree.find(anchor) is not None:
            continue
        if at is not None and at not in around:
            entries = tree.entries
            around[at] = [number for number in closed if entries[number].first <= at <= entries[number].last]
        numbers = shallow if anchor[1] is not Kind.MESSAGE else closed if at is None else around[at]
        if len(numbers) <= _FEW:
            wish.numbers.update(numbers)
        else:
            wish.names[anchor[0]] = numbers
    if wish:
        yield wish


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a timeline: by the times in the lines as far as they tell, else by what the messages' facts say.

    `unsteady` are the places of lines that are about to leave theirs, or to be decided by another message: they are
    compared with nothing.
    """

    tree: SearchedTree
    is_by_turn: bool
    unsteady: Container[int]

    def precedes(self, one: Moment, other: Moment) -> Steps[bool]:
        """Whether one stands before the other."""
        if not self.is_by_turn and (one.at != other.at or not other.id):
            return one.at < other.at
        yield from self.tree.learn((one.id, other.id))
        facts = self.tree.facts
        return bool(facts[one.id].order < facts[other.id].order)

    def find_moment(self, place: int) -> Steps[Moment]:
        """Where the line at this place stands in the timeline, with all that hangs on it."""
        line = yield from self.tree.read(place)
        while line.kind is not Kind.MESSAGE:
            place += 1
            line = yield from self.tree.read(place)
        return Moment(line.start, line.id)

    def sort(self, moments: Sequence[Moment]) -> Steps[list[int]]:
        """In which order these stand: their places in the list."""
        if len(moments) < 2:
            return list(range(len(moments)))
        times = Counter(moment.at for moment in moments)
        alike = [moment.id for moment in moments if self.is_by_turn or times[moment.at] > 1]
        yield from self.tree.learn(alike)
        facts = self.tree.facts
        ranks = {name: rank for rank, name in enumerate(sorted(alike, key=lambda name: facts[name].order))}

        def key_of(at: int) -> tuple[int, int]:
            moment = moments[at]
            return (0 if self.is_by_turn else moment.at, ranks.get(moment.id, 0))

        return sorted(range(len(moments)), key=key_of)

    def find_slot(self, above: int, moment: Moment) -> Steps[int]:
        """The place for something that is to hang on the line at a place (-1: on none), which is in an open block.

        It is that behind everything that hangs on the last one before it, or right behind the line itself.
        """
        last = yield from self.find_last(above, moment)
        return above + 1 if last is None else (yield from self.tree.find_end(last))

    def find_last(self, above: int, moment: Moment) -> Steps[int | None]:
        """Of what hangs on the line at a place (-1: on none), the last that stands before a moment."""
        tree = self.tree
        end = yield from tree.find_end(above)
        if end == above + 1:
            return None
        numbers = self._list_numbers(above, end)
        low, high = 0, len(numbers)
        while low < high:
            middle = (low + high) // 2
            entry = tree.entries[numbers[middle]]
            if not self.is_by_turn and entry.first > moment.at:
                high = middle
                continue
            if not self.is_by_turn and entry.last < moment.at:
                low = middle + 1
                continue
            yield from tree.reach([numbers[middle]])
            first = next(self._list_steady(numbers[middle], above, end), None)
            if first is None:
                del numbers[middle]
                high -= 1
            elif (yield from self._stands_before(first, moment)):
                low = middle + 1
            else:
                high = middle
        for number in reversed(numbers[:low]):
            last = yield from self._find_last_in(number, above, end, moment)
            if last is not None:
                return last
        return None

    def _list_numbers(self, above: int, end: int) -> list[int]:
        """The blocks between two places in which something begins that hangs on the first."""
        tree = self.tree
        depth, first, last = tree.depth(above) + 1, tree.number_of(above + 1), tree.number_of(end - 1)
        return [first, *(number for number in range(first + 1, last + 1) if tree.least[number] <= depth)]

    def _list_steady(self, number: int, above: int, end: int) -> Iterator[int]:
        tree = self.tree
        places = tree.list_shallow(number, above + 1, end, tree.depth(above) + 1)
        return (place for place in places if place not in self.unsteady)

    def _find_last_in(self, number: int, above: int, end: int, moment: Moment) -> Steps[int | None]:
        """Of what begins in a block and hangs on a line, the last that stands before a moment."""
        yield from self.tree.reach([number])
        steady = list(self._list_steady(number, above, end))
        low, high = 0, len(steady)
        while low < high:
            middle = (low + high) // 2
            if (yield from self._stands_before(steady[middle], moment)):
                low = middle + 1
            else:
                high = middle
        return steady[low - 1] if low else None

    def _stands_before(self, place: int, moment: Moment) -> Steps[bool]:
        line = self.tree.line(place)
        # A ghost has the time of its first message.
        if line.kind is not Kind.CONVERSATION and line.start != moment.at and not self.is_by_turn:
            return line.start < moment.at
        found = yield from self.find_moment(place)
        return (yield from self.precedes(found, moment))
