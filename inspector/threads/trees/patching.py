"""Patching: a trace that was drawn takes in messages that came late or changed anywhere, and reads few but those.

It goes on from the point at its end: the tree as it is stored, what the row says, and what is carried over that point.
Which messages came new or changed has been noted with how they stood (`noting`): what they were is taken from all that,
and what they are is put there. What cannot be told so for certain is refused: that something left, that messages stand
at one place where their order decides, that a channel joins others, that too much has changed or must be read for it.

That nothing else has changed is proven as for lengthening (`lengthening`): whoever changes messages notes them, or that
something is not named, in the same transaction and under the locks of their traces. All that is read here is read under
the trace's lock, and what was noted is forgotten with the commit that writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction

from ..arriving.noting import Noted, read_noted
from ..models import Message, Trace, TraceCarry
from ..placing.instants import count_microseconds, read_instant
from .blocks import read_directory
from .changing import Alteration, change_trees
from .elements import PLACED, read_place
from .growing import Base, UngrowableError
from .merging import UnpatchableError, merge
from .noticed import Noticed, notice
from .points import Point, choose_kept, find_bases, keep_points, list_held, read_point
from .reckoning import reckon, select_ids
from .strands import find_missed
from .sums import Sum, read_topics, write_sum


def patch_trace(trace: Trace, end: TraceCarry, rows: Sequence[TraceCarry]) -> bool:
    """Put what was noted of a trace into what was drawn of it; call inside a transaction that holds it.

    Args:
        trace: the row, as it is locked.
        end: the newest of its points.
        rows: those of its points that hold before everything that came new or changed, the newest first.

    Returns:
        whether it could be done; if not, nothing was done.
    """
    noted = read_noted(trace)
    # Whatever marks a trace names something, or says that it does not.
    if not noted:
        return False
    try:
        with transaction.atomic():
            _patch(trace, end, rows, noted)
    except (UngrowableError, UnpatchableError):
        return False
    return True


def _patch(trace: Trace, end: TraceCarry, rows: Sequence[TraceCarry], noted: Sequence[Noted]) -> None:
    point = _read_end(trace, end)
    found = notice(trace, point.carried, noted)
    kept = choose_kept(rows, trace.message_count + len(found.new.knots))
    after = _apply(trace, point, found, list_held(bytes(row.directory) for row in kept))
    write_sum(trace, after.said, fresh_at=None)
    keep_points(trace, [after], kept)


def _read_end(trace: Trace, row: TraceCarry) -> Point:
    """The point at the end of what was drawn, where this is it and is what the row and the tree say."""
    if (row.last_at, row.message_count) != (trace.last_at, trace.message_count):
        raise UnpatchableError("nothing is carried over its end")
    point = read_point(row)
    if find_bases([trace]).get(trace.pk) != point.base:
        raise UnpatchableError("the tree is not that of its end")
    return point


def _apply(trace: Trace, point: Point, found: Noticed, held: frozenset[bytes]) -> Point:
    """Change the tree, and say what comes of the point."""
    merged = merge(point.carried, point.said, found.new)
    carried = replace(
        merged.carried,
        elements=reckon(point.carried.elements, found.members, was=found.was, now=found.now, others=found.others),
        awaited=found.awaited,
        last=_find_last(point, found),
    )
    opened = 0
    changes = found.list_changes()
    if changes:
        new_groups = carried.conversations - point.carried.conversations
        alteration = Alteration(trace.pk, changes, new_groups=new_groups, held=held)
        opened = change_trees([alteration], "trace", trace.workspace_id)[trace.pk].more_open
    base = find_bases([trace])[trace.pk]
    subject = merged.said.subject if merged.topic_of is None else read_topics([merged.topic_of])[merged.topic_of]
    said = merged.said._replace(
        digest=carried.elements.seal(),
        subject=subject,
        missing_count=merged.said.missing_count + _count_missing(found),
        open_count=merged.said.open_count + opened,
    )
    return Point(carried, _read_extent(said, base), base)


def _find_last(point: Point, found: Noticed) -> bytes:
    """The id of the last message of the timeline."""
    carried = point.carried
    if not found.new.knots or point.said.last_at is None:
        return carried.last
    latest = found.new_places[-1]
    if latest[0] < count_microseconds(point.said.last_at):
        return carried.last
    row = select_ids(Message.objects.all(), [carried.last]).values_list(*PLACED).get()
    last = read_place(*row)
    if last == latest:
        raise UnpatchableError("two messages stand at one place")
    return found.new.knots[-1].id if latest > last else carried.last


def _count_missing(found: Noticed) -> int:
    """How many messages more are cited that were not received."""
    keys = found.missed_before | found.missed_now
    if not keys:
        return 0
    still = find_missed(found.list_unchanged(), keys)
    return len(keys & (still | found.missed_now)) - len(keys & (still | found.missed_before))


def _read_extent(said: Sum, base: Base) -> Sum:
    """The sum with the times and the severity that the tree has."""
    entries = read_directory(base.directory)
    return said._replace(
        severity=max(entry.severity for entry in entries),
        first_at=read_instant(min(entry.first for entry in entries)),
        last_at=read_instant(max(entry.last for entry in entries)),
    )
