"""What appending one message to a large stored tree costs: the blocks that it touches, and its time v drawing whole."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from .measure import Goal, Row

if TYPE_CHECKING:
    from inspector.threads.models import Trace
    from inspector.threads.trees.growing import Effort
    from inspector.threads.trees.outline import Knot

TOUCHED: Final = "blocks opened for one message appended {where} of {count:,}, {shape}"
SPENT: Final = "growing by one message {where} of {count:,} v drawing and comparing all, {shape}"
ROUNDS: Final = 9


def measure_appending(trace: Trace, knots: list[Knot], shape: str, whole_seconds: float) -> Iterator[Row]:
    """Rows for a message that answers the last one, one in the middle, the first one, and none.

    Args:
        trace: one of a single conversation, whose tree is stored.
        knots: what it was drawn from.
        shape: what that looks like.
        whole_seconds: what drawing it from them and comparing every block took.
    """
    count = len(knots)
    parents = {"to the last": count - 1, "in the middle": count // 2, "to the first": 0, "to none": None}
    for where, parent in parents.items():
        times, effort = [], None
        for _ in range(ROUNDS):
            start = time.perf_counter()
            effort = _append(trace, knots, parent)
            times.append(time.perf_counter() - start)
        if effort is None:
            raise RuntimeError("nothing was measured")
        spent = statistics.median(times)
        names = {"where": where, "count": count, "shape": shape}
        told = f"{effort.written} written; median of {ROUNDS} {spent * 1000:.1f} ms"
        yield Row(Goal("grown", TOUCHED.format(**names), 6, 4, is_share=True), float(effort.opened), remark=told)
        ratio = f"{spent * 1000:.1f} v {whole_seconds * 1000:.0f} ms, neither with the reading of messages"
        yield Row(Goal("grown", SPENT.format(**names), 0.2, 0.02, is_share=True), spent / whole_seconds, remark=ratio)


def _append(trace: Trace, knots: list[Knot], parent: int | None) -> Effort:
    """Append one message, and take it back."""
    from django.db import transaction

    from inspector.threads.trees.grafting import Shoot
    from inspector.threads.trees.growing import Growth, grow_trees

    last = knots[-1]
    answered = None if parent is None else knots[parent].id
    shoot = Shoot(uuid.uuid4().bytes, last.mark, last.at + 1, "inform", 0, answered, group=last.group)
    with transaction.atomic():
        effort = grow_trees([Growth(trace.pk, [shoot], after=last.id)], "trace", trace.workspace_id)
        transaction.set_rollback(True)
    return effort


def measure_lengthening(trace: Trace, shape: str, whole_seconds: float) -> Iterator[Row]:
    """The product's own step for a trace to which one message was appended, beside drawing it whole.

    Args:
        trace: one whose tree is drawn, of a single conversation.
        shape: what that looks like.
        whole_seconds: what drawing it took, with reading its messages.
    """
    from django.db import connection

    from inspector.threads.models import Message, TraceCarry
    from inspector.threads.trees.tracing import draw_traces

    times = []
    for _ in range(ROUNDS):
        trace.refresh_from_db()
        if not TraceCarry.objects.filter(trace=trace).exists():
            raise RuntimeError("nothing is carried over the end of the trace")
        count = trace.message_count
        last = Message.objects.filter(order_time=trace.last_at).get()
        with connection.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO threads_message
                SELECT (jsonb_populate_record(model, jsonb_build_object(
                    'id', gen_random_uuid(), 'part', %s, 'order_index', %s, 'parent', model.id,
                    'order_time', model.order_time + interval '1 second'))).*
                  FROM threads_message AS model WHERE model.id = %s
                """,
                [count + 1, count, last.pk],
            )
            cursor.execute(
                "UPDATE threads_trace SET generation = generation + 1, fresh_at = last_at + interval '1 second'"
                " WHERE id = %s",
                [trace.pk],
            )
        start = time.perf_counter()
        draw_traces(trace=trace, fence=_nothing, finish=_nothing)
        times.append(time.perf_counter() - start)
        trace.refresh_from_db()
        if trace.message_count != count + 1:
            raise RuntimeError("the message is not in the trace")
    spent = statistics.median(times)
    about = f"drawing a trace of {trace.message_count:,} messages after one more v drawing it whole, {shape}"
    told = f"{spent * 1000:.1f} v {whole_seconds * 1000:.0f} ms, with the reading of messages"
    yield Row(Goal("grown", about, 0.2, 0.02, is_share=True), spent / whole_seconds, remark=told)


def _nothing() -> None:
    """A fence and an end for work that nobody else does."""
