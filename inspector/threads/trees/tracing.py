"""Tracing: the tree of a trace and what its row says, from the messages that carry its id; a pure function of them.

It depends on the settled messages alone, with their order keys: on no conversation's order of processing. What comes
later in the timeline than everything that was drawn is appended (`lengthening`); anything else draws the trace whole.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence

from django.db import transaction
from django.db.models import Count

from ..arriving.marking import hold_traces
from ..models import Trace, TraceCarry
from .carrying import Carried, carry, keep_carried
from .lengthening import lengthen_trace
from .stored import Tree, write_trees
from .strands import Strand, load_strands, select_members
from .sums import read_topics, sum_up, write_sums

# Traces of at most so many messages are drawn together, and so many of theirs at once. None of them is lengthened:
# to draw it whole costs as little.
SMALL, TOGETHER = 200, 2000


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
    if trace.message_count > SMALL and lengthen_trace(trace.pk, fence=fence, finish=finish):
        return
    _begin(trace, fence)
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
        _write_sums(drawn, strands)
        keep_carried([(each, _carry(strands[each.pk])) for each in drawn])
        finish()


def _begin(trace: Trace, fence: Callable[[], None]) -> None:
    """Count from now on when messages come new to a trace: those before are among what is read to draw it whole.

    Until that is done, nothing is carried over the end of what was drawn before.
    """
    with transaction.atomic():
        hold_traces([trace])
        fence()
        TraceCarry.objects.filter(trace=trace).delete()
        Trace.objects.filter(pk=trace.pk).update(fresh_at=None)


def _carry(strand: Strand) -> Carried | None:
    return carry(strand) if len(strand.knots) > SMALL else None


def _write_sums(traces: Sequence[Trace], strands: dict[uuid.UUID, Strand]) -> None:
    subjects = {trace.pk: strands[trace.pk].asked_of or strands[trace.pk].named_of for trace in traces}
    topics = read_topics(subjects.values())
    write_sums([(trace, sum_up(strands[trace.pk], topics[subjects[trace.pk]])) for trace in traces])


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
