"""Marking: conversations and traces that something has reached are counted up, and jobs asked for to do them anew."""

from __future__ import annotations

import uuid
from collections.abc import Sequence, Set
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, Min, QuerySet
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.intake.jobs import ask
from inspector.intake.models import Job

from ..models import Conversation, Message, Trace
from ..placing.keys import ENVELOPE, RANDOM
from .holding import hold_conversations

# What changes a trace comes in waves: it is drawn when they have gone by.
_DELAY_SECONDS = 1.0


def mark_conversations(
    *,
    conversation_ids: set[uuid.UUID],
    workspace_id: uuid.UUID,
    added_to: Set[uuid.UUID] = frozenset(),
    settle_after_seconds: float = 0,
) -> None:
    """Count the conversations up and ask for their settling, in the order of their ids so that nobody deadlocks.

    Args:
        conversation_ids: those that something has reached.
        workspace_id: whose they are.
        added_to: those of them to which messages were added, and nothing else: what is settled of them still holds.
        settle_after_seconds: how long their settling may wait for more.
    """
    ids = sorted(conversation_ids)
    if not ids:
        return
    hold_conversations(ids)
    Conversation.objects.filter(pk__in=ids).update(generation=F("generation") + 1)
    changed = [pk for pk in ids if pk not in added_to]
    if changed:
        Conversation.objects.filter(pk__in=changed).update(whole_generation=F("generation"))
    ask(kind=Job.Kind.SETTLE, subjects=ids, workspace_id=workspace_id, delay_seconds=settle_after_seconds)


def mark_traces(*, messages: QuerySet[Message], workspace_id: uuid.UUID, is_whole: bool) -> None:
    """Mark the traces of these messages; call inside a transaction, after conversations and their jobs were locked.

    A trace id that only the wire says has a trace in its channel. One from the envelope has one there too, and one
    across channels, and so has all of that channel then: which of the two holds the messages is decided when they are
    drawn, from all that is there.

    Args:
        messages: what has changed, or is about to.
        workspace_id: the workspace of all of them.
        is_whole: whether messages come or go that were settled before, or change their time or their trace; if not,
            they are where they were in the timeline, or settled for the first time, and what stands before the
            earliest of them has not changed.
    """
    rows = messages.filter(trace_key__isnull=False).order_by()
    found = rows.values_list("channel_id", "trace_key", "trace_basis", "trace_id")
    wanted: dict[tuple[bytes, uuid.UUID | None], str] = {}
    # Since when something has changed in each.
    fresh: dict[tuple[bytes, uuid.UUID | None], datetime] = {}
    for channel_id, key, basis, native_id, first_at in found.annotate(first_at=Min("order_time")):
        key = bytes(key or b"")
        # A trace across channels may lose or win a channel by what only the wire says there.
        for place in ((key, channel_id), (key, None)):
            fresh[place] = min(first_at, fresh.get(place, first_at))
        if basis != RANDOM:
            wanted[key, channel_id] = native_id
        if basis in (ENVELOPE, RANDOM):
            wanted[key, None] = native_id
    if not wanted:
        return
    _insert_traces(wanted, workspace_id)
    held = [
        (pk, fresh[key, channel_id])
        for pk, key, channel_id in _hold_traces(workspace_id, {key for key, _ in fresh})
        if channel_id is None or (key, channel_id) in wanted
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE threads_trace AS trace
               SET generation = generation + 1,
                   whole_generation = CASE WHEN %s THEN generation + 1 ELSE whole_generation END,
                   fresh_at = least(trace.fresh_at, mark.fresh_at)
              FROM unnest(%s::uuid[], %s::timestamptz[]) AS mark (id, fresh_at)
             WHERE trace.id = mark.id
            """,
            [is_whole, [pk for pk, _ in held], [fresh_at for _, fresh_at in held]],
        )
    ids = [pk for pk, _ in held]
    ask(kind=Job.Kind.TRACE, subjects=ids, workspace_id=workspace_id, delay_seconds=_DELAY_SECONDS)


def _insert_traces(wanted: dict[tuple[bytes, uuid.UUID | None], str], workspace_id: uuid.UUID) -> None:
    rows = sorted(wanted.items(), key=lambda row: (row[0][0], str(row[0][1])))
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO threads_trace (id, workspace_id, channel_id, key, native_id, generation, settled_generation,
                                       state, subject, agents, dialects, message_count, conversation_count,
                                       missing_count, open_count, severity, created_at)
            SELECT fresh.id, %s, fresh.channel_id, fresh.key, fresh.name, 0, 0,
                   'open', '', '{}', '{}', 0, 0, 0, 0, 0, %s
              FROM unnest(%s::uuid[], %s::uuid[], %s::bytea[], %s::text[]) WITH ORDINALITY
                   AS fresh (id, channel_id, key, name, place)
             WHERE NOT EXISTS (SELECT 1 FROM threads_trace AS held
                                WHERE held.workspace_id = %s AND held.key = fresh.key
                                  AND held.channel_id IS NOT DISTINCT FROM fresh.channel_id)
             ORDER BY fresh.place
            ON CONFLICT DO NOTHING
            """,
            [
                workspace_id,
                now,
                [make_id() for _ in rows],
                [channel_id for (_, channel_id), _ in rows],
                [key for (key, _), _ in rows],
                [name for _, name in rows],
                workspace_id,
            ],
        )


def _hold_traces(workspace_id: uuid.UUID, keys: set[bytes]) -> list[tuple[uuid.UUID, bytes, uuid.UUID | None]]:
    """The traces of these keys, locked in the order of their ids so that nobody deadlocks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, key, channel_id FROM threads_trace WHERE workspace_id = %s AND key = ANY(%s)"
            " ORDER BY id FOR NO KEY UPDATE",
            [workspace_id, sorted(keys)],
        )
        return [(pk, bytes(key), channel_id) for pk, key, channel_id in cursor.fetchall()]


def hold_traces(traces: Sequence[Trace]) -> None:
    """Lock traces until the transaction ends."""
    with connection.cursor() as cursor:
        ids: list[Any] = sorted(trace.pk for trace in traces)
        cursor.execute("SELECT id FROM threads_trace WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE", [ids])
