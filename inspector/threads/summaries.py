"""Reads that sum up: a conversation in five answers, its timeline, and what a delivery has reached."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Length

from inspector.intake.models import Delivery, Job, Record, Sighting

from .models import Conversation, Message
from .selectors import TreeRow, TreeWindow, read_body

# The acts that ask somebody for something.
ASKING: Final = ("request", "query", "delegate", "propose", "subscribe")
# The acts that say it did not work.
FAILING: Final = ("failure", "not-understood")


@dataclass(frozen=True, slots=True)
class Digest:
    """A conversation summed up.

    `severities` counts messages by their gravest note (0 is none), `senders` by who sent them ("" is nobody named).
    """

    asked: Message | None
    asked_count: int
    severities: dict[int, int]
    senders: dict[str, int]
    gravest: Sequence[Message]
    failed_count: int
    malformed_count: int


def sum_up(*, conversation: Conversation) -> Digest:
    """What a conversation asked for, who spoke how often, and where its gravest notes are (at most three)."""
    messages = Message.objects.shown().filter(conversation=conversation)
    asking = messages.filter(performative__in=ASKING)
    counts = messages.aggregate(
        failed=Count("id", filter=Q(performative__in=FAILING)), malformed=Count("id", filter=Q(performative=None))
    )
    severities = messages.values_list("severity").annotate(count=Count("id")).order_by("-severity")
    senders = messages.values_list("sender").annotate(count=Count("id"))
    return Digest(
        asked=asking.order_by("position").first(),
        asked_count=asking.count(),
        severities=dict(severities),
        senders=dict(senders),
        gravest=list(
            messages.filter(severity__gte=Message.Severity.WARNING).order_by("-severity", "position")[:3],
        ),
        failed_count=counts["failed"],
        malformed_count=counts["malformed"],
    )


def read_timeline(*, conversation: Conversation, offset: int = 0, limit: int = 200) -> TreeWindow:
    """The messages at the positions from `offset` to before `offset + limit`, in order, as rows without depth."""
    rows = Message.objects.shown().filter(conversation=conversation, position__gte=offset)
    found = list(rows.order_by("position")[: limit + 1])
    here = [message for message in found if message.position < offset + limit]
    return TreeWindow(
        rows=[TreeRow(0, message, read_body(message)) for message in here],
        offset=offset,
        next_offset=found[len(here)].position if len(found) > len(here) else None,
        previous_offset=max(0, offset - limit) if offset else None,
    )


def find_at(*, conversation: Conversation, position: int) -> uuid.UUID | None:
    """The message at a position of the timeline; None where there is none."""
    rows = Message.objects.shown().filter(conversation=conversation, position=position)
    return rows.values_list("pk", flat=True).first()


def find_openings(*, conversation_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """The English of the first message of each of these conversations: what one without a name is called by."""
    rows = Message.objects.shown().filter(
        conversation_id__in=list(conversation_ids), position=0, told_digest__isnull=False
    )
    return dict(rows.values_list("conversation_id", "english"))


def load_records(*, messages: Sequence[Message], most_bytes: int) -> dict[uuid.UUID, int]:
    """Give these messages their records in two queries, those over `most_bytes` left out.

    Returns:
        the size in bytes of each record that was left out, by its id; `has_record` tells which message has one.
    """
    ids = {message.record_id for message in messages}
    sizes = dict(Record.objects.filter(pk__in=ids).annotate(bytes=Length("source")).values_list("pk", "bytes"))
    left_out = {record_id: size for record_id, size in sizes.items() if size > most_bytes}
    records = Record.objects.in_bulk(ids - left_out.keys())
    for message in messages:
        if message.record_id in records:
            message.record = records[message.record_id]
    return left_out


def count_parts(*, record: Record) -> int:
    """How many messages were read from a record."""
    return Message.objects.filter(workspace_id=record.workspace_id, record=record).count()


def list_messages_of(*, record: Record) -> list[Message]:
    """The messages that were read from a record, by part, each with the record itself."""
    messages = list(Message.objects.filter(workspace_id=record.workspace_id, record=record).order_by("part"))
    for message in messages:
        message.record = record
    return messages


def has_record(message: Message) -> bool:
    """Whether the message's record is loaded, so that showing it costs no query."""
    return "record" in message._state.fields_cache


def list_conversations_of(*, delivery: Delivery, limit: int = 20) -> QuerySet[Conversation]:
    """The conversations that the delivery's first thousand records reached, the busiest first.

    Each has `reached`, how many messages of these records it holds.
    """
    first = Sighting.objects.filter(delivery=delivery).order_by("index").values("record_id")[:1000]
    reached = Conversation.objects.filter(workspace_id=delivery.workspace_id, messages__record_id__in=first)
    return reached.annotate(reached=Count("messages")).order_by("-reached", "pk")[:limit]


def is_settling(*, delivery: Delivery) -> bool:
    """Whether a conversation that this delivery reached still waits to be settled."""
    waiting: list[uuid.UUID] = list(
        Job.objects.filter(
            workspace_id=delivery.workspace_id,
            kind=Job.Kind.SETTLE,
            state__in=[Job.State.QUEUED, Job.State.RUNNING],
        ).values_list("subject", flat=True)[:1000]
    )
    if not waiting:
        return False
    unsettled = Conversation.objects.filter(pk__in=waiting, settled_generation__lt=F("generation"))
    return unsettled.filter(messages__record__sightings__delivery=delivery).exists()
