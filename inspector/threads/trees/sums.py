"""Sums: what the row of a trace says of its messages, and how it is written."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.utils import timezone

from inspector.intake.bulk import update_rows

from ..models import Message, Trace
from .strands import Strand

LONGEST_SUBJECT: Final = 500
_TIMES: Final = ("first_at", "last_at")


class Sum(NamedTuple):
    """What a trace's row says, in the order of its columns."""

    digest: bytes
    state: str
    subject: str
    agents: Sequence[str]
    dialects: Sequence[str]
    message_count: int
    conversation_count: int
    missing_count: int
    open_count: int
    severity: int
    first_at: datetime | None
    last_at: datetime | None


def tell_sum(said: Sum) -> dict[str, Any]:
    """What a row says, as JSON has it."""
    times = {name: at.isoformat() if (at := getattr(said, name)) else None for name in _TIMES}
    return said._asdict() | times | {"digest": said.digest.hex()}


def read_sum(said: dict[str, Any]) -> Sum:
    """What `tell_sum` told."""
    times = {name: datetime.fromisoformat(said[name]) if said[name] else None for name in _TIMES}
    return Sum(**said | times | {"digest": bytes.fromhex(said["digest"])})


def sum_up(strand: Strand, subject: str) -> Sum:
    """What all the messages of a trace add up to."""
    return Sum(
        digest=strand.elements.seal(),
        state=strand.state,
        subject=subject,
        agents=list(strand.agents),
        dialects=[name for name, _ in strand.dialects.most_common()],
        message_count=len(strand.knots),
        conversation_count=len(strand.conversations),
        missing_count=len(strand.ghosts),
        open_count=strand.count_open(),
        severity=strand.severity,
        first_at=strand.first_at,
        last_at=strand.last_at,
    )


def read_topics(message_ids: Iterable[uuid.UUID | None]) -> dict[uuid.UUID | None, str]:
    """What these messages are about, as a subject has room for it; nothing where there is no message."""
    found: dict[uuid.UUID | None, str] = defaultdict(str)
    rows = Message.objects.filter(pk__in=[pk for pk in message_ids if pk]).values_list("id", "topic")
    found.update((pk, topic[:LONGEST_SUBJECT]) for pk, topic in rows)
    return found


def write_sum(trace: Trace, said: Sum, **more: Any) -> None:
    """Write the row of this trace, drawn up to its generation as loaded, and more columns of it."""
    drawn = {"settled_generation": trace.generation, "settled_at": timezone.now()}
    Trace.objects.filter(pk=trace.pk).update(**drawn, **said._asdict(), **more)


def write_sums(sums: Sequence[tuple[Trace, Sum]]) -> None:
    """Write the rows of these traces, each drawn up to its generation as loaded."""
    now = timezone.now()
    columns = ("id", "settled_generation", "settled_at", *Sum._fields)
    rows = [(trace.pk, trace.generation, now, *each) for trace, each in sums]
    update_rows(model=Trace, columns=columns, rows=rows)
