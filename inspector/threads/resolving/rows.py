"""The rows of conversations, written from what their blocks come to."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.db.models import Exists, OuterRef
from django.utils import timezone

from inspector.intake.bulk import update_rows

from ..models import Conversation, Message, Task
from ..tasks.states import STANDING, TaskState, derive_state
from .summaries import ADDED_UP

LONGEST_SUBJECT: Final = 500
_COLUMNS: Final = ("id", "settled_generation", "settled_at", "state", "subject", *ADDED_UP)


def write_rows(
    totals: Sequence[tuple[Conversation, tuple[uuid.UUID | None, tuple[Any, ...]], str]],
) -> None:
    """Write the rows of these conversations, as `add_up` gave them, with how each stands; where they are held."""
    about = [subject for _, (subject, _), _ in totals if subject]
    topics = dict(Message.objects.filter(pk__in=about).values_list("id", "topic")) if about else {}
    now = timezone.now()
    rows = [
        (each.pk, each.generation, now, state, topics.get(subject, "")[:LONGEST_SUBJECT] if subject else "", *row)
        for each, (subject, row), state in totals
    ]
    update_rows(model=Conversation, columns=_COLUMNS, rows=rows)


def derive_state_of(tasks: Iterable[TaskState]) -> str:
    """How a conversation stands, by all of its tasks that a message belongs to."""
    states: tuple[set[str], set[str]] = (set(), set())
    for task in tasks:
        is_part = task.within is not None and task.within.message_count > 0
        states[is_part].add(task.state or STANDING[0].value)
    return derive_state(*states)


def read_state_of(conversation: Conversation) -> str:
    """The same by the rows of its tasks."""
    whole = Task.objects.filter(conversation=conversation, key=OuterRef("within_key"))
    rows = Task.objects.filter(conversation=conversation).annotate(is_part=Exists(whole)).order_by()
    states: tuple[set[str], set[str]] = (set(), set())
    for is_part, state in rows.values_list("is_part", "state").distinct():
        states[is_part].add(state)
    return derive_state(*states)
