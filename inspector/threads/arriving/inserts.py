"""The rows that a record's messages are inserted as: where each belongs, and what can be told of it already."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from dialects import Message, Reading
from inspector.accounts.models import make_id
from inspector.intake.bulk import write_array
from inspector.intake.facts import read_with_facts
from inspector.intake.models import Record
from inspector.intake.text import make_storable

from ..placing.keys import find_trace_basis, key_of_conversation, key_of_id, key_of_trace
from ..placing.links import Guess, Links, guess_of, links_of, write_links
from ..telling.sights import decide_established, decide_sights
from ..telling.teller import severity_of, shorten_sentence, tell_without_context

# A message that stood before: its id, its English, body, words and exact terms as they are stored.
Shown = tuple[uuid.UUID, str, bytes, str | None, str]
_BLANK: Final = ("", b"", None, "{}")

# What a message says by itself; where it is placed; what its telling leaned on; what it was told as; and the lines that
# it stands below (`trees.lines`).
OWN: Final = (
    *("id", "workspace_id", "channel_id", "conversation_id", "record_id", "part"),
    *("order_time", "order_basis", "order_source", "order_index"),
    *("dialect", "performative", "native_act", "topic", "sender", "receivers", "is_broadcast", "native_id", "id_key"),
    *("trace_id", "trace_key", "trace_basis", "task_id", "turn", "status", "links"),
)
PLACED: Final = ("place", "run", "parent", "parent_key", "parent_basis", "parent_why", "task")
LEANED: Final = ("told_in", "established", "sights")
TOLD: Final = ("severity", "is_sealed", "english", "body", "words", "atoms", "told_digest", "told_at")
HUNG: Final = ("above", "trace_above")
MESSAGE_COLUMNS: Final = (*OWN, *PLACED, *LEANED, *TOLD, *HUNG)

LARGEST_TURN = 2**63 - 1


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


def read_record(record: Record, *, dialect: str | None = None) -> Arrival:
    """Read a record without context, in a given dialect where its conversation has settled one. Never raises."""
    reading = read_with_facts(record.wire_text, record.envelope, record.facts, dialect=dialect)
    key = partial(key_of_conversation, source=bytes(record.order_source), is_from_file=record.is_from_file)
    return Arrival(record, reading, tuple(key(message) for message in reading.messages))


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that is to be inserted. `own` are the values of the columns `OWN`."""

    arrival: Arrival
    message: Message
    links: Links
    own: tuple[Any, ...]

    @property
    def values(self) -> dict[str, Any]:
        """Its own values by column."""
        return dict(zip(OWN, self.own, strict=True))


def make_new(arrival: Arrival, conversation_ids: Sequence[uuid.UUID], guess: Guess | None) -> list[NewMessage]:
    """The messages of a record that is to be inserted, each with an id of its own.

    Args:
        arrival: the record as read.
        conversation_ids: of each of its messages.
        guess: of its dialect, where a conversation may settle it otherwise.
    """
    found = []
    for message, conversation_id in zip(arrival.reading.messages, conversation_ids, strict=True):
        links = links_of(
            message,
            dialect=arrival.reading.dialect,
            wire=arrival.reading.wire,
            guess=guess,
            size_bytes=max(1, len(arrival.record.source)),
        )
        found.append(NewMessage(arrival, message, links, _list_own(arrival, message, conversation_id, links)))
    return found


def _list_own(arrival: Arrival, message: Message, conversation_id: uuid.UUID, links: Links) -> tuple[object, ...]:
    record = arrival.record
    turn = message.turn if message.turn is not None and 0 <= message.turn <= LARGEST_TURN else None
    return (
        make_id(),
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
        write_array([make_storable(name) for name in message.receivers]),
        message.broadcast,
        make_storable(message.message_id or ""),
        key_of_id(message.message_id) if message.message_id else None,
        make_storable(message.trace_id or ""),
        key_of_trace(message.trace_id) if message.trace_id else None,
        find_trace_basis(message, arrival.reading),
        make_storable(message.task_id or ""),
        turn,
        make_storable(message.status or ""),
        write_links(links),
    )


def make_unplaced(
    arrival: Arrival, messages: Sequence[NewMessage], before: Mapping[int, Shown], *, at: datetime
) -> Iterator[tuple[object, ...]]:
    """The rows of a record's messages that are to be placed later; told already where no context makes a difference.

    Args:
        arrival: the record as read.
        messages: its messages.
        before: what stood there before, by part: it is shown until the message is told.
        at: since when what is told is told so.
    """
    telling = tell_without_context(arrival.record, arrival.reading)
    for new in messages:
        message = new.message
        message_id, *shown = before.get(message.part) or (new.own[0], *_BLANK)
        cited = next((way.key for way in new.links.ways if way.whom == "message-id" and way.key), None)
        row = telling.rows.get(message.part)
        told: tuple[object, ...]
        if row is None:
            severity = severity_of(arrival.reading, message)
            is_sealed = message.security.encrypted and not message.security.opened
            sights = decide_sights(record=arrival.record, read=message, severity=severity)
            told = (telling.told_in, "", sights, severity, is_sealed, *shown, None, None)
        else:
            # What a record establishes is kept with its first part.
            established = telling.established if message is arrival.reading.messages[0] else ""
            told = (telling.told_in, established, row.sights | decide_established(established), *row.list_told(), at)
        # A message that cites another must be found by that before it is ever placed.
        yield (message_id, *new.own[1:], None, 1, None, cited, "", "", None, *told, None, None)


def order_of(record: Record) -> tuple[datetime, str, bytes, int]:
    """The record's order key as the columns of its messages."""
    return record.order_time, record.order_basis, bytes(record.order_source), record.order_index


def key_of_order(arrival: Arrival) -> tuple[Any, ...]:
    """What sorts records as the timeline does."""
    time, _, source, index = order_of(arrival.record)
    return time, source, index, bytes(arrival.record.identity)
