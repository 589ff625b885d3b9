"""The rows of tasks: written where they came out otherwise, with the changes of each."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Container, Sequence
from datetime import datetime
from typing import Any, Final

from inspector.intake.bulk import insert_rows, update_rows

from ..models import Conversation, Task
from .states import STANDING, Step, TaskState, make_task_id

# Of a task that changes more often, so many of its first and of its last changes are kept, and how many there were.
MAX_STEPS: Final = 100

TaskRow = tuple[Any, ...]
COLUMNS: Final = (
    *("key", "within_key", "native_id", "request", "act", "requester", "performer", "delegate", "delegation", "state"),
    *("deadline", "deadline_at", "first_at", "last_at", "asked_at", "acknowledged_at", "finished_at"),
    *("acknowledge_seconds", "finish_seconds", "message_count", "retries", "failures"),
    *("is_answered", "is_received", "is_inferred", "mode", "ends", "ending", "steps", "step_count", "digest", "place"),
)
_KEY, _DIGEST, _PLACE = 0, -2, -1


def write_steps(task: TaskState) -> str:
    """The changes of a task as JSON text: a list of [id of the message, event, state, link]."""
    kept = task.steps
    if len(kept) > 2 * MAX_STEPS:
        kept = [*kept[:MAX_STEPS], *kept[-MAX_STEPS:]]
    rows = [[step.message_id.hex, *step[1:]] for step in kept]
    return json.dumps(rows, separators=(",", ":"))


def read_steps(text: str) -> list[Step]:
    """The changes that `write_steps` wrote; their `link` is empty where the wire says that the message belongs here."""
    return [Step(uuid.UUID(hex=name), *said) for name, *said in json.loads(text or "[]")]


def make_row(task: TaskState) -> TaskRow:
    """The columns of a task's row: those of `COLUMNS`."""
    asked = task.request or task.asked_elsewhere
    said: dict[str, Any] = {
        "within_key": task.within.key if task.within is not None else None,
        "request": asked,
        "state": task.state or STANDING[0].value,
        "acknowledge_seconds": _count_seconds(task.asked_at, task.acknowledged_at),
        "finish_seconds": _count_seconds(task.asked_at, task.finished_at),
        "is_received": asked is not None,
        "steps": write_steps(task),
        "step_count": len(task.steps) + task.left_out,
    }
    row = tuple(said[name] if name in said else getattr(task, name) for name in COLUMNS[:_DIGEST])
    # A place may move with a message that comes in before it: it is written apart, and changes no digest.
    return (*row, hashlib.sha256(repr(row).encode("utf-8", "backslashreplace")).digest(), task.place)


def _count_seconds(start: datetime | None, end: datetime | None) -> float | None:
    """The seconds between two moments; None where either is not known, or the clocks contradict the order."""
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()


def write_tasks(tasks: Sequence[tuple[Conversation, Sequence[TaskRow]]], *, since: Container[uuid.UUID] = ()) -> None:
    """Write the tasks of these conversations that are new or came out otherwise; call where they are held.

    What else is stored of a conversation is dropped, unless `since` names it: then these are not all its tasks.
    """
    whole = [conversation.pk for conversation, _ in tasks if conversation.pk not in since]
    named = [make_task_id(each.pk, row[_KEY]) for each, rows in tasks if each.pk in since for row in rows]
    held = Task.objects.filter(conversation_id__in=whole), Task.objects.filter(pk__in=named)
    stored = {
        pk: (bytes(digest), bytes(place))
        for rows in held
        for pk, digest, place in rows.values_list("id", "digest", "place")
    }
    fresh: list[TaskRow] = []
    changed: list[TaskRow] = []
    moved: list[TaskRow] = []
    for conversation, rows in tasks:
        for row in rows:
            pk = make_task_id(conversation.pk, row[_KEY])
            digest, place = stored.pop(pk, (b"", b""))
            if not digest:
                fresh.append((pk, conversation.pk, conversation.workspace_id, conversation.channel_id, *row))
            elif digest != row[_DIGEST]:
                changed.append((pk, conversation.pk, *row))
            elif place != row[_PLACE]:
                moved.append((pk, conversation.pk, row[_PLACE]))
    if stored:
        Task.objects.filter(pk__in=list(stored)).delete()
    found = ("id", "conversation_id")
    if fresh:
        columns = (*found, "workspace_id", "channel_id", *COLUMNS)
        insert_rows(model=Task, columns=columns, rows=fresh, order_by=("conversation_id", "key"))
    update_rows(model=Task, columns=(*found, *COLUMNS), rows=changed, key_columns=len(found))
    update_rows(model=Task, columns=(*found, "place"), rows=moved, key_columns=len(found))
