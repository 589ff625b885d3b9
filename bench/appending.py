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
