"""The ledger of tasks: their rows, written where they came out otherwise, and what they hold of each change."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from inspector.intake.bulk import insert_rows, update_rows

from ..models import Conversation, Task
from ..placing.nodes import StoredNode
from .lifecycle import STANDING
from .plays import Play

# Of a task that changes more often, so many of its first and of its last changes are kept, and how many there were.
MOST_STEPS: Final = 100

TaskRow = tuple[Any, ...]
COLUMNS: Final = (
    *("key", "within_key", "native_id", "request", "act", "requester", "performer", "delegate", "delegation", "state"),
    *("deadline", "deadline_at", "first_at", "last_at", "asked_at", "acknowledged_at", "finished_at"),
    *("acknowledge_seconds", "finish_seconds", "message_count", "retries", "failures"),
    *("is_answered", "is_received", "is_inferred", "steps", "step_count", "digest", "place"),
)
_KEY, _DIGEST, _PLACE = 0, -2, -1


def write_steps(play: Play, nodes: Sequence[StoredNode]) -> str:
    """The changes of a task as JSON text: a list of [id of the message, event, state, link]."""
    kept = play.steps
    if len(kept) > 2 * MOST_STEPS:
        kept = [*kept[:MOST_STEPS], *kept[-MOST_STEPS:]]
    rows = [[nodes[step.at].id.hex, step.event, step.state, step.link] for step in kept]
    return json.dumps(rows, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class StepRow:
    """A change as it is stored; `link` is empty where the wire says that the message belongs to the task."""

    message_id: uuid.UUID
    event: str
    state: str
    link: str


def read_steps(text: str) -> list[StepRow]:
    """The changes that `write_steps` wrote."""
    return [StepRow(uuid.UUID(hex=name), *said) for name, *said in json.loads(text or "[]")]


def make_rows(plays: Sequence[Play], nodes: Sequence[StoredNode]) -> Iterator[TaskRow]:
    """The columns of each task's row: those of `COLUMNS`."""
    for play in plays:
        asked = nodes[play.request] if play.request is not None else None
        row = (
            play.key,
            play.within.key if play.within is not None else None,
            play.native_id,
            asked.id if asked else play.asked_elsewhere,
            (asked.performative or "") if asked else "",
            play.requester,
            play.performer,
            play.delegate,
            play.delegation,
            play.state or STANDING[0].value,
            play.deadline,
            play.deadline_at,
            play.first_at,
            play.last_at,
            play.asked_at,
            play.acknowledged_at,
            play.finished_at,
            _count_seconds(play.asked_at, play.acknowledged_at),
            _count_seconds(play.asked_at, play.finished_at),
            play.message_count,
            play.retries,
            play.failures,
            play.is_answered,
            asked is not None or play.asked_elsewhere is not None,
            play.is_inferred,
            write_steps(play, nodes),
            len(play.steps),
        )
        # A place may move with a message that comes in before it: it is written apart, and changes no digest.
        yield (*row, hashlib.sha256(repr(row).encode("utf-8", "backslashreplace")).digest(), nodes[play.position].place)


def _count_seconds(start: datetime | None, end: datetime | None) -> float | None:
    """The seconds between two moments; None where either is not known, or the clocks contradict the order."""
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()


def write_tasks(tasks: Sequence[tuple[Conversation, Sequence[TaskRow]]]) -> None:
    """Write the tasks of these conversations that are new or came out otherwise; call where they are held.

    One whose place alone has moved costs no more than that.
    """
    known = _read_known([conversation.pk for conversation, _ in tasks])
    fresh: list[TaskRow] = []
    changed: list[TaskRow] = []
    moved: list[TaskRow] = []
    stale: list[uuid.UUID] = []
    for conversation, rows in tasks:
        stored = known[conversation.pk]
        for row in rows:
            pk = make_task_id(conversation.pk, row[_KEY])
            digest, stands = stored.pop(pk, (b"", b""))
            if not digest:
                fresh.append((pk, conversation.pk, conversation.workspace_id, conversation.channel_id, *row))
            elif digest != row[_DIGEST]:
                changed.append((pk, conversation.pk, *row))
            elif stands != row[_PLACE]:
                moved.append((pk, conversation.pk, row[_PLACE]))
        stale += stored
    if stale:
        Task.objects.filter(pk__in=stale).delete()
    held = ("id", "conversation_id")
    if fresh:
        columns = (*held, "workspace_id", "channel_id", *COLUMNS)
        insert_rows(model=Task, columns=columns, rows=fresh, order_by=("conversation_id", "key"))
    if changed:
        update_rows(model=Task, columns=(*held, *COLUMNS), rows=changed, key_columns=len(held))
    if moved:
        update_rows(model=Task, columns=(*held, "place"), rows=moved, key_columns=len(held))


def _read_known(conversation_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, dict[uuid.UUID, tuple[bytes, bytes]]]:
    """Digest and place of each stored task, by conversation and id."""
    found: dict[uuid.UUID, dict[uuid.UUID, tuple[bytes, bytes]]] = defaultdict(dict)
    rows = Task.objects.filter(conversation_id__in=list(conversation_ids))
    for conversation_id, pk, digest, place in rows.values_list("conversation_id", "id", "digest", "place"):
        found[conversation_id][pk] = (bytes(digest), bytes(place))
    return found


def make_task_id(conversation_id: uuid.UUID, key: bytes) -> uuid.UUID:
    """The id of a task: it follows from what makes it this one, so that an address of it holds when it changes."""
    return uuid.UUID(bytes=hashlib.sha256(conversation_id.bytes + key).digest()[:16], version=5)
