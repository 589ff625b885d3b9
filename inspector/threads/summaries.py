"""Reads that sum up: a conversation in five answers, its timeline, and what a delivery has reached."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import BinaryField, Case, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Length

from inspector.intake.models import Delivery, Job, Record, Sighting

from .models import Conversation, Message
from .placing.numbering import load_places
from .resolving.tallies import ASKING, FAILING, GREETING, MOST_GRAVE, MOST_SENDERS, Tally, read_tally
from .selectors import TreeRow, TreeWindow, read_body

# Of so many first messages one is taken that says what a conversation is about.
OPENING_MESSAGES = 20
_OPENINGS = """
SELECT DISTINCT ON (asked.id) asked.id, opening.english
FROM unnest(%s::uuid[]) AS asked (id)
CROSS JOIN LATERAL (
    SELECT message.english, message.performative, message.place
    FROM threads_message AS message
    WHERE message.conversation_id = asked.id AND message.place IS NOT NULL AND message.told_digest IS NOT NULL
        AND NOT EXISTS (SELECT FROM intake_hiddenrecord AS hidden WHERE hidden.record_id = message.record_id)
    ORDER BY message.place
    LIMIT %s
) AS opening
ORDER BY asked.id, COALESCE(opening.performative = ANY(%s), FALSE), opening.place
"""


@dataclass(frozen=True, slots=True)
class Digest:
    """A conversation summed up: its tally, the first message that asks for something, and the gravest ones."""

    tally: Tally
    asked: Message | None
    gravest: Sequence[Message]


def sum_up(*, conversation: Conversation) -> Digest:
    """What a conversation asked for, who spoke how often, and where its gravest notes are, in one query."""
    tally = read_tally(conversation.tally) if conversation.tally else _count_messages(conversation)
    places = {*tally.gravest, *([] if tally.asked is None else [tally.asked])}
    rows = Message.objects.shown().filter(conversation=conversation, place__in=map(bytes.fromhex, places))
    found = {bytes(message.place).hex(): message for message in rows if message.place} if places else {}
    return Digest(
        tally=tally,
        asked=found.get(tally.asked) if tally.asked is not None else None,
        gravest=[found[place] for place in tally.gravest if place in found],
    )


def _count_messages(conversation: Conversation) -> Tally:
    """The same from the rows, for a conversation that has not been settled since tallies are kept."""
    messages = Message.objects.shown().filter(conversation=conversation)
    counts = messages.aggregate(
        asked_count=Count("id", filter=Q(performative__in=ASKING)),
        failed_count=Count("id", filter=Q(performative__in=FAILING)),
        malformed_count=Count("id", filter=Q(performative=None)),
    )
    severities = messages.values_list("severity").annotate(count=Count("id")).order_by("severity")
    known = messages.filter(sender__in=conversation.agents[:MOST_SENDERS])
    senders = known.values_list("sender").annotate(count=Count("id")).order_by()
    placed = messages.filter(place__isnull=False)
    gravest = placed.filter(severity__gte=Message.Severity.WARNING).order_by("-severity", "place")
    asked = placed.filter(performative__in=ASKING).order_by("place").values_list("place", flat=True).first()
    return Tally(
        asked=bytes(asked).hex() if asked else None,
        **counts,
        severities=dict(severities),
        senders=dict(senders),
        gravest=[bytes(place or b"").hex() for place in gravest.values_list("place", flat=True)[:MOST_GRAVE]],
    )


def read_timeline(*, conversation: Conversation, offset: int = 0, limit: int = 200) -> TreeWindow:
    """The messages at the positions from `offset` to before `offset + limit`, in order, as rows without depth."""
    places = load_places(conversation)
    rows = Message.objects.shown().filter(conversation=conversation, place__gte=places.find_place(offset))
    found = list(rows.order_by("place")[: limit + 1])
    for message in found:
        message.number = places.find_position(message.place) + 1
    here = [message for message in found if message.number <= offset + limit]
    return TreeWindow(
        rows=[TreeRow(0, message, read_body(message)) for message in here],
        offset=offset,
        next_offset=found[len(here)].number - 1 if len(found) > len(here) else None,
        previous_offset=max(0, offset - limit) if offset else None,
    )


def read_beginning(*, conversation: Conversation, limit: int = 50) -> list[TreeRow]:
    """The first messages of a conversation in the order of time, as rows without depth; one statement."""
    rows = Message.objects.shown().filter(conversation=conversation, place__isnull=False).order_by("place")[:limit]
    found = list(rows)
    for number, message in enumerate(found, 1):
        message.number = number
    return [TreeRow(0, message, read_body(message)) for message in found]


def find_openings(*, conversation_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """The English that each of these conversations opens with: what one without a name is called by.

    A greeting says nothing of what comes, so that the first of the opening messages is taken that is none, if there is
    one.
    """
    with connection.cursor() as cursor:
        cursor.execute(_OPENINGS, [list(conversation_ids), OPENING_MESSAGES, list(GREETING)])
        return dict(cursor.fetchall())


def opening_of() -> Subquery:
    """The same of the conversation in a row, as a value of it; null where nothing is told."""
    of_outer = {"conversation": OuterRef(OuterRef("pk")), "place__isnull": False, "told_digest__isnull": False}
    first = Message.objects.shown().filter(**of_outer).order_by("place").values("pk")[:OPENING_MESSAGES]
    is_greeting = Case(When(performative__in=GREETING, then=Value(1)), default=Value(0))
    return Subquery(Message.objects.filter(pk__in=first).order_by(is_greeting, "place").values("english")[:1])


def load_records(*, messages: Sequence[Message], most_bytes: int) -> dict[uuid.UUID, int]:
    """Give these messages their records in one query, those over `most_bytes` left out.

    Returns:
        the size in bytes of each record that was left out, by its id; `has_record` tells which message has one.
    """
    is_bearable = Q(size_bytes__lte=most_bytes)
    bearable = {
        f"bearable_{name}": Case(When(is_bearable, then=F(name)), default=None, output_field=BinaryField())
        for name in ("source", "wire")
    }
    rows = Record.objects.filter(pk__in={message.record_id for message in messages})
    records: dict[uuid.UUID, Any] = {
        record.pk: record
        for record in rows.defer("source", "wire").annotate(size_bytes=Length("source")).annotate(**bearable)
    }
    left_out = {pk: record.size_bytes for pk, record in records.items() if record.size_bytes > most_bytes}
    for pk, record in records.items():
        if pk not in left_out:
            record.source, record.wire = record.bearable_source, record.bearable_wire
    for message in messages:
        if message.record_id in records and message.record_id not in left_out:
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
    return find_work(delivery=delivery) == Job.Kind.SETTLE


def find_work(*, delivery: Delivery) -> Job.Kind | None:
    """What the conversations that a delivery reached wait for next: to be settled, to be examined, or nothing."""
    states = (Job.State.QUEUED, Job.State.RUNNING)
    reached = Message.objects.filter(conversation=OuterRef("subject"), record__sightings__delivery=delivery)
    unsettled = Conversation.objects.filter(pk=OuterRef("subject"), settled_generation__lt=F("generation"))
    waiting = Job.objects.filter(workspace_id=delivery.workspace_id, state__in=states).filter(
        Q(kind=Job.Kind.EXAMINE) | Q(Exists(unsettled), kind=Job.Kind.SETTLE), Exists(reached)
    )
    kinds = set(waiting.order_by().values_list("kind", flat=True).distinct())
    return Job.Kind(max(kinds)) if kinds else None
