"""Marking: conversations and traces that something has reached are locked, each in one order, counted up, and jobs
asked for."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F, QuerySet

from inspector.intake.jobs import ask, find_end
from inspector.intake.models import Job
from inspector.keyring.encryption import hold_ring
from inspector.keyring.services import has_keys
from inspector.lookups import IsAny

from ..models import Message, Trace, TreeGroup
from ..placing.keys import ENVELOPE, RANDOM

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
    ask(kind=Job.Kind.SETTLE, subjects=sorted(conversation_ids), workspace_id=workspace_id, due=due)


def ask_to_open(*, workspace_id: uuid.UUID, conversation_ids: Iterable[uuid.UUID] | None = None) -> int:
    """Ask for the opening of what is sealed in these conversations, or in all; of how many was asked. Without a key
    nothing is. Call inside the transaction that resolves them, or that adds a key."""
    sealed = Message.objects.filter(workspace_id=workspace_id, is_sealed=True)
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


def mark_traces(*, messages: QuerySet[Message], workspace_id: uuid.UUID, is_whole: bool) -> None:
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


def _mark_parts(messages: QuerySet[Message], traces: Sequence[Trace]) -> None:
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
