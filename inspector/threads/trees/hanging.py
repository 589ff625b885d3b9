"""Hanging: where the units of a tree come to stand, and what the new tree consists of. Pure; without recursion."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from .grafting import GraftError
from .searched import Steps, together
from .units import Unit, Units, sort_units
from .weaving import NewLine, Segment, Stretch


class Hanging:
    """The units of a tree, each with what moves it and with the place that it comes to."""

    def __init__(self, units: Units) -> None:
        """Take units of which each says what it hangs on."""
        self._units, self._tree = units, units.tree
        self._sorted = [units.standing[place] for place in sorted(units.standing)]
        self._places = sorted(units.standing)
        # Of a unit that stood in the tree the one that it stood below, and the other way round.
        self._around: dict[int, Unit | None] = {}
        self._inside: dict[int, list[Unit]] = defaultdict(list)
        # What comes into a unit of the old tree (-1: into what none of them moves), in the order in which it stands.
        self._coming: dict[int, list[tuple[int, int, int, Unit]]] = defaultdict(list)

    def hang(self) -> Steps[None]:
        """Find the place and depth of each.

        Raises:
            GraftError: something hangs on what leaves, or on itself.
        """
        self._nest()
        anchors = list(self._units.arriving)
        groups = yield from together(sort_units(self._units.order, self._units.arriving[key]) for key in anchors)
        slots = []
        for key, arriving in zip(anchors, groups, strict=True):
            self._units.arriving[key] = arriving
            on, place = self._units.by_key.get(key), self._units.find_place(key)
            if on is None and place is None:
                raise GraftError("a message answers one that is not in the tree")
            if on is not None and on.hangs is None:
                raise GraftError("a message hangs on one that leaves")
            for unit in arriving:
                unit.host = on if place is None else self._find_around(place)
            if place is not None:
                slots.append(self._find_slots(arriving, place))
        yield from together(slots)
        self._give_depths()

    def _nest(self) -> None:
        open_units: list[Unit] = []
        for unit in self._sorted:
            place = unit.place or 0
            while open_units and open_units[-1].end <= place:
                open_units.pop()
            around = open_units[-1] if open_units else None
            self._around[place] = around
            self._inside[-1 if around is None or around.place is None else around.place].append(unit)
            open_units.append(unit)
        for unit in self._sorted:
            if unit.hangs is None:
                at = (unit.place or 0) + 1
                for inside in self._inside[unit.place or 0]:
                    if inside.place != at:
                        break
                    at = inside.end
                if at != unit.end:
                    raise GraftError("a message hangs on one that leaves")

    def _find_around(self, place: int) -> Unit | None:
        """The innermost unit in which a place of the old tree stands."""
        at = bisect_right(self._places, place) - 1
        unit = self._sorted[at] if at >= 0 else None
        while unit is not None and unit.end <= place:
            unit = self._around[unit.place or 0]
        return unit

    def _find_slots(self, arriving: list[Unit], place: int) -> Steps[None]:
        moments = [unit.moment for unit in arriving if unit.moment is not None]
        slots = yield from together(self._units.order.find_slot(place, moment) for moment in moments)
        depth = self._tree.depth(place)
        for rank, (unit, slot) in enumerate(zip(arriving, slots, strict=True)):
            inside = -1 if unit.host is None or unit.host.place is None else unit.host.place
            # Where several lines end, what comes to hang on the deepest of them stands first.
            self._coming[inside].append((slot, -depth, rank, unit))

    def _give_depths(self) -> None:
        known: set[int] = set()
        for unit in self._units.by_key.values():
            path: dict[int, Unit] = {}
            walked: Unit | None = unit
            while walked is not None and id(walked) not in known and walked.hangs is not None:
                if id(walked) in path:
                    raise GraftError("answers go round in a circle")
                path[id(walked)] = walked
                walked = walked.host
            for each in reversed(path.values()):
                each.depth = self._find_depth(each)
            known |= path.keys()

    def _find_depth(self, unit: Unit) -> int:
        place = None if unit.hangs is None else self._units.find_place(unit.hangs)
        host = unit.host
        if place is None:
            return 0 if host is None else host.depth + 1
        return self._tree.depth(place) + 1 + self._find_shift(host)

    def _find_shift(self, unit: Unit | None) -> int:
        return 0 if unit is None or unit.place is None else unit.depth - self._tree.depth(unit.place)

    def list_segments(self) -> Iterator[Segment]:
        """What the new tree consists of."""
        stack = [self._walk(None)]
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
            elif isinstance(found, Unit):
                stack.append(self._walk(found))
            else:
                yield found

    def _walk(self, unit: Unit | None) -> Iterator[Segment | Unit]:
        """What a unit consists of, or all that none of them moves; and the units that come into it."""
        if unit is not None and unit.place is None:
            if unit.line is not None:
                yield NewLine(unit.depth, unit.line)
            yield from self._units.arriving.get(unit.key, ())
            return
        inside, at, end = -1, 0, self._tree.count
        if unit is not None and unit.place is not None:
            inside = at = unit.place
            end = unit.end
        deeper = self._find_shift(unit)
        events: list[tuple[int, int, int, int, Unit]] = [
            (slot, 0, deep, rank, each) for slot, deep, rank, each in self._coming[inside]
        ]
        events += [(each.place, 1, 0, 0, each) for each in self._inside[inside] if each.place is not None]
        for place, leaves, _, _, each in sorted(events, key=lambda event: event[:4]):
            if place > at:
                yield Stretch(at, place, deeper)
                at = place
            if leaves:
                at = each.end
            else:
                yield each
        if end > at:
            yield Stretch(at, end, deeper)
