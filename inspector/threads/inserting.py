"""Inserting: records become rows: the messages of each, their conversations found or made, and who cites them. And
marking: conversations and traces that something has reached are locked, each in one order, counted up, and jobs asked
for.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from dialects import Message, Reading, get_dialect
from inspector.accounts.models import make_id
from inspector.database import IsAny, insert_rows, make_storable, write_array
from inspector.intake.jobs import ask, find_end
from inspector.intake.models import Job, Record
from inspector.intake.readings import find_masked, read_with_facts
from inspector.keyring.encryption import hold_ring
from inspector.keyring.services import has_keys

from .keys import (
    ANSWERED,
    ASKED,
    ENVELOPE,
    RANDOM,
    Guess,
    Links,
    find_trace_basis,
    guess_of,
    key_of_call,
    key_of_conversation,
    key_of_id,
    key_of_trace,
    links_of,
    slot_of,
    write_links,
)
from .models import Conversation, MaskedWire, Trace, TreeGroup
from .models import Message as MessageRow
from .models.packed_text import pack_text
from .teller import severity_of, shorten_sentence, tell_without_context
from .terms import decide_established, decide_flags

# What changes a trace comes in waves: it is summed up when they have gone by.
DELAY_SECONDS = 1.0
# Conversations that go on are examined at the end of such spans, all of them together.
EXAMINE_SECONDS = 10.0
# The key of a trace, and its channel: none for one across channels.
_TraceKey = tuple[bytes, uuid.UUID | None]


def mark_conversations(
    *, conversation_ids: Set[uuid.UUID], workspace_id: uuid.UUID, added_to: Set[uuid.UUID] = frozenset()
) -> None:
    """Count conversations up and ask for them to be resolved. Of those in `added_to` nothing has changed but that
    messages were added."""
    count_up(conversation_ids, changed=conversation_ids - added_to)
    ask_to_resolve(conversation_ids, workspace_id=workspace_id)


def count_up(conversation_ids: Set[uuid.UUID], *, changed: Set[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Lock conversations until the transaction ends, and count them up; their generations. Of the `changed` ones
    something else has changed than that messages were added."""
    if not conversation_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_UP, [list(conversation_ids), list(changed)])
        return dict(cursor.fetchall())


# Locked in one order, so that nobody deadlocks.
_COUNT_UP: Final = """
WITH held AS MATERIALIZED (SELECT id FROM threads_conversation WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE)
UPDATE threads_conversation AS one SET generation = one.generation + 1,
       whole_generation = CASE WHEN one.id = ANY(%s) THEN one.generation + 1 ELSE one.whole_generation END
  FROM held WHERE one.id = held.id RETURNING one.id, one.generation
"""


def ask_to_resolve(conversation_ids: Iterable[uuid.UUID], *, workspace_id: uuid.UUID, after_seconds: float = 0) -> None:
    """Ask for conversations that were counted up to be resolved; it may wait so long for more."""
    due = time.time() + after_seconds if after_seconds else 0.0
    # In one order, so that nobody deadlocks.
    ask(kind=Job.Kind.RESOLVE, subjects=sorted(conversation_ids), workspace_id=workspace_id, due=due)


def ask_to_open(*, workspace_id: uuid.UUID, conversation_ids: Iterable[uuid.UUID] | None = None) -> int:
    """Ask for the opening of what is sealed in these conversations, or in all; of how many was asked. Without a key
    nothing is. Call inside the transaction that resolves them, or that adds a key."""
    sealed = MessageRow.objects.filter(workspace_id=workspace_id, is_sealed=True)
    if conversation_ids is not None:
        sealed = sealed.filter(conversation_id__in=list(conversation_ids))
    subjects = list(sealed.values_list("conversation_id", flat=True).distinct())
    if not subjects:
        return 0
    hold_ring(workspace_id, is_shared=True)
    if not has_keys(workspace_id=workspace_id):
        return 0
    ask(kind=Job.Kind.OPEN, subjects=subjects, workspace_id=workspace_id)
    return len(subjects)


def ask_to_examine(conversation_ids: Iterable[uuid.UUID], *, workspace_id: uuid.UUID) -> None:
    """Ask for conversations that were resolved to be examined."""
    ask(kind=Job.Kind.EXAMINE, subjects=conversation_ids, workspace_id=workspace_id, due=find_end(EXAMINE_SECONDS))


def mark_traces(*, messages: QuerySet[MessageRow], workspace_id: uuid.UUID, is_whole: bool) -> None:
    """Mark the traces of these messages; call inside a transaction, after conversations and their jobs were locked.

    A trace id that only the wire says has a trace in its channel. One from the envelope has one there too, and one
    across channels, and so has all of that channel then: which of the two holds the messages is decided when they are
    drawn. `is_whole`: messages come or go that were resolved before, or change their time or trace, so that everything
    of their traces is read anew; else only the parts of long traces that these messages are in.
    """
    rows = messages.filter(trace_key__isnull=False).order_by()
    found = rows.values_list("channel_id", "trace_key", "trace_basis", "trace_id").distinct()
    wanted: dict[_TraceKey, str] = {}
    # The channels that join by these messages, by the keys of traces.
    joining: dict[bytes, set[uuid.UUID]] = defaultdict(set)
    keys: set[bytes] = set()
    for channel_id, trace_key, basis, native_id in found:
        key = bytes(trace_key or b"")
        keys.add(key)
        if basis != RANDOM:
            wanted[key, channel_id] = native_id
        if basis in (ENVELOPE, RANDOM):
            wanted[key, None] = native_id
            joining[key].add(channel_id)
    if not wanted:
        return
    # In one order, so that nobody deadlocks.
    fresh = sorted(wanted.items(), key=lambda each: (each[0][0], str(each[0][1])))
    Trace.objects.bulk_create(
        (Trace(workspace_id=workspace_id, channel_id=at, key=key, native_id=name) for (key, at), name in fresh),
        ignore_conflicts=True,
    )
    # A trace across channels may lose or win a channel by what only the wire says there.
    held = Trace.objects.select_for_update(no_key=True).filter(IsAny("key", keys), workspace_id=workspace_id)
    every = held.order_by("pk").only("key", "channel", "channels")
    traces = [trace for trace in every if trace.channel_id is None or (bytes(trace.key), trace.channel_id) in wanted]
    ids = [trace.pk for trace in traces]
    Trace.objects.filter(pk__in=ids).update(generation=F("generation") + 1)

    def joins_otherwise(trace: Trace) -> bool:
        """Whether the channels that join are others than a trace was read with, where it was read in parts."""
        at, found = trace.channel_id, joining[bytes(trace.key)]
        return not found <= set(trace.channels) if at is None else at in found and bool(trace.channels)

    anew = [each.pk for each in traces if is_whole or joins_otherwise(each)]
    TreeGroup.objects.filter(trace__in=anew, kind=TreeGroup.Kind.PART).delete()
    _mark_parts(rows, [trace for trace in traces if trace.channels and trace.pk not in anew])
    ask(kind=Job.Kind.TRACE, subjects=ids, workspace_id=workspace_id, due=time.time() + DELAY_SECONDS)


def _mark_parts(messages: QuerySet[MessageRow], traces: Sequence[Trace]) -> None:
    if not traces:
        return
    rows = messages.filter(trace_key__in=[trace.key for trace in traces])
    marks = [
        (trace.pk, at)
        for key, channel_id, at in set(rows.values_list("trace_key", "channel_id", "order_time"))
        for trace in traces
        if key == trace.key and channel_id in trace.channels
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE threads_treegroup AS part SET is_stale = true
              FROM unnest(%s::uuid[], %s::timestamptz[]) AS mark (trace_id, at)
             CROSS JOIN LATERAL (
                SELECT id FROM threads_treegroup AS held
                 WHERE held.trace_id = mark.trace_id AND held.kind = %s AND held.order_time <= mark.at
                 ORDER BY held.order_time DESC LIMIT 1) AS held
             WHERE part.id = held.id AND NOT part.is_stale
            """,
            [[pk for pk, _ in marks], [at for _, at in marks], TreeGroup.Kind.PART],
        )


def hold_rows(
    table: str,
    ids: Iterable[uuid.UUID],
    *,
    columns: Sequence[str] = ("id",),
    order_by: str = "id",
    lock: str = "NO KEY UPDATE",
) -> list[tuple[Any, ...]]:
    """Lock rows until the transaction ends, in one order so that nobody deadlocks; what they say under their locks."""
    statement = f"SELECT {', '.join(columns)} FROM {table} WHERE id = ANY(%s) ORDER BY {order_by} FOR {lock}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(ids)])
        return list(cursor.fetchall())


def hold_channels(channel_ids: Iterable[uuid.UUID], *, is_shared: bool) -> None:
    """Until the transaction ends, keep arriving (shared) and looking up cited ids (alone) apart in these channels. Else
    a message and one that cites it could pass each other unseen, each before the other is committed, and the ghost
    would stay."""
    function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        for channel_id in sorted(channel_ids):
            cursor.execute(f"SELECT {function}(%s)", [int.from_bytes(channel_id.bytes[8:], signed=True)])


def hold_conversations(conversation_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Lock conversations until the transaction ends, in the order of their ids so that nobody deadlocks; their
    generations."""
    return dict(hold_rows("threads_conversation", conversation_ids, columns=("id", "generation")))


# Called inside every writing transaction, and as the sign of life between them; raises when another has taken over.
Fence = Callable[[], None]


@contextmanager
def hold_alone(conversation_ids: Iterable[uuid.UUID], fence: Fence) -> Iterator[dict[uuid.UUID, int]]:
    """A transaction that locks conversations, with their generations, and then their jobs, in the order in which
    arriving locks them."""
    with transaction.atomic():
        generations = hold_conversations(conversation_ids)
        fence()
        yield generations


# A message that stood before: its id, its English, body, words and exact terms as they are stored.
Shown = tuple[uuid.UUID, str, bytes, str | None, str]
_BLANK: Final = ("", b"", None, "{}")

# What a message says by itself; where it is placed; what its telling leaned on; what it was told as; and the lines that
# it stands below (`lines`).
OWN: Final = (
    *("id", "workspace_id", "channel_id", "conversation_id", "record_id", "part"),
    *("order_time", "order_basis", "order_source", "order_index"),
    *("dialect", "carrier", "performative", "native_act", "topic", "sender", "receivers", "is_broadcast"),
    *("native_id", "id_key", "call_key"),
    *("trace_id", "trace_key", "trace_basis", "task_id", "turn", "status", "links"),
)
PLACED: Final = ("place", "run", "parent", "parent_key", "parent_basis", "parent_why", "task")
LEANED: Final = ("told_in", "established", "sights")
TOLD: Final = ("severity", "is_sealed", "english", "body", "words", "atoms", "told_digest", "told_at")
HUNG: Final = ("above", "trace_above")
MESSAGE_COLUMNS: Final = (*OWN, *PLACED, *LEANED, *TOLD, *HUNG)

MAX_TURN = 2**63 - 1


class Arrival(NamedTuple):
    """A record that has been read: its messages and where each belongs."""

    record: Record
    reading: Reading
    places: tuple[tuple[bytes, str], ...]


def read_record(record: Record, *, dialect: str | None = None) -> Arrival:
    """Read a record without context, in a given dialect where its conversation has decided on one. Never raises."""
    reading = read_with_facts(record.wire_text, record.envelope, record.facts, dialect=dialect)
    key = partial(key_of_conversation, source=bytes(record.order_source), is_from_file=record.is_from_file)
    return Arrival(record, reading, tuple(key(message) for message in reading.messages))


class NewMessage(NamedTuple):
    """A message that is to be inserted, into a conversation that may have no row yet; `own` are its values by `OWN`."""

    arrival: Arrival
    message: Message
    links: Links
    conversation_id: uuid.UUID
    own: dict[str, Any]


def make_new(arrival: Arrival, conversation_ids: Sequence[uuid.UUID], guess: Guess | None = None) -> list[NewMessage]:
    """The messages of a record that is to be inserted, each with an id of its own and in one of these conversations.
    `guess`: that its dialect is one, where it is not read in the likeliest."""
    found, guess = [], guess or guess_of(arrival.reading)
    record, reading, size = arrival.record, arrival.reading, max(1, len(arrival.record.source))
    for message, conversation_id in zip(reading.messages, conversation_ids, strict=True):
        dialect = message.dialect or reading.dialect
        call_key = _find_call(record, message, dialect)
        links = links_of(message, dialect=dialect, wire=reading.wire, guess=guess, size_bytes=size, call_key=call_key)
        own = (
            *(make_id(), record.workspace_id, record.channel_id, conversation_id, record.pk, message.part),
            *order_of(record),
            dialect,
            reading.dialect if message.dialect else "",
            message.performative,
            make_storable(message.native_act or ""),
            make_storable(shorten_sentence(message.topic or "")),
            make_storable(message.sender or ""),
            write_array([make_storable(name) for name in message.receivers]),
            message.broadcast,
            make_storable(message.message_id or ""),
            links.key,
            call_key,
            make_storable(message.trace_id or ""),
            key_of_trace(message.trace_id) if message.trace_id else None,
            find_trace_basis(message, reading),
            make_storable(message.task_id or ""),
            message.turn if message.turn is not None and 0 <= message.turn <= MAX_TURN else None,
            make_storable(message.status or ""),
            write_links(links),
        )
        found.append(NewMessage(arrival, message, links, conversation_id, dict(zip(OWN, own, strict=True))))
    return found


def _find_call(record: Record, message: Message, dialect: str) -> bytes | None:
    """The key of a call, where the answer may be the first to name the conversation."""
    if not get_dialect(dialect).names_conversations_late:
        return None
    unnamed, source = message.replace(conversation_id=None), bytes(record.order_source)
    return key_of_call(message, key_of_conversation(unnamed, source=source, is_from_file=record.is_from_file)[0])


def make_unplaced(
    arrival: Arrival, messages: Sequence[NewMessage], before: Mapping[int, Shown], *, at: datetime
) -> Iterator[tuple[object, ...]]:
    """The rows of a record's messages that are to be placed later; told already, since `at`, where no context makes a
    difference. Any other shows what stood there `before`, by part, until it is told."""
    telling = tell_without_context(arrival.record, arrival.reading)
    for new in messages:
        message = new.message
        own_id, *own = new.own.values()
        message_id, *shown = before.get(message.part) or (own_id, *_BLANK)
        cited = next((way.key for way in new.links.ways if way.whom == "message-id" and way.key), None)
        row = telling.rows.get(message.part)
        told: tuple[object, ...]
        if row is None:
            severity = severity_of(arrival.reading, message)
            is_sealed = message.security.encrypted and not message.security.opened
            flags = decide_flags(record=arrival.record, read=message, severity=severity)
            told = (telling.told_in, "", flags, severity, is_sealed, *shown, None, None)
        else:
            # What a record establishes is kept with its first part.
            established = telling.established if message is arrival.reading.messages[0] else ""
            told = (
                telling.told_in,
                established,
                row.rule_flags | decide_established(established),
                *row.list_told(),
                at,
            )
        # A message that cites another must be found by that before it is ever placed.
        yield (message_id, *own, None, 1, None, cited, "", "", None, *told, None, None)


def order_of(record: Record) -> tuple[datetime, str, bytes, int]:
    """The record's order key as the columns of its messages."""
    return record.order_time, record.order_basis, bytes(record.order_source), record.order_index


_MASKED_COLUMNS = ("record_id", "workspace_id", "dialect", "text")


def hold_records(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Lock the records of these arrivals, and follow those that have moved meanwhile: a worker that read a record
    before an earlier sighting moved it would put its messages back."""
    ids = [arrival.record.pk for arrival in arrivals]
    rows = hold_rows("intake_record", ids, columns=("id", *_MOVED), order_by="identity")
    held = {pk: place for pk, *place in rows}
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


def insert_masked(arrivals: Iterable[Arrival]) -> None:
    """Keep the masked texts of these records; one in which nothing is masked keeps none, and one that is sealed."""
    rows = [
        (arrival.record.pk, arrival.record.workspace_id, arrival.reading.dialect, text)
        for arrival in arrivals
        if arrival.record.sealed_with_id is None and (text := find_masked(arrival.record, arrival.reading)) is not None
    ]
    insert_rows(model=MaskedWire, columns=_MASKED_COLUMNS, rows=rows, order_by=("record_id", "dialect"))


def replace_parts(arrival: Arrival, conversation: Conversation, guess: Guess | None, *, at: datetime) -> None:
    """Put the messages of a record that was read otherwise in the place of its earlier ones; each part keeps its id,
    and shows what it was told as until it is told anew. Call inside a transaction that holds the conversation and those
    that cite it (`find_keys`), at the time of the resolving that does so."""
    old = MessageRow.objects.filter(conversation=conversation, record=arrival.record)
    before = take_out(old, conversation.workspace_id).get(arrival.record.pk, {})
    # Another conversation may have read the record in the same dialect, or may do so now: it comes to the same text.
    MaskedWire.objects.filter(record=arrival.record, dialect=arrival.reading.dialect).delete()
    insert_masked([arrival])
    messages = make_new(arrival, [conversation.pk] * len(arrival.reading.messages), guess)
    rows = make_unplaced(arrival, messages, before, at=at)
    insert_rows(model=MessageRow, columns=MESSAGE_COLUMNS, rows=rows, order_by=("record_id", "part"))


def take_out(rows: QuerySet[MessageRow], workspace_id: uuid.UUID) -> Mapping[uuid.UUID, Mapping[int, Shown]]:
    """Delete messages that are about to be inserted anew; what they showed, by record and part."""
    mark_traces(messages=rows, workspace_id=workspace_id, is_whole=True)
    shown: dict[uuid.UUID, dict[int, Shown]] = defaultdict(dict)
    for record_id, part, message_id, english, body, words, atoms in rows.values_list(
        "record_id", "part", "id", "english", "body", "words", "atoms"
    ):
        shown[record_id][part] = (message_id, english, pack_text(body), words, write_array(atoms))
    rows.delete()
    return shown


def find_keys(conversation: Conversation, arrival: Arrival) -> set[bytes]:
    """The keys of the ids that a record's messages bear in a conversation, and of those they bear as read now."""
    old = MessageRow.objects.filter(conversation=conversation, record=arrival.record)
    borne = {bytes(key) for keys in old.values_list("id_key", "call_key") for key in keys if key}
    for message in arrival.reading.messages:
        call_key = _find_call(arrival.record, message, message.dialect or arrival.reading.dialect)
        borne |= {call_key} if call_key else set()
        borne |= {key_of_id(message.message_id)} if message.message_id else set()
    return borne


def insert_conversations(conversations: Iterable[Conversation]) -> bool:
    """Insert those of these conversations that have no row; False where somebody else has made one meanwhile."""
    columns = [field.attname for field in Conversation._meta.concrete_fields]
    rows = [[getattr(each, name) for name in columns] for each in conversations if each._state.adding]
    return insert_rows(model=Conversation, columns=columns, rows=rows, order_by=("channel_id", "key")) == len(rows)


def find_citing(
    borne: Mapping[uuid.UUID, Mapping[bytes, Set[uuid.UUID]]], workspace_id: uuid.UUID
) -> dict[uuid.UUID, set[bytes]]:
    """The conversations that cite a message which has now arrived elsewhere in the channel, or is now gone, each with
    the slots of the citing messages. `borne` has by channel the keys of borne ids with the conversations that these
    came into: one that alone cites and bears an id sees it when it is resolved, and is left out."""
    found: dict[uuid.UUID, set[bytes]] = {}
    rows = MessageRow.objects.filter(workspace_id=workspace_id)
    for channel_id, arrived in borne.items():
        # An answer that found no request is known by its call.
        calls = {ANSWERED + key[1:]: key for key in arrived if key[:1] == ASKED and len(key) == 33}
        citing = rows.filter(Q(parent_key__in=list(arrived)) | Q(call_key__in=list(calls)), channel_id=channel_id)
        columns = ("conversation_id", "parent_key", "call_key", "order_time", "order_source", "order_index")
        for conversation_id, key, call_key, at, source, index in citing.values_list(*columns):
            cited = calls.get(bytes(call_key or b""), bytes(key or b""))
            if arrived[cited] != {conversation_id}:
                found.setdefault(conversation_id, set()).add(slot_of(at, bytes(source), index))
    return found
