"""The rows of tasks: written where they came out otherwise, with the changes of each."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet

from inspector.intake.bulk import insert_rows, update_rows

from ..models import Conversation, Task
from .states import STANDING, Step, TaskState

# Of a task that changes more often, so many of its first and of its last changes are kept, and how many there were.
MAX_STEPS: Final = 100

TaskRow = tuple[Any, ...]
COLUMNS: Final = (
    *("id", "conversation_id", "workspace_id", "channel_id", "place", "key"),
    *("within_key", "native_id", "request", "act", "requester", "performer", "delegate", "delegation", "state"),
    *("deadline", "deadline_at", "first_at", "last_at", "asked_at", "acknowledged_at", "finished_at"),
    *("acknowledge_seconds", "finish_seconds", "message_count", "retries", "failures"),
    *("is_answered", "is_inferred", "steps", "step_count"),
)


def write_steps(task: TaskState) -> str:
    """The changes of a task as JSON text: a list of [id of the message, event, state, link]."""
    rows = [[step.message_id.hex, *step[1:]] for step in bound_steps(task.steps)[0]]
    return json.dumps(rows, separators=(",", ":"))


def bound_steps(steps: list[Step]) -> tuple[list[Step], int]:
    """Of many changes the first and the last, and how many are left out."""
    left_out = max(0, len(steps) - 2 * MAX_STEPS)
    return ([*steps[:MAX_STEPS], *steps[-MAX_STEPS:]], left_out) if left_out else (steps, 0)


def read_steps(text: str) -> list[Step]:
    """The changes that `write_steps` wrote; their `link` is empty where the wire says that the message belongs here."""
    return [Step(uuid.UUID(hex=name), *said) for name, *said in json.loads(text or "[]")]


def make_row(conversation: Conversation, task: TaskState) -> TaskRow:
    """The columns of a task's row: those of `COLUMNS`."""
    said: dict[str, Any] = {
        "conversation_id": conversation.pk,
        "workspace_id": conversation.workspace_id,
        "channel_id": conversation.channel_id,
        "within_key": task.within.key if task.within is not None else None,
        "request": task.request or task.asked_elsewhere,
        "state": task.state or STANDING[0].value,
        "acknowledge_seconds": _count_seconds(task.asked_at, task.acknowledged_at),
        "finish_seconds": _count_seconds(task.asked_at, task.finished_at),
        "steps": write_steps(task),
        "step_count": len(task.steps) + task.left_out,
    }
    return tuple(said[name] if name in said else getattr(task, name) for name in COLUMNS)


def _count_seconds(start: datetime | None, end: datetime | None) -> float | None:
    """The seconds between two moments; None where either is not known, or the clocks contradict the order."""
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()


def write_tasks(rows: Iterable[TaskRow], *, known: QuerySet[Task]) -> None:
    """Write the rows that are new or came out otherwise, and drop the others; call where their conversations are held.

    Args:
        rows: as `make_row` gives them.
        known: the stored tasks that these are all of.
    """
    given = {row[0]: row for row in rows}
    stored = {
        row[0]: tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
        for row in known.values_list(*COLUMNS)
    }
    if gone := stored.keys() - given.keys():
        Task.objects.filter(pk__in=gone).delete()
    fresh = [row for pk, row in given.items() if pk not in stored]
    changed = [row for pk, row in given.items() if pk in stored and row != stored[pk]]
    insert_rows(model=Task, columns=COLUMNS, rows=fresh, order_by=("conversation_id", "key"))
    update_rows(model=Task, columns=COLUMNS, rows=changed, key_columns=2)
