"""Regrafting: a stored tree takes in messages anywhere, loses some, hangs some elsewhere, at the cost of those. Pure.

Siblings stand by the timeline, so a place among them is searched by halves: the times are in the lines, and where they
tie, or do not tell the order, that of a few messages is asked for. What hangs on a message goes where it goes. The
lines that come out are those that drawing the tree from all its messages gives.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from .answering import answer_requests
from .blocks import Block, Entry, StoredLine
from .changes import ROOT, Change, find_anchor, name_top
from .grafting import Anchor, GraftError
from .hanging import Hanging
from .headings import change_headings, sum_new
from .opened import BOUNDS, Bounds
from .outline import Kind, Outcome
from .searched import Found, SearchedTree, Steps, Wish, together
from .seeking import Moment, locate
from .units import Standing, Units, find_standing, is_moved
from .weaving import NewLine, Segment, weave

_FEW: Final = 2


class Regrafted(NamedTuple):
    """The directory as it is now, the blocks that are new in it, and the place of the last message of the timeline.

    `opened` counts the blocks that were opened; `more_open` is how many more requests are open than before.
    """

    entries: Sequence[Entry]
    blocks: Sequence[Block]
    latest: int
    opened: int
    more_open: int


def regraft(
    *,
    entries: Sequence[Entry],
    latest: int,
    changes: Sequence[Change],
    new_groups: frozenset[bytes] = frozenset(),
    is_by_turn: bool = False,
    bounds: Bounds = BOUNDS,
) -> Generator[Wish, Found, Regrafted]:
    """Put changes into a stored tree: yields what it needs, is sent that, and returns what becomes of the tree.

    Args:
        entries: the directory of the tree.
        latest: the place of its last message.
        changes: at least one, in any order.
        new_groups: those groups of which no message is in the tree.
        is_by_turn: whether the timeline may follow something else than the times.
        bounds: how large a block may become.

    Raises:
        GraftError: it cannot be done; nothing is lost.
    """
    tree = SearchedTree(entries, _list_names(changes), top=_find_top(changes))
    steps = _change(tree, _Given(changes, latest, new_groups, is_by_turn=is_by_turn), bounds)
    try:
        wish = next(steps)
        while True:
            tree.take(wish, (yield wish))
            wish = next(steps)
    except StopIteration as end:
        regrafted: Regrafted = end.value
        return regrafted


class _Given(NamedTuple):
    changes: Sequence[Change]
    latest: int
    new_groups: frozenset[bytes]
    is_by_turn: bool


def _find_top(changes: Sequence[Change]) -> int:
    """At which depth the tops stand: below the headings of their conversations, where they name them.

    Raises:
        GraftError: what is given contradicts itself.
    """
    if len({change.id for change in changes}) < len(changes):
        raise GraftError("a message is changed twice")
    groups: set[bool] = set()
    for change in changes:
        if change.now is not None and change.now.parent is not None and change.now.ghost is not None:
            raise GraftError("a message hangs on two lines")
        groups |= {bool(each.group) for each in (change.was, change.now) if each is not None}
    if len(groups) != 1:
        raise GraftError("some messages name their conversation and others do not")
    return int(groups.pop())


def _list_names(changes: Iterable[Change]) -> set[bytes]:
    """The ids of the lines that these changes may name."""
    names: set[bytes] = set()
    for change in changes:
        names.add(change.id)
        if change.now is not None:
            names |= {find_anchor(change.now)[0], change.now.group}
        if change.was is not None:
            names.add(change.was.group)
    return names - {b""}


def _change(tree: SearchedTree, given: _Given, bounds: Bounds) -> Steps[Regrafted]:
    changes = given.changes
    yield from _open(tree, given)
    standing = yield from find_standing(tree, changes)
    yield from _check_circles(tree, changes, standing)
    units = Units(tree, is_by_turn=given.is_by_turn)
    yield from units.add_messages(changes, standing)
    sums = sum_new(changes, given.new_groups)
    for kind in (Kind.GHOST, Kind.CONVERSATION):
        yield from units.add_deciding(kind, sums)
    hanging = Hanging(units)
    yield from hanging.hang()
    changed = change_headings(units, changes, standing)
    for unit in units.standing.values():
        if unit.key[1] is Kind.GHOST and unit.moment is not None and unit.place is not None:
            changed[unit.place] = tree.line(unit.place)._replace(start=unit.moment.at, end=unit.moment.at)
    more_open = yield from _change_messages(units, changes, standing, changed)
    last = yield from _find_last(units, given)
    segments = list(hanging.list_segments())
    cut = yield from weave(tree, segments, changed, bounds)
    known = {entry.digest for entry in tree.entries}
    blocks = [block for entry, block in cut if block is not None and entry.digest not in known]
    entries = [entry for entry, _ in cut]
    return Regrafted(entries, blocks, _place_last(last, units, given, segments), tree.opened, more_open)


def _open(tree: SearchedTree, given: _Given) -> Steps[None]:
    """Open the blocks of all lines that the changes name, and that of the last message."""
    wish = Wish()
    if len(tree.entries) <= _FEW:
        wish.numbers.update(range(len(tree.entries)))
    else:
        wish.numbers.add(tree.number_of(given.latest))
        own = {change.id for change in given.changes}
        parents = (change.now.parent for change in given.changes if change.now is not None)
        wish.facts.update(parent for parent in parents if parent is not None and parent not in own)
    if wish:
        yield wish
    sought: dict[Anchor, int | None] = {}
    for change in given.changes:
        was, now = change.was, change.now
        at = was.at if was is not None else now.at if now is not None else None
        sought[change.id, Kind.MESSAGE] = at
        if now is not None:
            anchor = find_anchor(now)
            if anchor != ROOT:
                fact = tree.facts.get(anchor[0])
                sought.setdefault(anchor, None if fact is None else fact.at)
        for each in (was, now):
            if each is not None and each.group and each.group not in given.new_groups:
                sought[name_top(each.group)] = None
    yield from locate(tree, sought)


def _change_messages(
    units: Units, changes: Sequence[Change], standing: Mapping[bytes, Standing], changed: dict[int, StoredLine]
) -> Steps[int]:
    """Say of the messages how they stand now and how they are answered; returns how many more requests are open."""
    tree, opened = units.tree, 0
    nows = {change.id: change.now for change in changes if change.now is not None}
    for name, (outcome, end) in (yield from answer_requests(units, changes, standing)).items():
        unit, now = units.by_key.get((name, Kind.MESSAGE)), nows.get(name)
        opened += outcome is Outcome.OPEN
        if unit is not None and unit.line is not None:
            unit.line = unit.line._replace(outcome=outcome, end=end)
            continue
        place = units.find_place((name, Kind.MESSAGE))
        if place is None:
            raise GraftError("a message answers one that is not in the tree")
        line = tree.line(place)
        opened -= line.outcome is Outcome.OPEN
        found = line._replace(outcome=outcome, end=end)
        if now is not None:
            found = found._replace(start=now.at, severity=now.severity)
        if found != line:
            changed[place] = found
    left = [standing[change.id].line for change in changes if change.now is None]
    return opened - sum(line.outcome is Outcome.OPEN for line in left)


def _find_last(units: Units, given: _Given) -> Steps[Anchor | None]:
    """The line of the last message of the timeline as it is now, None where no message is left.

    Raises:
        GraftError: it cannot be known.
    """
    coming = [unit.moment for unit in units.by_key.values() if unit.key[1] is Kind.MESSAGE and unit.moment is not None]
    ranks = yield from units.order.sort(coming)
    last = coming[ranks[-1]] if ranks else None
    if given.latest >= 0:
        line = yield from units.tree.read(given.latest)
        change = next((each for each in given.changes if each.id == line.id), None)
        before = Moment(line.start, line.id)
        if change is None or not (change.now is None or change.is_elsewhere or change.now.at != line.start):
            if last is None or (yield from units.order.precedes(last, before)):
                last = before
                units.places[line.id, Kind.MESSAGE] = given.latest
        elif last is None or last.at <= line.start or given.is_by_turn:
            raise GraftError("the last message of the timeline leaves")
    return None if last is None else (last.id, Kind.MESSAGE)


def _place_last(last: Anchor | None, units: Units, given: _Given, segments: Iterable[Segment]) -> int:
    """At which place of the new tree its last message stands."""
    if last is None:
        return -1
    unit = units.by_key.get(last)
    place = units.find_place(last) if unit is None or unit.place is None else unit.place
    count = 0
    for segment in segments:
        if isinstance(segment, NewLine):
            if place is None and segment.line.id == last[0] and segment.line.kind is Kind.MESSAGE:
                return count
            count += 1
            continue
        if place is not None and segment.low <= place < segment.high:
            return count + place - segment.low
        count += segment.high - segment.low
    raise GraftError("the last message was not put in")


def _check_circles(tree: SearchedTree, changes: Sequence[Change], standing: Mapping[bytes, Standing]) -> Steps[None]:
    """Prove that no circle of answers is opened: one is cut where it begins, and that answers something below it.

    Raises:
        GraftError: it cannot be proven.
    """
    changed = {change.id for change in changes}
    moved = [stood for change in changes if (stood := standing.get(change.id)) is not None and is_moved(change, stood)]
    deep = [stood.place for stood in moved if tree.depth(stood.place) > tree.top]
    tops = set((yield from together(tree.find_above(place, tree.top) for place in deep)))
    lines = [tree.line(top) for top in sorted(tops)]
    names = [line.id for line in lines if line.kind is Kind.MESSAGE and line.id not in changed]
    yield from tree.learn(names)
    if any(tree.facts[name].is_answer for name in names):
        raise GraftError("answers may go round in a circle")
