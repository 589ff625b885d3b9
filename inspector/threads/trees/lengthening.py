"""Lengthening: a trace that was drawn takes in what comes after it in the timeline, and nothing of it is read anew.

Three things prove that nothing else has changed. Whoever changes messages counts their traces up in the same
transaction and under their locks (`marking`), and says there from when on messages came new, and whether there was more
to it. What is carried over the end (`carrying`) holds for one settled generation alone. And all that is read here is
read under the trace's lock: what another transaction has not counted up yet it has not committed either.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable

from django.db import transaction

from ..models import Trace
from ..placing.keys import WIRE
from ..placing.several import SEVERAL
from .carrying import Carried, carry, find_carried, keep_carried
from .grafting import Shoot
from .growing import Effort, Growth, UngrowableError, grow_trees
from .strands import BASIS, CHANNEL, CONTENT, Gatherer, Strand, name_content, read_members, select_members
from .sums import Sum, read_topics, write_sums


def lengthen_trace(trace_id: uuid.UUID, *, fence: Callable[[], None], finish: Callable[[], None]) -> bool:
    """Draw and sum up what was appended to a trace, in one transaction.

    Args:
        trace_id: the trace.
        fence: called inside the transaction; raises when another worker has taken over.
        finish: called inside it at its end.

    Returns:
        whether it could be done; if not, nothing was done, and the trace is to be drawn whole.
    """
    try:
        with transaction.atomic():
            trace = Trace.objects.select_for_update(no_key=True).filter(pk=trace_id).first()
            fence()
            carried = find_carried(trace) if trace is not None and is_appended_only(trace) else None
            if trace is None or carried is None:
                return False
            _lengthen(trace, carried)
            finish()
            return True
    except UngrowableError:
        return False


def is_appended_only(trace: Trace) -> bool:
    """Whether all that has changed since it was drawn is that messages came new, each later than the last one then."""
    if trace.last_at is None or trace.whole_generation > trace.settled_generation:
        return False
    return trace.fresh_at is None or trace.fresh_at > trace.last_at


def _lengthen(trace: Trace, carried: Carried) -> None:
    strand = _load_appended(trace, carried)
    if any(knot.id in carried.awaited for knot in strand.knots):
        raise UngrowableError({trace.pk: "a message answers what has only now come"})
    after = carry(strand, carried)
    if after is None:
        raise UngrowableError({trace.pk: "answers may go round in a circle, or too much is to be carried"})
    new_groups = frozenset(strand.conversations) - carried.conversations
    effort = grow_trees([Growth(trace.pk, _make_shoots(strand), new_groups, carried.last)], "trace", trace.workspace_id)
    write_sums([(trace, _add_up(trace, carried, strand, effort))])
    Trace.objects.filter(pk=trace.pk).update(fresh_at=None)
    keep_carried([(trace, after)])


def _load_appended(trace: Trace, carried: Carried) -> Strand:
    """The messages after the last one that was drawn, in a strand that goes on from what the row says."""
    strand = Strand(
        agents=dict.fromkeys(trace.agents),
        dialects=Counter(carried.dialects),
        state=trace.state,
        channels=carried.channels,
        severity=trace.severity,
        first_at=trace.first_at,
        last_at=trace.last_at,
        digest=bytes(trace.digest or b""),
    )
    gatherer = Gatherer(strand)
    for row in read_members(select_members([trace]).filter(order_time__gt=trace.last_at)):
        is_joined = row[BASIS] != WIRE
        if trace.channel_id is not None or row[CHANNEL] not in carried.channels:
            # What only the wire says stays in its channel until anything else there joins what other channels say.
            if is_joined:
                raise UngrowableError({trace.pk: "a channel joins others"})
            if trace.channel_id is None:
                continue
        gatherer.add(row)
    return gatherer.end(_name_answered(trace, carried, gatherer.outside))


def _name_answered(trace: Trace, carried: Carried, ids: set[bytes]) -> dict[bytes, bytes]:
    """Those of these messages that were drawn, each named by its content."""
    if not ids:
        return {}
    rows = select_members([trace]).filter(pk__in=[uuid.UUID(bytes=name) for name in ids], order_time__lte=trace.last_at)
    if trace.channel_id is None:
        rows = rows.filter(channel_id__in=carried.channels)
    return {pk.bytes: name_content(*content) for pk, *content in rows.values_list("id", *CONTENT)}


def _find_missed(trace: Trace, strand: Strand) -> set[tuple[bytes, uuid.UUID]]:
    """Those of the messages that the strand misses which were missed before it."""
    if not strand.ghosts:
        return set()
    rows = select_members([trace]).filter(
        parent_key__in=[key for key, _ in strand.ghosts], parent__isnull=True, order_time__lte=trace.last_at
    )
    rows = rows.exclude(parent_basis="").exclude(parent_why__contains=SEVERAL)
    found = rows.values_list("parent_key", "channel_id").distinct()
    return {(bytes(key or b""), channel_id) for key, channel_id in found}


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


def _add_up(trace: Trace, carried: Carried, strand: Strand, effort: Effort) -> Sum:
    """What the row says and what was appended, together."""
    subject = trace.subject
    topic_of = None
    if not carried.is_asked:
        topic_of = strand.asked_of or (None if carried.is_named else strand.named_of)
    if topic_of is not None:
        subject = read_topics([topic_of])[topic_of]
    return Sum(
        digest=strand.digest,
        state=strand.state,
        subject=subject,
        agents=list(strand.agents),
        dialects=[name for name, _ in strand.dialects.most_common()],
        message_count=trace.message_count + len(strand.knots),
        conversation_count=len(strand.conversations | carried.conversations),
        missing_count=trace.missing_count + len(strand.ghosts - _find_missed(trace, strand)),
        open_count=trace.open_count - effort.answered + strand.count_open(),
        severity=strand.severity,
        first_at=strand.first_at,
        last_at=strand.last_at,
    )
