"""Units: the lines of a tree that come, leave or hang elsewhere, each with all that hangs on it. Pure.

A message is one where a change says so. A ghost stands in the timeline where the first message does that cites it, and
a heading where its first top does: so they are units too where that is another now, or is none any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .blocks import StoredLine
from .changes import ROOT, Change, Was, find_anchor, name_top
from .grafting import Anchor, GraftError
from .outline import ASKING, Kind, Line, Outcome
from .searched import SearchedTree, Steps, together
from .seeking import Moment, Order


class Standing(NamedTuple):
    """Where a message that changes stands: its line, the place of what it hangs on (-1: of nothing), and that line."""

    place: int
    line: StoredLine
    above: int
    hangs: Anchor


@dataclass(slots=True)
class Unit:
    """A line that comes, leaves (`hangs` None) or hangs elsewhere.

    `moment` says where it stands among what hangs on the same. `place` and `end` are where it stood with all that hangs
    on it, `line` what it is where it did not stand in the tree. `group` is its conversation. `slot` is the place of the
    old tree that it comes to, where it hangs on a line of that; `depth` how deep it comes to stand.
    """

    key: Anchor
    hangs: Anchor | None
    moment: Moment | None
    group: bytes = b""
    line: StoredLine | None = None
    place: int | None = None
    end: int = 0
    slot: int | None = None
    depth: int = 0
    # What is drawn of it stands below this one, which is moved with it.
    host: Unit | None = None


def find_standing(tree: SearchedTree, changes: Iterable[Change]) -> Steps[dict[bytes, Standing]]:
    """Where the messages stand that the tree has of these, by their ids; it must hold what is claimed.

    Raises:
        GraftError: it does not.
    """
    places: dict[bytes, int] = {}
    for change in changes:
        place = tree.find((change.id, Kind.MESSAGE))
        if change.was is None and place is not None:
            raise GraftError("a message stands in the tree already")
        if change.was is None:
            continue
        if place is None:
            raise GraftError("a message is not in the tree")
        _check(tree.line(place), change.was)
        places[change.id] = place
    aboves = yield from together(tree.find_above(place, tree.depth(place) - 1) for place in places.values())
    found: dict[bytes, Standing] = {}
    for change in changes:
        if change.was is None:
            continue
        place = places[change.id]
        above = aboves[len(found)]
        hangs = ROOT if above < 0 else (tree.line(above).id, tree.line(above).kind)
        if change.was.hangs not in (None, hangs):
            raise GraftError("a message hangs on another line")
        if hangs[1] is Kind.CONVERSATION and hangs != name_top(change.was.group):
            raise GraftError("a message stands below another heading")
        found[change.id] = Standing(place, tree.line(place), above, hangs)
    return found


def _check(line: StoredLine, was: Was) -> None:
    if line.start != was.at:
        raise GraftError("a message stands at another time")
    if (line.outcome is Outcome.NONE) == (was.performative in ASKING):
        raise GraftError("a message does something else")


class Units:
    """All the units of a tree, and what comes to hang on which line."""

    def __init__(self, tree: SearchedTree, *, is_by_turn: bool) -> None:
        """Begin with none."""
        self.tree = tree
        self.by_key: dict[Anchor, Unit] = {}
        # Those that stood in the tree, by their places.
        self.standing: dict[int, Unit] = {}
        self.arriving: dict[Anchor, list[Unit]] = defaultdict(list)
        # What something leaves, by its place; and where what something comes to hang on is in the tree.
        self.left: dict[Anchor, int] = {}
        self.places: dict[Anchor, int] = {ROOT: -1}
        self.order = Order(tree, is_by_turn, self.standing)

    def add(self, unit: Unit) -> None:
        """Take in a unit."""
        self.by_key[unit.key] = unit
        if unit.place is not None:
            self.standing[unit.place] = unit
        if unit.hangs is not None:
            self.arriving[unit.hangs].append(unit)

    def add_messages(self, changes: Iterable[Change], standing: Mapping[bytes, Standing]) -> Steps[None]:
        """Take in those messages that come, leave, or stand elsewhere now."""
        units = []
        for change in changes:
            stood, now = standing.get(change.id), change.now
            if stood is not None and now is not None and not is_moved(change, stood):
                continue
            unit = Unit((change.id, Kind.MESSAGE), None, None)
            if now is not None:
                unit.hangs, unit.moment, unit.group = find_anchor(now), Moment(now.at, now.id), now.group
                unit.line = StoredLine(now.id, Kind.MESSAGE, now.at, now.at, Outcome.NONE, now.severity)
            if stood is not None:
                unit.place, unit.line = stood.place, None
                self.left[stood.hangs] = self.places[stood.hangs] = stood.above
            units.append(unit)
        moved = [unit for unit in units if unit.place is not None]
        ends = yield from together(self.tree.find_end(unit.place) for unit in moved if unit.place is not None)
        for unit, end in zip(moved, ends, strict=True):
            unit.end = end
        for unit in units:
            self.add(unit)

    def find_place(self, anchor: Anchor) -> int | None:
        """The place of a line that something hangs on, in the old tree, if it is there."""
        place = self.places.get(anchor)
        if place is None:
            place = self.tree.find(anchor)
            if place is not None:
                self.places[anchor] = place
        return place

    def add_deciding(self, kind: Kind, headings: Mapping[bytes, Line]) -> Steps[None]:
        """Take in the ghosts, or the headings, that come, leave or stand elsewhere for what hangs on them now."""
        keys = dict.fromkeys(key for key in (*self.arriving, *self.left) if key[1] is kind and key != ROOT)
        yield from together(self._add_deciding(key, headings) for key in keys)

    def _add_deciding(self, key: Anchor, headings: Mapping[bytes, Line]) -> Steps[None]:
        place = self.find_place(key)
        first = yield from self._find_first_coming(key)
        kept = None if place is None else (yield from self._find_first_kept(place))
        if kept is not None:
            moment = yield from self.order.find_moment(kept)
            if first is None or (yield from self.order.precedes(moment, first.moment or moment)):
                if place is not None and kept == place + 1:
                    return
                first = Unit(key, None, moment, (yield from self._find_group(moment)))
        unit = Unit(key, None, None, place=place)
        if place is not None:
            unit.end = yield from self.tree.find_end(place)
            depth = self.tree.depth(place)
            above = yield from self.tree.find_above(place, depth - 1)
            hangs = ROOT if above < 0 else (self.tree.line(above).id, self.tree.line(above).kind)
            self.left[hangs] = self.places[hangs] = above
        if first is not None and first.moment is not None:
            unit.moment, unit.group = first.moment, first.group
            unit.hangs = ROOT if key[1] is Kind.CONVERSATION else name_top(first.group)
            at = first.moment.at
            if place is None:
                unit.line = StoredLine(key[0], key[1], at, at, Outcome.NONE, 0)
                if key[1] is Kind.CONVERSATION:
                    heading = headings.get(key[0])
                    if heading is None:
                        raise GraftError("a conversation has no heading in the tree")
                    unit.line = StoredLine(*key, heading.start, heading.end, Outcome.NONE, heading.severity)
        elif place is None:
            return
        self.add(unit)

    def _find_first_coming(self, key: Anchor) -> Steps[Unit | None]:
        coming = self.arriving.get(key, [])
        ranks = yield from self.order.sort([unit.moment for unit in coming if unit.moment is not None])
        return coming[ranks[0]] if ranks else None

    def _find_first_kept(self, place: int) -> Steps[int | None]:
        """The first line that hangs on this one and stays."""
        end = yield from self.tree.find_end(place)
        child = place + 1
        while child < end and child in self.standing:
            child = self.standing[child].end
        if child >= end:
            return None
        yield from self.tree.read(child)
        return child

    def _find_group(self, moment: Moment) -> Steps[bytes]:
        """The conversation of a message of the tree, where the tree has headings."""
        if not self.tree.top:
            return b""
        yield from self.tree.learn([moment.id])
        return self.tree.facts[moment.id].group


def is_moved(change: Change, stood: Standing) -> bool:
    """Whether a message of the tree stands elsewhere now, there or in the timeline."""
    now, was = change.now, change.was
    if now is None or change.is_elsewhere or now.at != stood.line.start or find_anchor(now) != stood.hangs:
        return True
    # A ghost stands below the heading of the first message that cites it.
    return was is not None and was.group != now.group


def sort_units(order: Order, units: Sequence[Unit]) -> Steps[list[Unit]]:
    """These units in the order of the timeline."""
    ranks = yield from order.sort([unit.moment for unit in units if unit.moment is not None])
    return [units[rank] for rank in ranks]
