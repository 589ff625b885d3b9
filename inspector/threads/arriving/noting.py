"""Noting: which messages of a trace came new or changed since it was drawn, and how they stood as it was drawn.

It lets a trace take in what is late without reading the rest (`patching`). Whoever changes messages notes them for
their traces as it marks these, under the same locks; who draws a trace forgets what was noted with what it has drawn.
The first to note a message says how it stood: until then it had not changed. What is too much is noted as not named.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from django.db import connection
from django.db.models import BooleanField, Case, Q, Value, When

from ..models import Message, Trace, TraceChange
from ..placing.several import SEVERAL

# Traces of at most so many messages are drawn whole, which costs as little: nothing is noted of them.
SMALL: Final = 200
# Of more messages than that nothing is noted by name.
MOST_NOTED: Final = 300
_ADJACENCY: Final = "adjacency"


class Stood(NamedTuple):
    """What a trace shows of how a message was told and placed: see `TraceChange`."""

    parent: uuid.UUID | None
    cited: bytes | None
    is_several: bool
    told_digest: bytes | None


class Noted(NamedTuple):
    """A message that came new to a trace or changed: where it was there before, how it stood."""

    id: uuid.UUID
    stood: Stood | None


def read_stood(message_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Stood] | None:
    """How these messages stand that are about to change, those that a trace has; None where they are too many."""
    if len(message_ids) > MOST_NOTED:
        return None
    if not message_ids:
        return {}
    is_several = Case(
        When(Q(parent__isnull=True, parent_why__contains=SEVERAL), then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )
    rows = Message.objects.filter(pk__in=message_ids, trace_key__isnull=False).annotate(is_several=is_several)
    columns = ("id", "parent", "parent_key", "parent_basis", "is_several", "told_digest")
    return {
        pk: Stood(
            parent if basis != _ADJACENCY else None,
            bytes(cited) if parent is None and cited is not None and basis else None,
            several,
            bytes(told) if told is not None else None,
        )
        for pk, parent, cited, basis, several, told in rows.values_list(*columns)
    }


def note_changes(found: Mapping[uuid.UUID, Collection[uuid.UUID]], stood: Mapping[uuid.UUID, Stood] | None) -> None:
    """Note what has changed in traces; call where they are locked.

    Args:
        found: the ids of messages by the traces to which they may belong.
        stood: how those of them stood that were there before; None where nothing is to be noted by name.
    """
    rows: list[tuple[uuid.UUID, uuid.UUID | None, Stood | None]] = []
    for trace_id, message_ids in found.items():
        if stood is None or len(message_ids) > MOST_NOTED:
            rows.append((trace_id, None, None))
        else:
            rows += [(trace_id, message_id, stood.get(message_id)) for message_id in message_ids]
    if rows:
        _insert(rows)


def _insert(rows: Sequence[tuple[uuid.UUID, uuid.UUID | None, Stood | None]]) -> None:
    none = Stood(None, None, False, None)
    stood = [said or none for _, _, said in rows]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO threads_tracechange (trace_id, message_id, is_new, parent, cited, is_several, told_digest)
            SELECT fresh.* FROM unnest(%s::uuid[], %s::uuid[], %s::boolean[], %s::uuid[], %s::bytea[], %s::boolean[],
                                       %s::bytea[])
                   AS fresh (trace_id, message_id, is_new, parent, cited, is_several, told_digest)
             WHERE (SELECT count(*) FROM threads_tracechange AS held WHERE held.trace_id = fresh.trace_id) <= %s
            ON CONFLICT DO NOTHING
            """,
            [
                [trace_id for trace_id, _, _ in rows],
                [message_id for _, message_id, _ in rows],
                [said is None for _, _, said in rows],
                [each.parent for each in stood],
                [each.cited for each in stood],
                [each.is_several for each in stood],
                [each.told_digest for each in stood],
                MOST_NOTED,
            ],
        )


def read_noted(trace: Trace) -> list[Noted] | None:
    """What was noted of a trace since it was drawn; None where something is not named."""
    columns = ("message_id", "is_new", "parent", "cited", "is_several", "told_digest")
    rows = list(TraceChange.objects.filter(trace=trace).values_list(*columns)[: MOST_NOTED + 1])
    if len(rows) > MOST_NOTED:
        return None
    found: list[Noted] = []
    for message_id, is_new, parent, cited, is_several, told in rows:
        if message_id is None:
            return None
        stood = Stood(
            parent, bytes(cited) if cited is not None else None, is_several, bytes(told) if told is not None else None
        )
        found.append(Noted(message_id, None if is_new else stood))
    return found


def forget_noted(traces: Sequence[Trace]) -> None:
    """Forget what was noted of these traces, as it is drawn now."""
    TraceChange.objects.filter(trace__in=traces).delete()


def note_unnamed(traces: Sequence[Trace]) -> None:
    """Note that something is not named in each of these traces: what has been noted of them is of no use."""
    forget_noted(traces)
    if traces:
        _insert([(trace.pk, None, None) for trace in traces])
