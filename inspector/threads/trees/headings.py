"""Headings: what the conversations of a stored trace add up to where some of their messages change. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from .blocks import StoredLine
from .changes import Change, name_top
from .grafting import GraftError, Shoot
from .outline import Knot, Line, sum_groups
from .units import Standing, Units


def sum_new(changes: Iterable[Change], new_groups: frozenset[bytes]) -> dict[bytes, Line]:
    """The headings of conversations of which no message was drawn."""
    return sum_groups(
        Knot(now.id, now.mark, now.at, now.performative, now.severity, None, None, now.group)
        for change in changes
        if (now := change.now) is not None and now.group in new_groups
    )


def change_headings(
    units: Units, changes: Sequence[Change], standing: Mapping[bytes, Standing]
) -> dict[int, StoredLine]:
    """The headings of the tree that are others now, by their places.

    Raises:
        GraftError: a message leaves that may have been the only one to reach so far.
    """
    come: dict[bytes, list[Shoot]] = defaultdict(list)
    gone: dict[bytes, list[StoredLine]] = defaultdict(list)
    for change in changes:
        if change.was is not None and change.was.group:
            gone[change.was.group].append(standing[change.id].line)
        if change.now is not None and change.now.group:
            come[change.now.group].append(change.now)
    changed: dict[int, StoredLine] = {}
    for group in come.keys() | gone.keys():
        anchor = name_top(group)
        place, unit = units.find_place(anchor), units.by_key.get(anchor)
        if place is None or (unit is not None and unit.hangs is None):
            continue
        line = units.tree.line(place)
        found = _sum_up(line, come[group], gone[group])
        if found != line:
            changed[place] = found
    return changed


def _sum_up(line: StoredLine, come: Sequence[Shoot], gone: Sequence[StoredLine]) -> StoredLine:
    found = line._replace(
        start=min([line.start, *(each.at for each in come)]),
        end=max([line.end, *(each.at for each in come)]),
        severity=max([line.severity, *(each.severity for each in come)]),
    )
    is_first = any(each.start == line.start for each in gone) and all(each.at > line.start for each in come)
    is_last = any(each.start == line.end for each in gone) and all(each.at < line.end for each in come)
    is_gravest = line.severity > 0 and any(each.severity == line.severity for each in gone)
    if is_first or is_last or (is_gravest and all(each.severity < line.severity for each in come)):
        raise GraftError("what a conversation adds up to is not known without a message that leaves it")
    return found
