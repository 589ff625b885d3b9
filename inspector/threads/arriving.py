"""Arriving: records are read, their messages inserted, their conversations marked. Nothing is placed or told here."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from django.db import connection
from django.db.models import F
from django.utils import timezone

from dialects import Message, Reading
from inspector.accounts.models import make_id
from inspector.intake.bulk import copy_rows, insert_rows, write_array
from inspector.intake.facts import read_with_facts
from inspector.intake.jobs import ask
from inspector.intake.models import Job, Record
from inspector.intake.text import make_storable

from .foretelling import foresee
from .keys import find_trace_basis, key_of_conversation, key_of_id, key_of_trace
from .links import Guess, guess_of, links_of, write_links
from .marking import mark_traces
from .models import Conversation
from .models import Message as MessageRow
from .telling import Telling, foretell_record, severity_of
from .wordings import keep_moved

_COLUMNS = (
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

_CONVERSATION_COLUMNS = (
    "id",
    "workspace_id",
    "channel_id",
    "key",
    "native_id",
    "title",
    "generation",
    "settled_generation",
    "state",
    "subject",
    "tally",
    "agents",
    "dialects",
    "message_count",
    "missing_count",
    "severity",
    "created_at",
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


def read_record(record: Record, *, dialect: str | None = None) -> Arrival:
    """Read a record without context, in a given dialect where its conversation has settled one. Never raises."""
    reading = read_with_facts(record.wire_text, record.envelope, record.facts, dialect=dialect)
    key = partial(key_of_conversation, source=bytes(record.order_source), is_from_file=record.is_from_file)
    return Arrival(record, reading, tuple(key(message) for message in reading.messages))


def hold_records(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Lock the records of these arrivals until the transaction ends, and follow those that have moved meanwhile.

    Without it a worker that read a record before an earlier sighting moved it would put its messages back.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, order_time, order_basis, order_source, order_index, facts, is_from_file FROM intake_record"
            " WHERE id = ANY(%s) ORDER BY identity FOR NO KEY UPDATE",
            [[arrival.record.pk for arrival in arrivals]],
        )
        held = {pk: place for pk, *place in cursor.fetchall()}
    return [_follow(arrival, held[arrival.record.pk]) for arrival in arrivals]


# What an earlier sighting gives a record anew.
_MOVED = ("order_time", "order_basis", "order_source", "order_index", "facts", "is_from_file")


def _follow(arrival: Arrival, held: Sequence[Any]) -> Arrival:
    record = arrival.record
    if [*order_of(record), record.facts] == [*held[:2], bytes(held[2]), *held[3:5]]:
        return arrival
    for name, value in zip(_MOVED, held, strict=True):
        setattr(record, name, value)
    return read_record(record)


def insert_arrivals(
    *,
    arrivals: Sequence[Arrival],
    workspace_id: uuid.UUID,
    moved: Sequence[uuid.UUID],
    also_dirty: Iterable[uuid.UUID] = (),
    settle_after_seconds: float = 0,
) -> None:
    """Insert the messages of these records and mark their conversations; call inside a transaction.

    Args:
        arrivals: records of one workspace.
        workspace_id: that workspace.
        moved: ids of those among the records whose order key or facts changed: their messages are inserted anew.
        also_dirty: conversations to be marked together with theirs, all in one order.
        settle_after_seconds: how long their settling may wait for more.
    """
    hold_channels({arrival.record.channel_id for arrival in arrivals}, is_shared=True)
    old = MessageRow.objects.filter(workspace_id=workspace_id, record_id__in=moved)
    dirty: set[uuid.UUID] = {*also_dirty, *(old.values_list("conversation_id", flat=True) if moved else ())}
    conversations, new = _find_conversations(arrivals, workspace_id)
    cited: dict[uuid.UUID, set[bytes]] = defaultdict(set)
    for arrival in arrivals:
        for message, (key, _) in zip(arrival.reading.messages, arrival.places, strict=True):
            dirty.add(conversations[arrival.record.channel_id, key])
            if message.message_id:
                cited[arrival.record.channel_id].add(key_of_id(message.message_id))
    dirty.update(find_citing(cited, workspace_id))
    now = timezone.now()
    # Conversations before their messages: settling locks them in the same order.
    mark_dirty(conversation_ids=dirty, workspace_id=workspace_id, settle_after_seconds=settle_after_seconds)
    if moved:
        mark_traces(messages=old, workspace_id=workspace_id)
        keep_moved(messages=old, at=now)
        old.delete()
    rows = (
        row
        # In the order of the timeline, so that most are told in the context that they have there.
        for arrival in sorted(arrivals, key=_key_of_order)
        for row in make_inserts(
            arrival,
            [conversations[arrival.record.channel_id, key] for key, _ in arrival.places],
            arrival.guess,
            is_new=all(conversations[arrival.record.channel_id, key] in new for key, _ in arrival.places),
            at=now,
        )
    )
    # Whoever inserts messages of these records holds them, so that what is not there now does not come meanwhile.
    if _are_read_before([arrival.record.pk for arrival in arrivals]):
        insert_rows(model=MessageRow, columns=_COLUMNS, rows=rows, order_by=("record_id", "part"))
    else:
        copy_rows(model=MessageRow, columns=_COLUMNS, rows=rows)


def _are_read_before(record_ids: Sequence[uuid.UUID]) -> bool:
    """Whether any of these records has messages."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM threads_message WHERE record_id = ANY(%s))", [list(record_ids)])
        return bool(cursor.fetchall()[0][0])


def replace_parts(arrival: Arrival, conversation: Conversation, guess: Guess | None, *, at: datetime) -> None:
    """Put the messages of a record that was read otherwise in the place of its earlier ones; each part keeps its id.

    Call inside a transaction that holds the conversation and those that cite it (`find_keys`), at the time of the
    settling that does so.
    """
    old = MessageRow.objects.filter(conversation=conversation, record=arrival.record)
    ids = dict(old.values_list("part", "id"))
    mark_traces(messages=old, workspace_id=conversation.workspace_id)
    old.delete()
    rows = make_inserts(arrival, [conversation.pk] * len(arrival.reading.messages), guess, ids, at=at)
    insert_rows(model=MessageRow, columns=_COLUMNS, rows=rows, order_by=("record_id", "part"))


def find_keys(conversation: Conversation, arrival: Arrival) -> set[bytes]:
    """The keys of the ids that a record's messages bear in a conversation, and of those they bear as read now."""
    old = MessageRow.objects.filter(conversation=conversation, record=arrival.record, id_key__isnull=False)
    borne = {bytes(key) for key in old.values_list("id_key", flat=True) if key}
    return borne | {key_of_id(message.message_id) for message in arrival.reading.messages if message.message_id}


def hold_channels(channel_ids: Iterable[uuid.UUID], *, is_shared: bool) -> None:
    """Until the transaction ends, keep arriving (shared) and looking up cited ids (alone) apart in these channels.

    Else a message that arrives and a conversation that cites it could pass each other unseen, each before the other
    is committed, and the ghost would stay.
    """
    function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        for channel_id in sorted(channel_ids):
            cursor.execute(f"SELECT {function}(%s)", [int.from_bytes(channel_id.bytes[8:], signed=True)])


def hold_conversations(conversation_ids: Iterable[uuid.UUID]) -> None:
    """Lock conversations until the transaction ends, in the order of their ids so that nobody deadlocks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM threads_conversation WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE",
            (sorted(conversation_ids),),
        )


def mark_dirty(*, conversation_ids: set[uuid.UUID], workspace_id: uuid.UUID, settle_after_seconds: float = 0) -> None:
    """Count the conversations up and ask for their settling, in the order of their ids so that nobody deadlocks."""
    ids = sorted(conversation_ids)
    if not ids:
        return
    hold_conversations(ids)
    Conversation.objects.filter(pk__in=ids).update(generation=F("generation") + 1)
    ask(kind=Job.Kind.SETTLE, subjects=ids, workspace_id=workspace_id, delay_seconds=settle_after_seconds)


def _find_conversations(
    arrivals: Sequence[Arrival], workspace_id: uuid.UUID
) -> tuple[dict[tuple[uuid.UUID, bytes], uuid.UUID], set[uuid.UUID]]:
    """The conversations by channel and key, made where there are none, and those that nothing has reached yet."""
    wanted: dict[tuple[uuid.UUID, bytes], str] = {}
    for arrival in arrivals:
        for key, native_id in arrival.places:
            wanted[arrival.record.channel_id, key] = native_id
    now = timezone.now()
    insert_rows(
        model=Conversation,
        columns=_CONVERSATION_COLUMNS,
        rows=[
            (make_id(), workspace_id, channel, key, make_storable(name), "", 0, 0, "open", "", "", [], [], 0, 0, 0, now)
            for (channel, key), name in wanted.items()
        ],
        order_by=("channel_id", "key"),
    )
    rows = Conversation.objects.filter(
        workspace_id=workspace_id, channel_id__in={channel for channel, _ in wanted}, key__in=[key for _, key in wanted]
    ).values_list("channel_id", "key", "id", "generation")
    found = {(channel, bytes(key)): conversation for channel, key, conversation, _ in rows}
    return found, {conversation for *_, conversation, generation in rows if generation == 0}


def find_citing(cited: dict[uuid.UUID, set[bytes]], workspace_id: uuid.UUID) -> set[uuid.UUID]:
    """The conversations that cite a message which has now arrived elsewhere in the channel.

    A ghost of theirs is filled, or a parent that they had found is no longer the only message of its id.
    """
    found: set[uuid.UUID] = set()
    for channel_id, keys in cited.items():
        citing = MessageRow.objects.filter(workspace_id=workspace_id, channel_id=channel_id, parent_key__in=list(keys))
        found.update(citing.values_list("conversation_id", flat=True))
    return found


def make_inserts(
    arrival: Arrival,
    conversation_ids: Sequence[uuid.UUID],
    guess: Guess | None,
    ids: Mapping[int, uuid.UUID] = MappingProxyType({}),
    is_new: bool = False,
    *,
    at: datetime,
) -> Iterator[tuple[object, ...]]:
    """The rows of a record's messages, yet to be placed; told already where their context is known or makes no odds.

    Args:
        arrival: the record as read.
        conversation_ids: of each of its messages.
        guess: of its dialect, where a conversation may settle it otherwise.
        ids: of the messages by part, where they have one already.
        is_new: whether the conversation was empty before.
        at: since when what is told is told so.
    """
    telling = _foretell(arrival, conversation_ids, is_new=is_new)
    for message, conversation_id in zip(arrival.reading.messages, conversation_ids, strict=True):
        message_id = ids.get(message.part) or make_id()
        yield (
            *_make_insert(arrival, message, message_id, conversation_id),
            *_make_told(arrival, message, telling, guess, at),
        )


def _foretell(arrival: Arrival, conversation_ids: Sequence[uuid.UUID], *, is_new: bool) -> Telling:
    foreseen = foresee(conversation_ids, is_new=is_new)
    if foreseen is None:
        return foretell_record(arrival.record, arrival.reading, None, position=1)
    position = foreseen.count + 1
    foreseen.count += len(conversation_ids)
    return foretell_record(arrival.record, arrival.reading, foreseen.context, position=position)


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
        make_storable(message.topic or ""),
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
    arrival: Arrival, message: Message, telling: Telling, guess: Guess | None, at: datetime
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
        told: tuple[object, ...] = ("", "", None, "{}", write_links(links), "", None, "", None)
    else:
        severity, is_sealed = row.severity, row.is_sealed
        # What a record establishes is kept with its first part.
        established = telling.established if message is arrival.reading.messages[0] else ""
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
    return (severity, is_sealed, NOT_PLACED, cited, "", "", *told)


def _key_of_order(arrival: Arrival) -> tuple[Any, ...]:
    time, _, source, index = order_of(arrival.record)
    return time, source, index, bytes(arrival.record.identity)


def order_of(record: Record) -> tuple[datetime, str, bytes, int]:
    """The record's order key as the columns of its messages."""
    return record.order_time, record.order_basis, bytes(record.order_source), record.order_index
