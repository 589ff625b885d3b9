"""The rows that a record's messages are inserted as: where each belongs, and what can be told of it already."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from dialects import Message, Reading
from inspector.accounts.models import make_id
from inspector.intake.bulk import write_array
from inspector.intake.facts import read_with_facts
from inspector.intake.models import Record
from inspector.intake.text import make_storable

from ..models import Conversation
from ..placing.keys import find_trace_basis, key_of_conversation, key_of_id, key_of_trace
from ..placing.links import Guess, guess_of, links_of, write_links
from ..telling.foretelling import ConversationKey, foresee
from ..telling.masks import find_masked
from ..telling.sights import decide_established, decide_sights
from ..telling.teller import Telling, foretell_record, severity_of, shorten_sentence

# In the order in which `make_inserts` gives them.
# A message that stood before: its id, its English, body, words and exact terms as they are stored.
Shown = tuple[uuid.UUID, str, str, str | None, str]
_BLANK: Final = ("", "", None, "{}")
MESSAGE_COLUMNS = (
    "id",
    "workspace_id",
    "channel_id",
    "conversation_id",
    "record_id",
    "part",
    "order_time",
    "order_basis",
    "order_source",
    "order_index",
    "dialect",
    "performative",
    "native_act",
    "topic",
    "sender",
    "receivers",
    "is_broadcast",
    "native_id",
    "id_key",
    "trace_id",
    "trace_key",
    "trace_basis",
    "task_id",
    "turn",
    "run",
    "status",
    "severity",
    "is_sealed",
    "sights",
    "place",
    "parent_key",
    "parent_basis",
    "parent_why",
    "english",
    "body",
    "words",
    "atoms",
    "links",
    "told_in",
    "told_digest",
    "established",
    "told_at",
)

LARGEST_TURN = 2**63 - 1
NOT_PLACED = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record that has been read: its messages and where each belongs."""

    record: Record
    reading: Reading
    places: tuple[tuple[bytes, str], ...]

    @property
    def guess(self) -> Guess | None:
        """The guess that its dialect is; None where no conversation can settle it otherwise."""
        return guess_of(self.reading)


class Foretold(NamedTuple):
    """A record that was read, and told as it is likely that it will be told; and its masked text, see `masks`."""

    arrival: Arrival
    telling: Telling
    masked: bytes | None


def read_record(record: Record, *, dialect: str | None = None) -> Arrival:
    """Read a record without context, in a given dialect where its conversation has settled one. Never raises."""
    reading = read_with_facts(record.wire_text, record.envelope, record.facts, dialect=dialect)
    key = partial(key_of_conversation, source=bytes(record.order_source), is_from_file=record.is_from_file)
    return Arrival(record, reading, tuple(key(message) for message in reading.messages))


def foretell_arrivals(arrivals: Sequence[Arrival], *, workspace_id: uuid.UUID) -> dict[uuid.UUID, Foretold]:
    """Tell these records as it is likely that they will be told, each by its id. Nothing is locked or written.

    Most of the time that it takes to read a log is spent here: nobody has to wait meanwhile.
    """
    places = {(arrival.record.channel_id, key) for arrival in arrivals for key, _ in arrival.places}
    rows = Conversation.objects.filter(
        workspace_id=workspace_id,
        channel_id__in={channel_id for channel_id, _ in places},
        key__in={key for _, key in places},
        generation__gt=0,
    )
    reached = {(channel_id, bytes(key)) for channel_id, key in rows.values_list("channel_id", "key")}
    # In the order of the timeline, so that most are told in the context that they have there.
    return {
        arrival.record.pk: Foretold(
            arrival,
            foretell(arrival, _list_conversations(arrival), reached=reached),
            find_masked(arrival.record, arrival.reading),
        )
        for arrival in sorted(arrivals, key=key_of_order)
    }


def _list_conversations(arrival: Arrival) -> list[ConversationKey]:
    return [(arrival.record.channel_id, key) for key, _ in arrival.places]


def foretell(
    arrival: Arrival, conversations: Sequence[ConversationKey], *, reached: Set[ConversationKey] | None = None
) -> Telling:
    """A record told in what its conversation likely holds, or told only if it asks for nothing.

    Args:
        arrival: the record as read.
        conversations: of each of its messages.
        reached: those that messages have reached already; None where all of them have been.
    """
    is_new = reached is not None and reached.isdisjoint(conversations)
    foreseen = foresee(conversations, is_new=is_new)
    if foreseen is None:
        return foretell_record(arrival.record, arrival.reading, None, position=1)
    position = foreseen.count + 1
    foreseen.count += len(conversations)
    return foretell_record(arrival.record, arrival.reading, foreseen.context, position=position)


def make_inserts(
    arrival: Arrival,
    conversation_ids: Sequence[uuid.UUID],
    guess: Guess | None,
    telling: Telling,
    before: Mapping[int, Shown] = MappingProxyType({}),
    *,
    at: datetime,
) -> Iterator[tuple[object, ...]]:
    """The rows of a record's messages, yet to be placed; told already where their context is known or makes no odds.

    Args:
        arrival: the record as read.
        conversation_ids: of each of its messages.
        guess: of its dialect, where a conversation may settle it otherwise.
        telling: it as it was foretold.
        before: what stood there before, by part.
        at: since when what is told is told so.
    """
    for message, conversation_id in zip(arrival.reading.messages, conversation_ids, strict=True):
        message_id, *shown = before.get(message.part) or (make_id(), *_BLANK)
        yield (
            *_make_insert(arrival, message, message_id, conversation_id),
            *_make_told(arrival, message, telling, guess, at, shown),
        )


def _make_insert(
    arrival: Arrival, message: Message, message_id: uuid.UUID, conversation_id: uuid.UUID
) -> tuple[object, ...]:
    record = arrival.record
    turn = message.turn if message.turn is not None and 0 <= message.turn <= LARGEST_TURN else None
    return (
        message_id,
        record.workspace_id,
        record.channel_id,
        conversation_id,
        record.pk,
        message.part,
        *order_of(record),
        arrival.reading.dialect,
        message.performative,
        make_storable(message.native_act or ""),
        make_storable(shorten_sentence(message.topic or "")),
        make_storable(message.sender or ""),
        make_storable(write_array(message.receivers)),
        message.broadcast,
        make_storable(message.message_id or ""),
        key_of_id(message.message_id) if message.message_id else None,
        make_storable(message.trace_id or ""),
        key_of_trace(message.trace_id) if message.trace_id else None,
        find_trace_basis(message, arrival.reading),
        make_storable(message.task_id or ""),
        turn,
        1,
        make_storable(message.status or ""),
    )


def _make_told(
    arrival: Arrival, message: Message, telling: Telling, guess: Guess | None, at: datetime, shown: Sequence[object]
) -> tuple[object, ...]:
    row = telling.rows.get(message.part)
    links = links_of(
        message,
        dialect=arrival.reading.dialect,
        wire=arrival.reading.wire,
        guess=guess,
        size_bytes=max(1, len(arrival.record.source)),
    )
    cited = next((way.key for way in links.ways if way.whom == "message-id" and way.key), None)
    if row is None:
        severity = severity_of(arrival.reading, message)
        is_sealed = message.security.encrypted and not message.security.opened
        sights = decide_sights(record=arrival.record, read=message, severity=severity)
        told: tuple[object, ...] = (*shown, write_links(links), telling.told_in, None, "", None)
    else:
        severity, is_sealed = row.severity, row.is_sealed
        # What a record establishes is kept with its first part.
        established = telling.established if message is arrival.reading.messages[0] else ""
        sights = row.sights | decide_established(established)
        told = (
            row.english,
            row.body,
            row.words,
            row.atoms,
            write_links(links),
            telling.told_in,
            row.digest,
            established,
            at,
        )
    # A message that cites another must be found by that before it is ever settled.
    return (severity, is_sealed, sights, NOT_PLACED, cited, "", "", *told)


def order_of(record: Record) -> tuple[datetime, str, bytes, int]:
    """The record's order key as the columns of its messages."""
    return record.order_time, record.order_basis, bytes(record.order_source), record.order_index


def key_of_order(arrival: Arrival) -> tuple[Any, ...]:
    """What sorts records as the timeline does."""
    time, _, source, index = order_of(arrival.record)
    return time, source, index, bytes(arrival.record.identity)
