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
from inspector.keyring.encryption import SealError
from inspector.keyring.periods import Seal, hold_seal
from inspector.retention.selectors import find_tombstones

from ..database import insert_rows
from .identity import BY_TIME, Draft, add_warnings, count_equal
from .jobs import ask, find_due
from .models import LINE_END, Delivery, Job, Record, Scaffold, Sighting
from .readings import facts_at
from .sealed import clear_sha256, seal_row
from .withdrawals import find_forsaken, note_arrival_again

_RECORD_COLUMNS = (
    "id",
    "workspace_id",
    "channel_id",
    "identity",
    "likeness",
    "rule",
    "source",
    "wire",
    "envelope",
    "facts",
    "dialect",
    "is_quarantined",
    "reason",
    "order_time",
    "order_basis",
    "order_source",
    "order_index",
    "is_from_file",
    "created_at",
    "sealed_with_id",
)
_SIGHTING_COLUMNS = (
    "id",
    "workspace_id",
    "delivery_id",
    "record_id",
    "index",
    "line",
    "offset",
    "length",
    "outcome",
    "is_earlier",
    "envelope",
    "reason",
)


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
    inserted = insert_rows(
        model=Record,
        columns=_RECORD_COLUMNS,
        rows=[_record_row(delivery, draft, fresh[draft.index], seal) for draft in ordered],
        order_by=("identity",),
    )
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
        sightings.append(_sighting_row(delivery, draft, record.id, outcome, is_read_again, differs))
    # Concurrent writers move records in the order of their identity, and so never wait for each other in a circle.
    for identity, draft in sorted(moves.items()):
        _move_earlier(delivery, draft, held[identity])
    delivery.warnings = add_warnings(delivery.warnings, drafts)
    _count(delivery, outcomes)
    if delivery._state.adding:
        _insert_delivery(delivery, ended)
    insert_rows(model=Sighting, columns=_SIGHTING_COLUMNS, rows=sightings, order_by=("delivery_id", "index"))
    starts = {draft.framed.offset for draft in drafts}
    insert_rows(
        model=Scaffold,
        columns=("delivery_id", "offset", "data", "sealed_with_id"),
        rows=[
            *(
                _scaffold_row(delivery, item.offset, item.data, seal)
                for item in scaffold
                if item.data != LINE_END or item.offset + 1 not in starts
            ),
            *(
                _scaffold_row(delivery, draft.framed.offset, draft.framed.source or b"", seal)
                for draft in _written_otherwise(drafts, held, fresh)
                if held[draft.identity].id not in erased
            ),
        ],
        order_by=("offset",),
    )
    # Records, then the job, then the delivery: reading locks them in the same order.
    if any(row[8] == Sighting.Outcome.STORED or row[9] for row in sightings):
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


def _record_row(delivery: Delivery, draft: Draft, record_id: uuid.UUID, seal: Seal | None) -> tuple[object, ...]:
    framed = draft.framed
    source = framed.source or b""
    wire = None if draft.is_quarantined or source == draft.wire else draft.wire
    if seal is not None:
        source = seal.seal(source, "record source", record_id)
        wire = None if wire is None else seal.seal(wire, "record wire", record_id)
    time, digest, index = _order(delivery, draft)
    return (
        record_id,
        delivery.workspace_id,
        delivery.channel_id,
        draft.identity,
        draft.likeness,
        draft.rule,
        source,
        wire,
        draft.envelope,
        facts_at(delivery.options, draft.index).write(),
        "",
        draft.is_quarantined,
        framed.problem.reason if framed.problem else "",
        time,
        draft.basis,
        digest,
        index,
        delivery.is_file,
        delivery.received_at,
        seal.id if seal else None,
    )


def _scaffold_row(delivery: Delivery, offset: int, data: bytes, seal: Seal | None) -> tuple[object, ...]:
    # Most of them are the end of a line, which tells nobody anything.
    if seal is None or data.isspace():
        return delivery.pk, offset, data, None
    return delivery.pk, offset, seal.seal(data, "scaffold", delivery.pk, offset), seal.id


def _sighting_row(
    delivery: Delivery, draft: Draft, record_id: uuid.UUID, outcome: str, is_earlier: bool, envelope: str
) -> tuple[object, ...]:
    framed = draft.framed
    return (
        make_id(),
        delivery.workspace_id,
        delivery.pk,
        record_id,
        framed.index,
        framed.line,
        framed.offset,
        framed.length,
        outcome,
        is_earlier,
        envelope,
        framed.problem.reason if framed.problem else "",
    )


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
