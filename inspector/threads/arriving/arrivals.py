"""Arriving: records are held, their conversations found or made, and who cites them; and records that are read anew."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.intake.bulk import insert_rows, write_array
from inspector.intake.text import make_storable

from ..models import Conversation, MaskedWire
from ..models import Message as MessageRow
from ..models.packed_text import pack_text
from ..placing.keys import key_of_id
from ..placing.links import Guess
from ..placing.places import slot_of
from ..telling.masks import find_masked
from .inserts import MESSAGE_COLUMNS, Arrival, Shown, make_new, make_unplaced, order_of, read_record
from .marking import mark_traces

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
_MASKED_COLUMNS = ("record_id", "workspace_id", "dialect", "text")


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


def insert_masked(arrivals: Iterable[Arrival]) -> None:
    """Keep the masked texts of these records; one in which nothing is masked keeps none."""
    rows = [
        (arrival.record.pk, arrival.record.workspace_id, arrival.reading.dialect, text)
        for arrival in arrivals
        if (text := find_masked(arrival.record, arrival.reading)) is not None
    ]
    insert_rows(model=MaskedWire, columns=_MASKED_COLUMNS, rows=rows, order_by=("record_id", "dialect"))


def are_read_before(record_ids: Sequence[uuid.UUID]) -> bool:
    """Whether any of these records has messages."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM threads_message WHERE record_id = ANY(%s))", [list(record_ids)])
        return bool(cursor.fetchall()[0][0])


def replace_parts(arrival: Arrival, conversation: Conversation, guess: Guess | None, *, at: datetime) -> None:
    """Put the messages of a record that was read otherwise in the place of its earlier ones; each part keeps its id.

    What cannot be told yet shows what it was told as until it is: nobody sees a blank message meanwhile.

    Call inside a transaction that holds the conversation and those that cite it (`find_keys`), at the time of the
    settling that does so.
    """
    old = MessageRow.objects.filter(conversation=conversation, record=arrival.record)
    before = list_shown(old).get(arrival.record.pk, {})
    mark_traces(messages=old, workspace_id=conversation.workspace_id, is_whole=True)
    old.delete()
    # Another conversation may have read the record in the same dialect, or may do so now: it comes to the same text.
    MaskedWire.objects.filter(record=arrival.record, dialect=arrival.reading.dialect).delete()
    insert_masked([arrival])
    messages = make_new(arrival, [conversation.pk] * len(arrival.reading.messages), guess)
    rows = make_unplaced(arrival, messages, before, at=at)
    insert_rows(model=MessageRow, columns=MESSAGE_COLUMNS, rows=rows, order_by=("record_id", "part"))


def list_shown(rows: QuerySet[MessageRow]) -> Mapping[uuid.UUID, Mapping[int, Shown]]:
    """What these messages show, by record and part."""
    shown: dict[uuid.UUID, dict[int, Shown]] = defaultdict(dict)
    for record_id, part, message_id, english, body, words, atoms in rows.values_list(
        "record_id", "part", "id", "english", "body", "words", "atoms"
    ):
        shown[record_id][part] = (message_id, english, pack_text(body), words, write_array(atoms))
    return shown


def find_keys(conversation: Conversation, arrival: Arrival) -> set[bytes]:
    """The keys of the ids that a record's messages bear in a conversation, and of those they bear as read now."""
    old = MessageRow.objects.filter(conversation=conversation, record=arrival.record, id_key__isnull=False)
    borne = {bytes(key) for key in old.values_list("id_key", flat=True) if key}
    return borne | {key_of_id(message.message_id) for message in arrival.reading.messages if message.message_id}


def insert_conversations(
    arrivals: Sequence[Arrival], made: Mapping[tuple[uuid.UUID, bytes], Conversation], workspace_id: uuid.UUID
) -> dict[tuple[uuid.UUID, bytes], uuid.UUID]:
    """The conversations of these records by channel and key, inserted where there are none.

    Args:
        arrivals: records of one workspace.
        made: such as were made before: the ids of those that are inserted.
        workspace_id: that workspace.
    """
    wanted: dict[tuple[uuid.UUID, bytes], str] = {}
    for arrival in arrivals:
        for key, native_id in arrival.places:
            wanted[arrival.record.channel_id, key] = native_id
    now = timezone.now()
    insert_rows(
        model=Conversation,
        columns=_CONVERSATION_COLUMNS,
        rows=[
            (
                *(made[channel, key].pk if (channel, key) in made else make_id(), workspace_id, channel, key),
                *(make_storable(name), "", 0, 0, "open", "", "", [], [], 0, 0, 0, now),
            )
            for (channel, key), name in wanted.items()
        ],
        order_by=("channel_id", "key"),
    )
    rows = Conversation.objects.filter(
        workspace_id=workspace_id, channel_id__in={channel for channel, _ in wanted}, key__in=[key for _, key in wanted]
    ).values_list("channel_id", "key", "id")
    return {(channel, bytes(key)): conversation for channel, key, conversation in rows}


def find_citing(
    borne: Mapping[uuid.UUID, Mapping[bytes, Set[uuid.UUID]]], workspace_id: uuid.UUID
) -> dict[uuid.UUID, set[bytes]]:
    """The conversations that cite a message which has now arrived elsewhere in the channel, or is now gone.

    A ghost of theirs is filled, or a parent that they had found is no longer the only message of its id.

    Args:
        borne: by channel, the keys of the ids that messages bear, each with the conversations that these came into:
            one that alone cites and bears an id sees it when it is resolved, and is left out.
        workspace_id: the workspace.

    Returns:
        of each the slots of the citing messages.
    """
    found: dict[uuid.UUID, set[bytes]] = {}
    rows = MessageRow.objects.filter(workspace_id=workspace_id)
    for channel_id, arrived in borne.items():
        citing = rows.filter(channel_id=channel_id, parent_key__in=list(arrived))
        columns = ("conversation_id", "parent_key", "order_time", "order_source", "order_index")
        for conversation_id, key, at, source, index in citing.values_list(*columns):
            if arrived[bytes(key or b"")] != {conversation_id}:
                found.setdefault(conversation_id, set()).add(slot_of(at, bytes(source), index))
    return found
