"""Windows: a stretch of a stored tree, folded as the reader wants it, in a few statements whatever its size.

A row is open or closed by its depth (`level`), and the other way round where its place is among `toggled`. A closed row
is followed by the first row that is no deeper: the directory tells in which block that stands, so that a million rows
are passed over without being read. Places count the lines of the whole tree from zero, folded or not.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..models import Conversation, Outline, Trace
from .block_store import BlockStore, ExhaustedError
from .blocks import StoredLine, read_directory

MOST_TOGGLED = 50
_ALL_OPEN = 1 << 40


@dataclass(frozen=True, slots=True)
class WindowRow:
    """A row of a window: its place, its line, whether there is anything below it, and how much of that is hidden."""

    place: int
    depth: int
    line: StoredLine
    is_parent: bool
    is_open: bool
    hidden: int
    is_critical: bool


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a folded tree; `next` and `previous` are places of other windows, None at the ends."""

    rows: Sequence[WindowRow]
    count: int
    next: int | None
    previous: int | None


@dataclass(frozen=True, slots=True)
class Fold:
    """How a tree is folded: rows are open above `level` (None: everywhere), those at `toggled` places otherwise."""

    level: int | None = None
    toggled: frozenset[int] = frozenset()

    def is_open(self, place: int, depth: int) -> bool:
        """Whether the row at this place, of this depth, shows what is below it."""
        return (self.level is None or depth < self.level) != (place in self.toggled)

    @property
    def deepest(self) -> int:
        """How deep a row may be that is shown, toggled ones apart."""
        return _ALL_OPEN if self.level is None else self.level


@dataclass(slots=True)
class _Step:
    place: int
    depth: int
    is_parent: bool
    is_open: bool
    hidden: int


class StoredTree(BlockStore):
    """An outline as it is read: window by window, folded as the reader wants it."""

    __slots__ = ()

    def read_window(self, *, at: int = 0, limit: int = 200, fold: Fold = Fold()) -> Window:
        """The rows from the place `at` on, which is one that the fold shows, at most `limit` of them."""
        if not 0 <= at < self.count:
            return Window((), self.count, None, self._find_previous(self.count, limit, fold) if at else None)
        steps, following = self._walk(at, limit, fold)
        critical = self._find_critical(steps, following)
        lines = self._fetch_lines([step.place for step in steps])
        rows = [
            WindowRow(
                step.place,
                step.depth,
                lines[step.place],
                step.is_parent,
                step.is_open,
                step.hidden,
                step.place in critical,
            )
            for step in steps
        ]
        previous = self._find_previous(at, limit, fold) if at else None
        return Window(rows, self.count, following if following < self.count else None, previous)

    def find_shown(self, place: int, fold: Fold) -> int:
        """The place itself, or that of the closed row that hides it: the outermost one."""
        found, depth = place, self._depth_of(place)
        for above, its_depth in self._find_above(place, depth):
            if not fold.is_open(above, its_depth):
                found = above
        return found

    def _depth_of(self, place: int) -> int:
        number = self._block_of(place)
        if number not in self._depths:
            self._fetch_once_more([number])
        return self._depths[number][place - self._starts[number]]

    def _walk(self, at: int, limit: int, fold: Fold) -> tuple[list[_Step], int]:
        """The rows that are shown from a place on, and the place after them."""
        steps: list[_Step] = []
        self._fetches = 0
        try:
            while at < self.count and len(steps) < limit:
                number = self._block_of(at)
                self._open(number, limit, fold)
                depth = self._depths[number][at - self._starts[number]]
                is_parent = self._depth_after(number, at) > depth
                is_open = fold.is_open(at, depth)
                following = at + 1
                if is_parent and not is_open:
                    following = self._find_end(at, depth, limit, fold)
                steps.append(_Step(at, depth, is_parent, is_open, following - at - 1))
                at = following
        except ExhaustedError:
            # What there is so far is a window; the next one goes on from its end.
            pass
        return steps, at

    def _open(self, number: int, limit: int, fold: Fold) -> None:
        """See to it that the depths of a block are there; where they are not, those that come next are fetched too."""
        if number not in self._depths:
            self._fetch_once_more(self._list_ahead(number, limit, fold))

    def _list_ahead(self, number: int, limit: int, fold: Fold) -> list[int]:
        """This block, and those after it in which rows of the same window are likely to stand."""
        if fold.level is None:
            return [number, number + 1]
        ahead = [number, number + 1] if fold.toggled else [number]
        for other in range(number + 1, len(self.entries)):
            if self.entries[other].least_depth <= fold.deepest:
                ahead.append(other)
                if len(ahead) > limit:
                    break
        return ahead

    def _find_end(self, place: int, depth: int, limit: int, fold: Fold) -> int:
        """The place of the first line after this one that is no deeper, or the end."""
        number = self._block_of(place)
        within = _find_shallow(self._depths[number], place + 1 - self._starts[number], depth)
        if within is not None:
            return self._starts[number] + within
        for other in range(number + 1, len(self.entries)):
            if self.entries[other].least_depth <= depth:
                if self.entries[other].first_depth <= depth:
                    return self._starts[other]
                self._open(other, limit, fold)
                found = _find_shallow(self._depths[other], 0, depth)
                return self._starts[other] + (found or 0)
        return self.count

    def _find_above(self, place: int, depth: int) -> Iterator[tuple[int, int]]:
        """The places and depths of the rows above a row, the nearest first."""
        number = self._block_of(place)
        within = place - self._starts[number]
        while depth > 0:
            found = None
            if number in self._depths or self.entries[number].least_depth < depth:
                self._fetch([number])
                depths = self._depths[number]
                found = next((at for at in range(within - 1, -1, -1) if depths[at] < depth), None)
            if found is not None:
                within, depth = found, self._depths[number][found]
                yield self._starts[number] + within, depth
                continue
            number = next((other for other in range(number - 1, -1, -1) if self.entries[other].least_depth < depth), -1)
            if number < 0:
                return
            within = self.entries[number].size

    def _find_previous(self, at: int, limit: int, fold: Fold) -> int:
        """The place at which the window before the one at this place begins."""
        if fold.level is None and not fold.toggled:
            return max(0, at - limit)
        found = self._find_shown_before(at, limit, fold)
        return self.find_shown(found, fold) if fold.toggled else found

    def _find_shown_before(self, at: int, limit: int, fold: Fold) -> int:
        """The place `limit` rows back, or the first, of rows that are shown where nothing is toggled."""
        number, left, found = self._block_of(min(at, self.count - 1)), limit, 0
        numbers = [each for each in range(number, -1, -1) if self.entries[each].least_depth <= fold.deepest]
        numbers = numbers[: limit + 1] if fold.level is not None else numbers[:2]
        self._fetch(numbers)
        for each in numbers:
            depths = self._depths[each]
            for within in range(min(at - self._starts[each], len(depths)) - 1, -1, -1):
                if depths[within] <= fold.deepest:
                    found, left = self._starts[each] + within, left - 1
                    if not left:
                        return found
        return found

    def _find_critical(self, steps: Sequence[_Step], following: int) -> set[int]:
        """The places of those rows that the latest message stands at or below: what it answers, and so on back."""
        found: set[int] = set()
        rows = [step for step in steps if step.place <= self.latest]
        if not rows or self.latest < 0:
            return found
        # What lies between two rows that follow each other is below the former, and deeper than it.
        is_inside = self.latest < following
        least = _ALL_OPEN if is_inside else self._find_least(following, self.latest)
        for step in reversed(rows):
            if step.depth < least:
                found.add(step.place)
            least = min(least, step.depth)
        return found


def _find_shallow(depths: array[int], start: int, depth: int) -> int | None:
    """The first place from `start` on in a block that is no deeper than this."""
    for at in range(start, len(depths)):
        if depths[at] <= depth:
            return at
    return None


def load_tree(owner: Conversation | Trace) -> StoredTree | None:
    """The stored tree of a conversation or a trace, or None where none has been drawn yet."""
    rows = Outline.objects.filter(**{"conversation" if isinstance(owner, Conversation) else "trace": owner})
    found = rows.values_list("id", "count", "latest", "directory").first()
    if found is None:
        return None
    outline_id, count, latest, directory = found
    return StoredTree(outline_id, count, latest, read_directory(bytes(directory)))
