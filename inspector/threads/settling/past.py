"""How a conversation and its tasks stood at a milestone, as text: what settling has overwritten since."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from django.db.models import Field

from ..models import Conversation, Task
from ..tasks.ledger import COLUMNS

_SUMMED: Final = (
    *("state", "subject", "agents", "dialects", "message_count", "missing_count", "severity", "tally"),
    *("first_at", "last_at"),
)

# Tasks by id, as they stood.
Tasks = Mapping[uuid.UUID, Task]


def write_stood(row: Conversation, tasks: Tasks) -> bytes:
    """How a conversation stood, as JSON text: what its row summed up, and those tasks that have changed since."""
    said = {
        "row": [getattr(row, name) for name in _SUMMED],
        "tasks": {pk.hex: [getattr(task, name) for name in COLUMNS] for pk, task in tasks.items()},
    }
    return json.dumps(said, default=_write_value, separators=(",", ":")).encode()


def read_stood(conversation: Conversation, text: bytes) -> tuple[Conversation, dict[uuid.UUID, Task]]:
    """What `write_stood` wrote: a row that is not to be saved, and the tasks."""
    said = json.loads(text)
    row = Conversation(pk=conversation.pk, **_read_values(Conversation, _SUMMED, said["row"]))
    tasks = {(pk := uuid.UUID(hex=name)): make_task(conversation, pk, values) for name, values in said["tasks"].items()}
    return row, tasks


def make_task(conversation: Conversation, pk: uuid.UUID, values: Iterable[Any]) -> Task:
    """A task as it stood, from the values of its columns (`COLUMNS`)."""
    return Task(pk=pk, conversation_id=conversation.pk, **_read_values(Task, COLUMNS, values))


def _write_value(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return value.hex
    return base64.b64encode(value).decode()


def _read_values(model: type[Conversation | Task], names: Iterable[str], values: Iterable[Any]) -> dict[str, Any]:
    read = {}
    for name, value in zip(names, values, strict=True):
        column = model._meta.get_field(name)
        said = column.to_python(value) if isinstance(column, Field) else value
        read[name] = bytes(said) if isinstance(said, memoryview) else said
    return read
