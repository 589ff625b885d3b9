"""Arriving: records are read, their messages inserted, their conversations marked. Nothing is placed or told here."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import connection
from django.db.models import F
from django.utils import timezone

from dialects import Message, Reading, get_dialect
from inspector.accounts.models import make_id
from inspector.intake.bulk import insert_rows
from inspector.intake.facts import read_with_facts
from inspector.intake.jobs import ask
from inspector.intake.models import Job, Record
from inspector.intake.text import make_storable

from .keys import key_of_conversation, key_of_id
from .models import Conversation
from .models import Message as MessageRow
from .telling import severity_of

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
    "task_id",
    "turn",
    "run",
    "status",
    "severity",
    "is_sealed",
    "position",
    "parent_key",
    "parent_basis",
    "parent_why",
    "english",
    "body",
    "atoms",
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
    "agents",
    "dialects",
    "message_count",
    "missing_count",
    "severity",
    "created_at",
)

LARGEST_TURN = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record that has been read: its messages and where each belongs."""

    record: Record
    reading: Reading
    places: tuple[tuple[bytes, str], ...]


def read_record(record: Record, *, dialect: str | None = None) -> Arrival:
    """Read a record without context, in a given dialect where its conversation has settled one. Never raises."""
    reading = read_with_facts(record.wire_text, record.envelope, record.facts, dialect=dialect)
    key = partial(key_of_conversation, source=bytes(record.order_source), is_from_file=record.is_from_file)
    return Arrival(record, reading, tuple(key(message) for message in reading.messages))


def hold_records(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Lock the records of these arrivals until the transaction ends, and follow those that have moved meanwhile.

    Without it a worker that read a record before an earlier sighting moved it would put its messages back.
    """
    rows = Record.objects.select_for_update(no_key=True).filter(pk__in=[arrival.record.pk for arrival in arrivals])
    held = {record.pk: record for record in rows.order_by("identity").defer("source", "wire", "envelope")}
    return [_follow(arrival, held[arrival.record.pk]) for arrival in arrivals]


def _follow(arrival: Arrival, held: Record) -> Arrival:
    record = arrival.record
    if order_of(record) == order_of(held) and record.facts == held.facts:
        return arrival
    for name in ("order_time", "order_basis", "order_source", "order_index", "is_from_file", "facts"):
        setattr(record, name, getattr(held, name))
    return read_record(record)


def insert_arrivals(
    *,
    arrivals: Sequence[Arrival],
    workspace_id: uuid.UUID,
    moved: Sequence[uuid.UUID],
    also_dirty: Iterable[uuid.UUID] = (),
) -> None:
    """Insert the messages of these records and mark their conversations; call inside a transaction.

    Args:
        arrivals: records of one workspace.
        workspace_id: that workspace.
        moved: ids of those among the records whose order key or facts changed: their messages are inserted anew.
        also_dirty: conversations to be marked together with theirs, all in one order.
    """
    hold_channels({arrival.record.channel_id for arrival in arrivals}, is_shared=True)
    old = MessageRow.objects.filter(workspace_id=workspace_id, record_id__in=moved)
    dirty: set[uuid.UUID] = {*also_dirty, *(old.values_list("conversation_id", flat=True) if moved else ())}
    conversations = _find_conversations(arrivals, workspace_id)
    rows = []
    cited: dict[uuid.UUID, set[bytes]] = defaultdict(set)
    for arrival in arrivals:
        for message, (key, _) in zip(arrival.reading.messages, arrival.places, strict=True):
            conversation_id = conversations[arrival.record.channel_id, key]
            rows.append(make_insert(arrival, message, conversation_id))
            dirty.add(conversation_id)
            if message.message_id:
                cited[arrival.record.channel_id].add(key_of_id(message.message_id))
    dirty.update(find_citing(cited, workspace_id))
    # Conversations before their messages: settling locks them in the same order.
    mark_dirty(conversation_ids=dirty, workspace_id=workspace_id)
    if moved:
        old.delete()
    insert_rows(model=MessageRow, columns=_COLUMNS, rows=rows, order_by=("record_id", "part"))


def replace_parts(arrival: Arrival, conversation: Conversation) -> dict[int, uuid.UUID]:
    """Put the messages of a record that was read in another dialect in the place of its earlier ones.

    Returns:
        the ids of the new messages by part.
    """
    MessageRow.objects.filter(conversation=conversation, record=arrival.record).delete()
    rows = [make_insert(arrival, message, conversation.pk) for message in arrival.reading.messages]
    insert_rows(model=MessageRow, columns=_COLUMNS, rows=rows, order_by=("record_id", "part"))
    held = MessageRow.objects.filter(conversation=conversation, record=arrival.record)
    return dict(held.values_list("part", "id"))


def hold_channels(channel_ids: Iterable[uuid.UUID], *, is_shared: bool) -> None:
    """Until the transaction ends, keep arriving (shared) and looking up cited ids (alone) apart in these channels.

    Else a message that arrives and a conversation that cites it could pass each other unseen, each before the other
    is committed, and the ghost would stay.
    """
    function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        for channel_id in sorted(channel_ids):
            cursor.execute(f"SELECT {function}(%s)", [int.from_bytes(channel_id.bytes[8:], signed=True)])


def mark_dirty(*, conversation_ids: set[uuid.UUID], workspace_id: uuid.UUID) -> None:
    """Count the conversations up and ask for their settling, in the order of their ids so that nobody deadlocks."""
    ids = sorted(conversation_ids)
    if not ids:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM threads_conversation WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE", (ids,))
    Conversation.objects.filter(pk__in=ids).update(generation=F("generation") + 1)
    ask(kind=Job.Kind.SETTLE, subjects=ids, workspace_id=workspace_id)


def _find_conversations(
    arrivals: Sequence[Arrival], workspace_id: uuid.UUID
) -> dict[tuple[uuid.UUID, bytes], uuid.UUID]:
    wanted: dict[tuple[uuid.UUID, bytes], str] = {}
    for arrival in arrivals:
        for key, native_id in arrival.places:
            wanted[arrival.record.channel_id, key] = native_id
    now = timezone.now()
    insert_rows(
        model=Conversation,
        columns=_CONVERSATION_COLUMNS,
        rows=[
            (make_id(), workspace_id, channel, key, make_storable(name), "", 0, 0, "open", "", [], [], 0, 0, 0, now)
            for (channel, key), name in wanted.items()
        ],
        order_by=("channel_id", "key"),
    )
    rows = Conversation.objects.filter(
        workspace_id=workspace_id, channel_id__in={channel for channel, _ in wanted}, key__in=[key for _, key in wanted]
    ).values_list("channel_id", "key", "id")
    return {(channel, bytes(key)): conversation for channel, key, conversation in rows}


def find_citing(cited: dict[uuid.UUID, set[bytes]], workspace_id: uuid.UUID) -> set[uuid.UUID]:
    """The conversations that cite a message which has now arrived elsewhere in the channel.

    A ghost of theirs is filled, or a parent that they had found is no longer the only message of its id.
    """
    found: set[uuid.UUID] = set()
    for channel_id, keys in cited.items():
        citing = MessageRow.objects.filter(workspace_id=workspace_id, channel_id=channel_id, parent_key__in=list(keys))
        found.update(citing.values_list("conversation_id", flat=True))
    return found


def make_insert(arrival: Arrival, message: Message, conversation_id: uuid.UUID) -> tuple[object, ...]:
    """The row of a message that has been read and is yet to be placed and told."""
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
        make_storable(message.topic or ""),
        make_storable(message.sender or ""),
        [make_storable(name) for name in message.receivers],
        message.broadcast,
        make_storable(message.message_id or ""),
        key_of_id(message.message_id) if message.message_id else None,
        make_storable(message.trace_id or ""),
        make_storable(message.task_id or ""),
        turn,
        1,
        make_storable(message.status or ""),
        severity_of(arrival.reading, message),
        message.security.encrypted and not message.security.opened,
        0,
        _key_of_cited(arrival.reading.dialect, message),
        "",
        "",
        "",
        "",
        [],
    )


def _key_of_cited(dialect: str, message: Message) -> bytes | None:
    """The key of the id that a message cites: it must be found by it before it is ever settled."""
    cited = (reply.value for reply in get_dialect(dialect).replies(message) if reply.whom == "message-id")
    return next((key_of_id(name) for name in cited if name), None)


def order_of(record: Record) -> tuple[datetime, str, bytes, int]:
    """The record's order key as the columns of its messages."""
    return record.order_time, record.order_basis, bytes(record.order_source), record.order_index
