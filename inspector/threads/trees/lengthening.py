"""Lengthening: a trace that was drawn takes in what comes after a point of it, and nothing up to there is read anew.

The point is the end of what was drawn, or where something is late or has changed, the newest one before that
(`points`). What comes after it is read, old and new alike, and put into the tree as it stood there.

Three things prove that nothing up to the point has changed. Whoever changes messages counts their traces up in the same
transaction and under their locks (`marking`), and says there from which time of the timeline on messages came new or
changed, or that no time tells it. A message never changes its time but by being taken out and put in anew, which none
tells. A point holds for one settled generation alone, and those from that time on are not gone on from and dropped. And
all that is read here is read under the trace's lock: what another transaction has not counted up yet it has not
committed either. So the time that is read under the lock covers whatever is seen, and is forgotten with the commit that
writes it.

That nothing up to the point would be drawn otherwise for what comes after it is proven each time: an earlier message
that answers a later one is awaited at the point (`carrying`), a channel that joins the trace is seen when it does, and
what the tree cannot tell it refuses (`grafting`). Then an older point may do, else the trace is drawn whole.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence, Set
from datetime import datetime
from itertools import repeat
from typing import Any, Final

from django.db import transaction

from ..models import Trace, TraceCarry
from ..placing.instants import count_microseconds
from ..placing.keys import WIRE
from .carrying import carry
from .elements import CONTENT, name_content
from .grafting import Shoot
from .growing import Effort, Growth, UngrowableError, grow_trees
from .points import SLACK, Point, choose_kept, find_bases, keep_points, list_held, read_point
from .strands import BASIS, CHANNEL, Gatherer, Strand, find_missed, read_members, select_members
from .sums import Sum, read_topics, write_sum

# How many points are tried where one does not do: each is at least as far back as all before it together.
_TRIES: Final = 3
# A point is made on the way from one that is so many times as far back as the late message.
_FAR: Final = 4


def lengthen_trace(trace: Trace, rows: Sequence[TraceCarry]) -> bool:
    """Draw and sum up what came to a trace since it was drawn; call inside a transaction that holds it.

    Args:
        trace: the row, as it is locked.
        rows: those of its points that hold before everything that came new or changed, the newest first.

    Returns:
        whether it could be done; if not, nothing was done.
    """
    for at in range(min(len(rows), _TRIES)):
        try:
            _lengthen(trace, rows[at:])
        except UngrowableError:
            continue
        return True
    return False


def list_standing(trace: Trace, rows: Sequence[TraceCarry]) -> list[TraceCarry]:
    """Those of the points of a trace that are before everything that came new or changed since it was drawn."""
    return [row for row in rows if trace.fresh_at is None or row.last_at < trace.fresh_at]


def _lengthen(trace: Trace, rows: Sequence[TraceCarry]) -> None:
    """Go on from the first of these points, and keep of all of them those that are worth it.

    Raises:
        UngrowableError: it cannot be done; nothing was written.
    """
    start, kept = read_point(rows[0]), choose_kept(rows, trace.message_count)
    points = _advance_by_steps(trace, start, list_held(bytes(row.directory) for row in kept))
    write_sum(trace, points[-1].said, fresh_at=None)
    keep_points(trace, points, kept)


def _advance_by_steps(trace: Trace, start: Point, held: frozenset[bytes]) -> list[Point]:
    """The points that come of going on from this one to the end: the end, and before it one on the way there."""
    middle = _choose_middle(trace, start)
    if middle is not None:
        # Who has read the directory that was stored until now still finds its blocks.
        stood = list_held(base.directory for base in find_bases([trace]).values())
        try:
            with transaction.atomic():
                point = advance(trace, start, until=middle, held=held)
                return [point, advance(trace, point, held=held | stood | list_held([point.base.directory]))]
        except UngrowableError:
            # A message before it answers one behind it.
            pass
    return [advance(trace, start, held=held)]


def _choose_middle(trace: Trace, start: Point) -> datetime | None:
    """Where to make a point on the way to the end: shortly before what is late, if the start is much farther back."""
    far = trace.message_count - start.said.message_count
    if trace.fresh_at is None or far <= _FAR * SLACK:
        return None
    late = count_from(trace, trace.fresh_at, far)
    middle = find_cut(trace, trace.fresh_at) if far > _FAR * max(late, SLACK) else None
    return middle if middle is not None and start.said.last_at is not None and middle > start.said.last_at else None


def count_from(trace: Trace, at: datetime, most: int) -> int:
    """How many messages may stand in a trace from this time on, counted up to so many."""
    return select_members([trace]).filter(order_time__gte=at)[:most].count()


def find_cut(trace: Trace, before: datetime | None) -> datetime | None:
    """The time to make a point at that is to stand before another time, or before the end: `SLACK` messages earlier."""
    rows = select_members([trace])
    if before is not None:
        rows = rows.filter(order_time__lt=before)
    return rows.order_by("-order_time").values_list("order_time", flat=True)[SLACK : SLACK + 1].first()


def advance(
    trace: Trace, start: Point, *, until: datetime | None = None, held: frozenset[bytes] = frozenset()
) -> Point:
    """Put what comes after a point into the tree as it stood there; call inside a transaction that holds the trace.

    Args:
        trace: the trace; its row is not written.
        start: the point.
        until: the last time of what is put in; all of it where none is given.
        held: the digests of blocks that are to stay, beside those of the stored tree and of what becomes of it.

    Returns:
        the point at its end.

    Raises:
        UngrowableError: it cannot be done; nothing was written.
    """
    carried = start.carried
    strand = _load_after(trace, start, until)
    if any(knot.id in carried.awaited for knot in strand.knots):
        raise UngrowableError({trace.pk: "a message answers what has only now come"})
    after = carry(strand, carried)
    if after is None:
        raise UngrowableError({trace.pk: "answers may go round in a circle, or too much is to be carried"})
    new_groups = frozenset(strand.conversations) - carried.conversations
    growth = Growth(trace.pk, _make_shoots(strand), new_groups, carried.last, start.base, held)
    effort = grow_trees([growth], "trace", trace.workspace_id)
    return Point(after, _add_up(trace, start, strand, effort), find_bases([trace])[trace.pk])


def _load_after(trace: Trace, start: Point, until: datetime | None) -> Strand:
    """The messages after a point, in a strand that goes on from what the row said there."""
    said, channels = start.said, start.carried.channels
    strand = Strand(
        agents=dict(zip(said.agents, start.carried.agents_at or repeat(None), strict=False)),
        dialects=Counter(start.carried.dialects),
        dialects_at=dict(start.carried.dialects_at),
        state=said.state,
        decided_at=start.carried.decided_at,
        channels=channels,
        severity=said.severity,
        first_at=said.first_at,
        last_at=said.last_at,
        elements=start.carried.elements,
    )
    gatherer = Gatherer(strand)
    members = select_members([trace]).filter(order_time__gt=said.last_at)
    for row in read_members(members if until is None else members.filter(order_time__lte=until)):
        if takes_in(trace, channels, row):
            gatherer.add(row)
    return gatherer.end(_name_answered(trace, start, gatherer.outside))


def takes_in(trace: Trace, channels: Set[uuid.UUID], row: Sequence[Any]) -> bool:
    """Whether a trace that has these channels takes in a message of its id.

    Raises:
        UngrowableError: a channel joins others.
    """
    if trace.channel_id is None and row[CHANNEL] in channels:
        return True
    # What only the wire says stays in its channel until anything else there joins what other channels say.
    if row[BASIS] != WIRE:
        raise UngrowableError({trace.pk: "a channel joins others"})
    return trace.channel_id is not None


def _name_answered(trace: Trace, start: Point, ids: set[bytes]) -> dict[bytes, bytes]:
    """Those of these messages that stand up to a point, each named by its content."""
    if not ids:
        return {}
    rows = select_members([trace]).filter(pk__in=[uuid.UUID(bytes=name) for name in ids])
    rows = rows.filter(order_time__lte=start.said.last_at)
    if trace.channel_id is None:
        rows = rows.filter(channel_id__in=start.carried.channels)
    return {
        pk.bytes: name_content(count_microseconds(at), part, bytes(told or b""))
        for pk, at, part, told in rows.values_list("id", *CONTENT)
    }


def _find_missed(trace: Trace, start: Point, strand: Strand) -> set[tuple[bytes, uuid.UUID]]:
    """Those of the messages that the strand misses which are missed up to the point before it."""
    if not strand.ghosts:
        return set()
    return find_missed(select_members([trace]).filter(order_time__lte=start.said.last_at), strand.ghosts)


def _make_shoots(strand: Strand) -> list[Shoot]:
    return [
        Shoot(
            knot.id,
            knot.mark,
            knot.at,
            knot.performative,
            knot.severity,
            strand.answers.get(at) if knot.parent is None else strand.knots[knot.parent].id,
            knot.ghost,
            knot.group,
        )
        for at, knot in enumerate(strand.knots)
    ]


def _add_up(trace: Trace, start: Point, strand: Strand, effort: Effort) -> Sum:
    """What the row said at a point and what comes after it, together."""
    said, carried = start.said, start.carried
    subject = said.subject
    topic_of = None
    if carried.asked_at is None:
        topic_of = strand.asked_of or (None if carried.named_at is not None else strand.named_of)
    if topic_of is not None:
        subject = read_topics([topic_of])[topic_of]
    return Sum(
        digest=strand.elements.seal(),
        state=strand.state,
        subject=subject,
        agents=list(strand.agents),
        dialects=[name for name, _ in strand.dialects.most_common()],
        message_count=said.message_count + len(strand.knots),
        conversation_count=len(strand.conversations | carried.conversations),
        missing_count=said.missing_count + len(strand.ghosts - _find_missed(trace, start, strand)),
        open_count=said.open_count - effort.answered + strand.count_open(),
        severity=strand.severity,
        first_at=strand.first_at,
        last_at=strand.last_at,
    )
