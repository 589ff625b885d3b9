"""Marking: conversations and traces that something has reached are counted up, and jobs asked for to do them anew."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count, F, Min, QuerySet
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.intake.jobs import ask
from inspector.intake.models import Job

from ..models import Conversation, Message, Trace
from ..placing.keys import ENVELOPE, RANDOM
from .holding import hold_conversations
from .noting import MOST_NOTED, SMALL, Stood, note_changes

# What changes a trace comes in waves: it is drawn when they have gone by.
_DELAY_SECONDS = 1.0
# The key of a trace, and its channel: none for one across channels.
_TraceKey = tuple[bytes, uuid.UUID | None]


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


def mark_traces(
    *,
    messages: QuerySet[Message],
    workspace_id: uuid.UUID,
    is_whole: bool,
    stood: Mapping[uuid.UUID, Stood] | None = None,
) -> None:
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
        stood: how those of the messages stood that were settled before, where that is known; the others are new.
    """
    rows = messages.filter(trace_key__isnull=False).order_by()
    found = rows.values_list("channel_id", "trace_key", "trace_basis", "trace_id")
    wanted: dict[_TraceKey, str] = {}
    # Since when something has changed in each, and in how many messages.
    fresh: dict[_TraceKey, datetime] = {}
    counts: Counter[_TraceKey] = Counter()
    for channel_id, key, basis, native_id, first_at, count in found.annotate(
        first_at=Min("order_time"), count=Count("pk")
    ):
        key = bytes(key or b"")
        # A trace across channels may lose or win a channel by what only the wire says there.
        for place in ((key, channel_id), (key, None)):
            fresh[place] = min(first_at, fresh.get(place, first_at))
            counts[place] += count
        if basis != RANDOM:
            wanted[key, channel_id] = native_id
        if basis in (ENVELOPE, RANDOM):
            wanted[key, None] = native_id
    if not wanted:
        return
    _insert_traces(wanted, workspace_id)
    traces = [
        (pk, (key, channel_id), size)
        for pk, key, channel_id, size in _hold_traces(workspace_id, {key for key, _ in fresh})
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
            [is_whole, [pk for pk, _, _ in traces], [fresh[place] for _, place, _ in traces]],
        )
    if not is_whole:
        large = {place: pk for pk, place, size in traces if size > SMALL}
        is_named = stood is not None and all(counts[place] <= MOST_NOTED for place in large)
        note_changes(_find_by_trace(rows, large, is_named=is_named), stood if is_named else None)
    ids = [pk for pk, _, _ in traces]
    ask(kind=Job.Kind.TRACE, subjects=ids, workspace_id=workspace_id, delay_seconds=_DELAY_SECONDS)


def _find_by_trace(
    messages: QuerySet[Message], traces: Mapping[_TraceKey, uuid.UUID], *, is_named: bool
) -> dict[uuid.UUID, list[uuid.UUID]]:
    """The ids of those of the messages that may belong to each of these traces; none of them if they are not named."""
    found: dict[uuid.UUID, list[uuid.UUID]] = {pk: [] for pk in traces.values()}
    if not traces or not is_named:
        return found
    rows = messages.filter(trace_key__in={key for key, _ in traces}).values_list("pk", "trace_key", "channel_id")
    for message_id, key, channel_id in rows:
        for place in ((bytes(key or b""), channel_id), (bytes(key or b""), None)):
            if place in traces:
                found[traces[place]].append(message_id)
    return found


def _insert_traces(wanted: dict[_TraceKey, str], workspace_id: uuid.UUID) -> None:
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


def _hold_traces(workspace_id: uuid.UUID, keys: set[bytes]) -> list[tuple[uuid.UUID, bytes, uuid.UUID | None, int]]:
    """The traces of these keys with their counts, locked in the order of their ids so that nobody deadlocks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, key, channel_id, message_count FROM threads_trace WHERE workspace_id = %s AND key = ANY(%s)"
            " ORDER BY id FOR NO KEY UPDATE",
            [workspace_id, sorted(keys)],
        )
        return [(pk, bytes(key), channel_id, count) for pk, key, channel_id, count in cursor.fetchall()]


def hold_traces(traces: Sequence[Trace]) -> None:
    """Lock traces until the transaction ends."""
    with connection.cursor() as cursor:
        ids: list[Any] = sorted(trace.pk for trace in traces)
        cursor.execute("SELECT id FROM threads_trace WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE", [ids])
