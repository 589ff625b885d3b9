"""The rows of conversations, written from what their blocks come to; and the rows of the tasks of several blocks."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from django.db.models import Exists, OuterRef
from django.utils import timezone

from inspector.intake.bulk import update_rows
from inspector.intake.text import make_storable

from ..models import Conversation, Message, Task
from ..placing.places import BEYOND, read_instant
from ..tasks.replay import Play
from ..tasks.rows import TaskRow, make_row, write_tasks
from ..tasks.states import Found, derive_state, make_task_id
from .summaries import Total, write_tally
from .tasks import Part, add_parts, read_task
from .view import Facts, digest_key

LONGEST_SUBJECT: Final = 500
_COLUMNS: Final = (
    *("id", "settled_generation", "settled_at", "settled_digest", "state", "subject", "agents", "dialects"),
    *("message_count", "missing_count", "severity", "tally", "first_at", "last_at"),
)


def write_rows(
    conversations: Sequence[Conversation], totals: Mapping[uuid.UUID, Total], states: Mapping[uuid.UUID, str]
) -> None:
    """Write the rows of these conversations; call inside the transaction that holds them."""
    about = [total.subject_of for total in totals.values() if total.subject_of]
    topics = dict(Message.objects.filter(pk__in=about).values_list("id", "topic")) if about else {}
    now = timezone.now()
    rows = []
    for each in conversations:
        total = totals[each.pk]
        rows.append(
            (
                each.pk,
                each.generation,
                now,
                total.digest,
                states[each.pk],
                topics.get(total.subject_of, "")[:LONGEST_SUBJECT] if total.subject_of else "",
                total.agents,
                total.dialects,
                total.message_count,
                total.missing_count,
                total.severity,
                make_storable(write_tally(total.tally)),
                None if total.first_at is None else read_instant(total.first_at),
                None if total.last_at is None else read_instant(total.last_at),
            )
        )
    update_rows(model=Conversation, columns=_COLUMNS, rows=rows)


def derive_state_of(plays: Iterable[Play]) -> str:
    """How a conversation stands, by all of its tasks."""
    states: tuple[set[str], set[str]] = (set(), set())
    for play in plays:
        if play.standing is not None:
            is_part, state = play.standing
            states[is_part].add(state)
    return derive_state(*states)


def read_state_of(conversation: Conversation) -> str:
    """The same by the rows of its tasks."""
    whole = Task.objects.filter(conversation=conversation, key=OuterRef("within_key"))
    rows = Task.objects.filter(conversation=conversation).annotate(is_part=Exists(whole)).order_by()
    states: tuple[set[str], set[str]] = (set(), set())
    for is_part, state in rows.values_list("is_part", "state").distinct():
        states[is_part].add(state)
    return derive_state(*states)


def write_touched(conversation: Conversation, touched: Iterable[uuid.UUID], facts: Facts) -> None:
    """Write the rows of tasks of which something was said in some blocks, as all blocks say; inside the transaction."""
    keys = {digest_key(("task", task_id.hex)): task_id for task_id in touched}
    rows: list[TaskRow] = []
    gone: list[uuid.UUID] = []
    for key, found in facts.list_everywhere(list(keys)).items():
        task_id = keys[key]
        play = None
        if found:
            _, last, _, within = read_task(task_id, found[-1].value)
            play = add_parts(last, [Part.read(each.extra) for each in found if each.extra is not None])
            if within is not None:
                play.within = Play(Found(within, make_task_id(conversation.pk, within)))
        if play is None or not play.message_count:
            gone.append(task_id)
        else:
            rows.append(make_row(play))
    write_tasks([(conversation, rows)], since={conversation.pk: BEYOND})
    if gone:
        Task.objects.filter(conversation=conversation, pk__in=gone).delete()
