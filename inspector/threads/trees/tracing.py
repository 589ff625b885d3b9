"""Tracing: the tree of a trace and what its row says, from the messages that carry its id; a pure function of them.

It depends on the settled messages alone, with their order keys: on no conversation's order of processing. What comes
at the end of the timeline or near it is drawn from a point before it (`lengthening`); anything else draws the trace
whole. Where that was needed because something was late, a point is made on the way, to go back to when it is so again.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import Count

from ..arriving.marking import hold_traces
from ..arriving.noting import SMALL, forget_noted, note_unnamed
from ..models import Trace
from .carrying import carry
from .growing import UngrowableError
from .lengthening import advance, count_from, find_cut, lengthen_trace, list_standing
from .patching import patch_trace
from .points import FARTHEST, Point, find_bases, forget_points, keep_points, list_held, load_points
from .stored import Tree, write_trees
from .strands import Strand, load_strands, select_members
from .sums import Sum, read_topics, sum_up, write_sum, write_sums

# What is at most so many messages from the end, or from a point, is drawn from there sooner than patched.
NEAR = 200
# Small traces are drawn together, so many of their messages at once. None of them is lengthened or patched: to draw it
# whole costs as little.
TOGETHER = 2000


def draw_traces(
    *,
    trace: Trace,
    fence: Callable[[], None],
    finish: Callable[[], None],
    others: Sequence[Trace] = (),
    end_others: Callable[[set[uuid.UUID]], set[uuid.UUID]] = set,
) -> None:
    """Draw a trace's tree and sum it up, and note up to which generation it is drawn.

    Args:
        trace: the row; its generation as loaded is what this run draws.
        fence: called inside the writing transaction; raises when another worker has taken over.
        finish: called inside it, so that the job ends together with its work.
        others: more traces of the same workspace: those of them that are small are drawn together with it.
        end_others: called inside the transaction with the ids of those; says which are still to be written.
    """
    if trace.message_count > SMALL and _go_on(trace.pk, fence, finish):
        return
    began, cut = _begin(trace, fence)
    if cut is not None and _draw_over(cut, trace, fence, finish, began):
        return
    together = _find_together(trace, others)
    strands = load_strands(together)
    with transaction.atomic():
        hold_traces(together)
        fence()
        kept = {trace.pk}
        if len(together) > 1:
            kept |= end_others({each.pk for each in together} - kept)
        drawn = [each for each in together if each.pk in kept]
        trees = [Tree(each.pk, strands[each.pk].knots) for each in drawn]
        write_trees(trees=trees, owner="trace", workspace_id=trace.workspace_id)
        sums = _sum_up(strands)
        write_sums([(each, sums[each.pk]) for each in drawn])
        _keep_ends(drawn, strands, sums)
        _end_noting([each for each in drawn if len(strands[each.pk].knots) > SMALL], trace, began)
        finish()


def _go_on(trace_id: uuid.UUID, fence: Callable[[], None], finish: Callable[[], None]) -> bool:
    """Go on with a trace from what was drawn of it, in one transaction; what is near its end is drawn from there.

    Returns:
        whether it could be done; if not, nothing was done, and the trace is to be drawn whole.
    """
    with transaction.atomic():
        trace = Trace.objects.select_for_update(no_key=True).filter(pk=trace_id).first()
        fence()
        if trace is None or trace.last_at is None or trace.whole_generation > trace.settled_generation:
            return False
        rows = load_points(trace)
        if not rows:
            return False
        standing = list_standing(trace, rows)
        is_near = bool(standing) and trace.message_count - standing[0].message_count <= NEAR
        lengthen, patch = partial(lengthen_trace, trace, standing), partial(patch_trace, trace, rows[0], standing)
        if not any(way() for way in ((lengthen, patch) if is_near else (patch, lengthen))):
            return False
        forget_noted([trace])
        finish()
        return True


def _begin(trace: Trace, fence: Callable[[], None]) -> tuple[int, datetime | None]:
    """Count from now on what comes new to a trace or changes: what did before is among what is read to draw it whole.

    Until that is done, no point of it holds.

    Returns:
        up to which generation that was; and where to make a point on the way, if something is late and there was a
        point that would have done before.
    """
    with transaction.atomic():
        hold_traces([trace])
        fence()
        had_points = forget_points([trace]) > 0
        forget_noted([trace])
        columns = ("generation", "fresh_at", "last_at")
        generation, fresh_at, last_at = Trace.objects.values_list(*columns).get(pk=trace.pk)
        Trace.objects.filter(pk=trace.pk).update(fresh_at=None)
    if not had_points or fresh_at is None or last_at is None or fresh_at > last_at:
        return generation, None
    # What is very late is once so: what is late next is likelier to be near the end.
    is_near = count_from(trace, fresh_at, FARTHEST) < FARTHEST
    return generation, find_cut(trace, fresh_at if is_near else None)


def _draw_over(cut: datetime, trace: Trace, fence: Callable[[], None], finish: Callable[[], None], began: int) -> bool:
    """Draw a trace up to a point and go on from there, so that it can be gone back to.

    Returns:
        whether it could be done; if not, nothing was done.
    """
    strands = load_strands([trace], until=cut)
    strand = strands[trace.pk]
    carried = carry(strand) if strand.knots else None
    if carried is None:
        return False
    said = _sum_up(strands)[trace.pk]
    try:
        with transaction.atomic():
            hold_traces([trace])
            fence()
            stood = list_held(base.directory for base in find_bases([trace]).values())
            write_trees(trees=[Tree(trace.pk, strand.knots)], owner="trace", workspace_id=trace.workspace_id)
            point = Point(carried, said, find_bases([trace])[trace.pk])
            end = advance(trace, point, held=stood | list_held([point.base.directory]))
            write_sum(trace, end.said)
            keep_points(trace, [point, end])
            _end_noting([trace], trace, began)
            finish()
    except UngrowableError:
        return False
    return True


def _keep_ends(traces: Sequence[Trace], strands: dict[uuid.UUID, Strand], sums: dict[uuid.UUID, Sum]) -> None:
    """Keep points at the ends of those of these traces that may be lengthened, as they are drawn now, and no other."""
    forget_points(traces)
    ends = [
        (trace, carried)
        for trace in traces
        if len(strands[trace.pk].knots) > SMALL and (carried := carry(strands[trace.pk])) is not None
    ]
    bases = find_bases([trace for trace, _ in ends])
    for trace, carried in ends:
        keep_points(trace, [Point(carried, sums[trace.pk], bases[trace.pk])])


def _end_noting(drawn: Sequence[Trace], trace: Trace, began: int) -> None:
    """Let be noted what changes in these traces from now on; call where they are locked.

    Of what changed since they were read it is not known whether that is drawn.

    Args:
        drawn: those of more than a few messages.
        trace: that which was begun with.
        began: up to which generation it had been marked then.
    """
    if not drawn:
        return
    is_same = Trace.objects.filter(pk=trace.pk, generation=began).exists()
    note_unnamed([each for each in drawn if each.pk != trace.pk or not is_same])


def _sum_up(strands: dict[uuid.UUID, Strand]) -> dict[uuid.UUID, Sum]:
    """What the rows of these traces say."""
    subjects = {pk: strand.asked_of or strand.named_of for pk, strand in strands.items()}
    topics = read_topics(subjects.values())
    return {pk: sum_up(strand, topics[subjects[pk]]) for pk, strand in strands.items()}


def _find_together(trace: Trace, others: Sequence[Trace]) -> list[Trace]:
    """The trace, and of the others as many as are few messages together with it."""
    small = [other for other in others if other.pk != trace.pk and other.message_count <= SMALL]
    if not small:
        return [trace]
    # What carries the id in any of its channels: never less than what one of them holds.
    counts = Counter(
        {
            bytes(key or b""): count
            for key, count in select_members(small).values_list("trace_key").annotate(count=Count("pk"))
        }
    )
    found, held = [trace], 0
    for other in small:
        count = counts[bytes(other.key)]
        if count <= SMALL and held + count <= TOGETHER:
            held += count
            found.append(other)
    return found
