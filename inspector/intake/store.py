"""A batch of framed records into the database: what is new is stored, the rest is sighted. One transaction each.

The unique constraint on a record's identity decides what is new, so concurrent writers of the same file agree.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.db import connection, models

from dialects import Piece
from dialects import Scaffold as ScaffoldItem
from inspector.accounts.models import make_id
from inspector.database import insert_rows
from inspector.keyring.encryption import SealError
from inspector.keyring.periods import Seal, hold_seal
from inspector.retention.services import find_tombstones

from .identity import BY_TIME, Draft, add_warnings, count_equal
from .jobs import ask, find_due
from .models import LINE_END, Delivery, Job, Record, Scaffold, Sighting
from .readings import facts_at
from .sealed import clear_sha256, seal_row
from .withdrawals import find_forsaken, note_arrival_again

# A row by its columns.
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """What the database now holds for an identity."""

    id: uuid.UUID
    order: tuple[datetime, bytes, int]
    envelope: str


class AbandonedError(Exception):
    """The delivery was closed because its receiver showed no sign of life; nothing more of it is taken."""


class TwinError(Exception):
    """Another delivery of this key came with the same Idempotency-Key."""


def store_batch(
    *,
    delivery: Delivery,
    drafts: Sequence[Draft],
    scaffold: Sequence[ScaffoldItem | Piece],
    ended: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Store a batch of a delivery; call inside the transaction that also keeps the framing's checkpoint.

    Args:
        delivery: locked by the caller or owned by it alone; its counts are updated here, in memory and in the row,
            which is written with the first batch where there is none.
        drafts: in order of their index.
        scaffold: the bytes between records, and the pieces of records that are over the limit.
        ended: with the last batch, what else the row holds from then on.

    Raises:
        AbandonedError: for a delivery that was closed meanwhile.
        TwinError: for a new one whose Idempotency-Key is another's.
        KeyringError: where its bytes are to be sealed, and cannot be.
    """
    seal = hold_seal(delivery.workspace)
    _count_timed(delivery, drafts)
    fresh = {draft.index: make_id() for draft in drafts}
    ordered = sorted(drafts, key=lambda draft: (draft.identity, draft.index))
    records = [_make_record(delivery, draft, fresh[draft.index], seal) for draft in ordered]
    inserted = _insert(Record, records, order_by=("identity",))
    if inserted == len(drafts):
        held = {draft.identity: Held(fresh[draft.index], _order(delivery, draft), draft.envelope) for draft in drafts}
    else:
        held = _find_held(delivery, drafts)
    new_ids = set(fresh.values())
    again = [draft for draft in drafts if held[draft.identity].id not in new_ids]
    is_noted = bool(again) and note_arrival_again(delivery=delivery)
    # What was erased stays so: of what arrives again nothing is kept but that it did.
    erased = find_tombstones(kind="record", subjects={held[draft.identity].id for draft in again}) if again else {}
    again = [draft for draft in again if held[draft.identity].id not in erased]
    revived = _revive(again, held) if again and is_noted else set()
    outcomes: Counter[str] = Counter()
    sightings = []
    moves: dict[bytes, Draft] = {}
    for draft in drafts:
        record = held[draft.identity]
        is_new = record.id == fresh[draft.index]
        # What is quarantined is never read, so that its place decides nothing.
        is_kept = not is_new and record.id not in erased
        is_earlier = is_kept and not draft.is_quarantined and _order(delivery, draft) < record.order
        if is_earlier:
            moves[draft.identity] = draft
            held[draft.identity] = replace(record, order=_order(delivery, draft))
        outcome = _outcome(draft, is_new)
        outcomes[outcome] += 1
        differs = draft.envelope if is_kept and draft.envelope != record.envelope else ""
        is_read_again = is_earlier or draft.index in revived
        sightings.append(_make_sighting(delivery, draft, record.id, outcome, is_read_again, differs))
    # Concurrent writers move records in the order of their identity, and so never wait for each other in a circle.
    for identity, draft in sorted(moves.items()):
        _move_earlier(delivery, draft, held[identity])
    delivery.warnings = add_warnings(delivery.warnings, drafts)
    _count(delivery, outcomes)
    if delivery._state.adding:
        _insert_delivery(delivery, ended)
    _insert(Sighting, sightings, order_by=("delivery_id", "index"))
    starts = {draft.framed.offset for draft in drafts}
    between = [
        *((item.offset, item.data) for item in scaffold if item.data != LINE_END or item.offset + 1 not in starts),
        *(
            (draft.framed.offset, draft.framed.source or b"")
            for draft in _written_otherwise(drafts, held, fresh)
            if held[draft.identity].id not in erased
        ),
    ]
    _insert(Scaffold, [_make_scaffold(delivery, *each, seal) for each in between], order_by=("offset",))
    # Records, then the job, then the delivery: reading locks them in the same order.
    if any(row["outcome"] == Sighting.Outcome.STORED or row["is_earlier"] for row in sightings):
        delivery.due = 0.0 if delivery.is_file else find_due()
        ask(kind=Job.Kind.INGEST, subjects=[delivery.pk], workspace_id=delivery.workspace_id, due=delivery.due)
    if not delivery._state.adding:
        _update_delivery(delivery, ended)


def _written_otherwise(
    drafts: Sequence[Draft], held: Mapping[bytes, Held], fresh: Mapping[int, uuid.UUID]
) -> list[Draft]:
    """The duplicates whose bytes are not those of the record that is kept; theirs are kept with the delivery."""
    doubles = [draft for draft in drafts if draft.framed.source and held[draft.identity].id != fresh[draft.index]]
    if not doubles:
        return []
    digests = dict(
        Record.objects.filter(pk__in={held[draft.identity].id for draft in doubles})
        .annotate(digest=clear_sha256("source"))
        .values_list("pk", "digest")
    )
    return [
        draft
        for draft in doubles
        if hashlib.sha256(draft.framed.source or b"").digest() != bytes(digests[held[draft.identity].id])
    ]


def _revive(again: Sequence[Draft], held: Mapping[bytes, Held]) -> set[int]:
    """Let records that no delivery in force holds be read as this delivery reads them; the indexes of what changed.

    The same bytes may be framed otherwise, without prefixes for instance: whoever withdrew a delivery and sends the
    log again means what is said now.
    """
    forsaken = find_forsaken(record_ids={held[draft.identity].id for draft in again})
    changed: set[int] = set()
    for draft in sorted(again, key=lambda draft: (draft.identity, draft.index)):
        record_id = held[draft.identity].id
        if record_id not in forsaken or draft.is_quarantined:
            continue
        forsaken.discard(record_id)
        wire = None if draft.framed.source == draft.wire else draft.wire
        record = Record.objects.select_for_update(no_key=True).only("wire", "envelope", "sealed_with").get(pk=record_id)
        try:
            if (record.wire, record.envelope) == (wire, draft.envelope):
                continue
            kept = seal_row(record, "wire", wire)
        except SealError:
            continue  # Destroyed, and soon erased; or changed, so that nothing is to be added to it.
        Record.objects.filter(pk=record_id).update(wire=kept, envelope=draft.envelope)
        changed.add(draft.index)
    return changed


def _outcome(draft: Draft, is_new: bool) -> str:
    if draft.is_quarantined:
        return Sighting.Outcome.QUARANTINED
    return Sighting.Outcome.STORED if is_new else Sighting.Outcome.DUPLICATE


def _order(delivery: Delivery, draft: Draft) -> tuple[datetime, bytes, int]:
    return (draft.time, bytes(delivery.source_digest or b""), draft.index)


def _make_record(delivery: Delivery, draft: Draft, record_id: uuid.UUID, seal: Seal | None) -> _Row:
    framed = draft.framed
    source = framed.source or b""
    wire = None if draft.is_quarantined or source == draft.wire else draft.wire
    if seal is not None:
        source = seal.seal(source, "record source", record_id)
        wire = None if wire is None else seal.seal(wire, "record wire", record_id)
    time, digest, index = _order(delivery, draft)
    return {
        "id": record_id,
        "workspace_id": delivery.workspace_id,
        "channel_id": delivery.channel_id,
        "identity": draft.identity,
        "likeness": draft.likeness,
        "rule": draft.rule,
        "source": source,
        "wire": wire,
        "envelope": draft.envelope,
        "facts": facts_at(delivery.options, draft.index).write(),
        "dialect": "",
        "is_quarantined": draft.is_quarantined,
        "reason": framed.problem.reason if framed.problem else "",
        "order_time": time,
        "order_basis": draft.basis,
        "order_source": digest,
        "order_index": index,
        "is_from_file": delivery.is_file,
        "created_at": delivery.received_at,
        "sealed_with_id": seal.id if seal else None,
    }


def _make_scaffold(delivery: Delivery, offset: int, data: bytes, seal: Seal | None) -> _Row:
    # Most of them are the end of a line, which tells nobody anything.
    if data.isspace():
        seal = None
    kept = seal.seal(data, "scaffold", delivery.pk, offset) if seal else data
    return {"delivery_id": delivery.pk, "offset": offset, "data": kept, "sealed_with_id": seal.id if seal else None}


def _make_sighting(
    delivery: Delivery, draft: Draft, record_id: uuid.UUID, outcome: str, is_earlier: bool, envelope: str
) -> _Row:
    framed = draft.framed
    return {
        "id": make_id(),
        "workspace_id": delivery.workspace_id,
        "delivery_id": delivery.pk,
        "record_id": record_id,
        "index": framed.index,
        "line": framed.line,
        "offset": framed.offset,
        "length": framed.length,
        "outcome": outcome,
        "is_earlier": is_earlier,
        "envelope": envelope,
        "reason": framed.problem.reason if framed.problem else "",
    }


def _insert(model: type[models.Model], rows: Sequence[_Row], *, order_by: Sequence[str]) -> int:
    """Insert rows, all of the same columns, as `insert_rows` does."""
    columns = tuple(rows[0]) if rows else ()
    return insert_rows(model=model, columns=columns, rows=[tuple(row.values()) for row in rows], order_by=order_by)


def _find_held(delivery: Delivery, drafts: Sequence[Draft]) -> dict[bytes, Held]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT identity, id, order_time, order_source, order_index, envelope FROM intake_record"
            " WHERE workspace_id = %s AND channel_id = %s AND identity = ANY(%s)",
            [delivery.workspace_id, delivery.channel_id, list({draft.identity for draft in drafts})],
        )
        rows = cursor.fetchall()
    return {
        bytes(identity): Held(record_id, (time, bytes(source), index), envelope)
        for identity, record_id, time, source, index, envelope in rows
    }


def _move_earlier(delivery: Delivery, draft: Draft, record: Held) -> None:
    """Give a record seen again the smaller of its order keys, and what is said of it there.

    The where-clause keeps a concurrent smaller one.
    """
    time, source, index = _order(delivery, draft)
    facts = facts_at(delivery.options, draft.index).write()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE intake_record
               SET order_time = %s, order_basis = %s, order_source = %s, order_index = %s, is_from_file = %s,
                   facts = %s
             WHERE id = %s AND (order_time, order_source, order_index) > (%s, %s, %s)
            """,
            (time, draft.basis, source, index, delivery.is_file, facts, record.id, time, source, index),
        )


def _count_timed(delivery: Delivery, drafts: Sequence[Draft]) -> None:
    """Rule 2: give equal timed records of one delivery the numbers 0, 1, 2 … across its batches."""
    timed = [draft for draft in drafts if draft.rule == BY_TIME and draft.likeness]
    if not timed:
        return
    seen: Counter[bytes] = Counter()
    if delivery.received:
        likenesses = {draft.likeness for draft in timed}
        rows = (
            Record.objects.filter(workspace_id=delivery.workspace_id, channel_id=delivery.channel_id)
            .filter(rule=BY_TIME, likeness__in=list(likenesses), sightings__delivery=delivery)
            .values_list("likeness")
            .annotate(times=models.Count("sightings"))
        )
        seen.update({bytes(likeness): times for likeness, times in rows})
    for draft in timed:
        likeness = draft.likeness or b""
        draft.identity = count_equal(likeness, seen[likeness])
        seen[likeness] += 1


def _count(delivery: Delivery, outcomes: Counter[str]) -> None:
    delivery.stored += outcomes[Sighting.Outcome.STORED]
    delivery.duplicate += outcomes[Sighting.Outcome.DUPLICATE]
    delivery.quarantined += outcomes[Sighting.Outcome.QUARANTINED]
    delivery.received += outcomes.total()


def _insert_delivery(delivery: Delivery, ended: Mapping[str, Any]) -> None:
    names = [field.attname for field in Delivery._meta.concrete_fields]
    values = (ended.get(name, getattr(delivery, name)) for name in names)
    row = [json.dumps(value) if isinstance(value, dict) else value for value in values]
    if not insert_rows(model=Delivery, columns=names, rows=[row], order_by=("id",)):
        raise TwinError


def _update_delivery(delivery: Delivery, ended: Mapping[str, Any]) -> None:
    counts = ("stored", "duplicate", "quarantined", "received", "warnings", "framed_bytes", "source_digest")
    held = Delivery.objects.filter(pk=delivery.pk, state=delivery.state)
    if not held.update(**{name: getattr(delivery, name) for name in counts}, **ended):
        raise AbandonedError(f"delivery {delivery.pk} was closed while it was being received")
