"""Withdrawals: a delivery is taken out of what is shown, as a recorded act that can be taken back. Nothing is erased.

A record is hidden when every delivery it was seen in is withdrawn. Where another delivery still holds it, it stays, and
takes its place and its facts from the sighting with the smallest order key among those that are in force. A receipt's
counts never move.

The act is one row, in force at once. What it means for the records follows in a job, batch by batch: `weigh_records`
is a function of what is in force, so that it may run again at any time and in any order.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.utils import timezone

from dialects import identify
from inspector.accounts.models import Membership, Workspace
from inspector.database import make_storable, update_rows
from inspector.retention.models import Erasure
from inspector.retention.services import is_erased
from inspector.trail.services import Thing, record_deed

from . import jobs
from .identity import OrderKey, find_time, read_envelope
from .models import Delivery, HiddenRecord, Job, Record, Sighting, Withdrawal
from .readings import facts_at

MAX_REASON_LENGTH = 2000
_MAIN_WORDS = "give a reason: later readers of this delivery will see it"
# The first half of the advisory lock's key; the second is of the channel.
_LOCK_SPACE = 0x57_44_52_57


@dataclass(frozen=True, slots=True)
class Weighing:
    """What came of weighing some records: which are hidden or shown anew, and which have another place or facts."""

    turned: Sequence[uuid.UUID]
    moved: Sequence[uuid.UUID]


@transaction.atomic
def withdraw_delivery(*, membership: Membership, delivery: Delivery, reason: str) -> Withdrawal:
    """Withdraw a delivery; its records are hidden by the job that follows.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: without a reason, for one that is too long, for a delivery that is still being taken in, or one
            that is withdrawn already.
    """
    membership.require_auditor(delivery.workspace_id, "withdraws deliveries")
    reason = check_reason(reason)
    if not delivery.is_framed:
        raise ValidationError("it is still being taken in: wait until its receipt is final")
    hold_channel(delivery.channel_id, is_shared=False)
    if find_withdrawal(delivery=delivery) is not None:
        raise ValidationError("it is withdrawn already")
    made = Withdrawal.objects.create(
        workspace_id=delivery.workspace_id, delivery=delivery, by=membership.user, reason=reason
    )
    _ask_to_weigh(delivery)
    _record("delivery.withdrawn", membership, made, reason)
    return made


@transaction.atomic
def take_back(*, membership: Membership, delivery: Delivery, reason: str) -> Withdrawal:
    """Take the withdrawal of a delivery back; its records are shown again by the job that follows.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: without a reason, for one that is too long, or for a delivery that is not withdrawn.
    """
    membership.require_auditor(delivery.workspace_id, "withdraws deliveries")
    reason = check_reason(reason)
    hold_channel(delivery.channel_id, is_shared=False)
    withdrawal = find_withdrawal(delivery=delivery)
    if withdrawal is None:
        raise ValidationError("it is not withdrawn")
    if Erasure.objects.filter(kind=Erasure.Kind.DELIVERY, target=delivery.pk).exists():
        raise ValidationError("it was erased: nothing of it can be shown again")
    withdrawal.taken_back_by, withdrawal.taken_back_at = membership.user, timezone.now()
    withdrawal.taken_back_reason = reason
    withdrawal.save(update_fields=["taken_back_by", "taken_back_at", "taken_back_reason"])
    _ask_to_weigh(delivery)
    _record("delivery.taken-back", membership, withdrawal, reason)
    return withdrawal


def _record(code: str, membership: Membership, withdrawal: Withdrawal, reason: str) -> None:
    delivery = withdrawal.delivery
    record_deed(
        code,
        workspace_id=delivery.workspace_id,
        by=membership,
        on=Thing("delivery", delivery.pk, delivery.file_name or f"of {delivery.received_at:%Y-%m-%d %H:%M}"),
        details={"reason": reason},
    )


def check_reason(reason: str) -> str:
    """A reason as it is kept.

    Raises:
        ValidationError: without one, or for one that is too long.
    """
    reason = make_storable(reason.strip())
    if not reason:
        raise ValidationError({"reason": _MAIN_WORDS})
    if len(reason) > MAX_REASON_LENGTH:
        raise ValidationError({"reason": f"a reason has at most {MAX_REASON_LENGTH:,} characters"})
    return reason


def _ask_to_weigh(delivery: Delivery) -> None:
    jobs.ask(kind=Job.Kind.WEIGH, subjects=[delivery.pk], workspace_id=delivery.workspace_id)
    jobs.wake_workers()


def hold_channel(channel_id: uuid.UUID, *, is_shared: bool) -> None:
    """Until the transaction ends, keep acts of withdrawal (alone) and records that arrive again (shared) apart.

    Else a record could be sighted anew by a transaction that has not seen the act, while the job of the act has not
    seen the sighting: it would be hidden though a delivery in force holds it.
    """
    function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, %s)", [_LOCK_SPACE, int.from_bytes(channel_id.bytes[12:], signed=True)])


def note_arrival_again(*, delivery: Delivery) -> bool:
    """Records that were here before arrive in this delivery: have them weighed if anything was ever withdrawn.

    Call inside the transaction that stores their sightings.

    Returns:
        whether anything was.
    """
    hold_channel(delivery.channel_id, is_shared=True)
    if not Withdrawal.objects.filter(workspace_id=delivery.workspace_id).exists():
        return False
    jobs.ask(kind=Job.Kind.WEIGH, subjects=[delivery.pk], workspace_id=delivery.workspace_id)
    return True


def find_forsaken(*, record_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Those of these records that no delivery in force holds."""
    return set(record_ids) - set(_in_force(record_ids).values_list("record_id", flat=True))


def _in_force(record_ids: Collection[uuid.UUID]) -> QuerySet[Sighting]:
    withdrawn = Withdrawal.objects.filter(delivery_id=OuterRef("delivery_id"), taken_back_at__isnull=True)
    rows = Sighting.objects.filter(~Exists(withdrawn), record_id__in=list(record_ids))
    return rows.filter(~is_erased("record", OuterRef("record_id")))


def weigh_records(*, record_ids: Collection[uuid.UUID], workspace_id: uuid.UUID) -> Weighing:
    """Hide and show these records, and give them the place that they have by the deliveries in force.

    Call inside a transaction; the records are locked until it ends.
    """
    rows = Record.objects.select_for_update(no_key=True).filter(pk__in=list(record_ids)).order_by("identity")
    held = set(rows.values_list("pk", flat=True))
    shown = set(_in_force(held).values_list("record_id", flat=True))
    hidden = set(HiddenRecord.objects.filter(record_id__in=held).values_list("record_id", flat=True))
    to_hide, to_show = held - shown - hidden, hidden & shown
    HiddenRecord.objects.bulk_create(
        [HiddenRecord(record_id=record_id, workspace_id=workspace_id) for record_id in sorted(to_hide)]
    )
    HiddenRecord.objects.filter(record_id__in=to_show).delete()
    return Weighing(turned=sorted(to_hide | to_show), moved=_place_anew(shown))


def _place_anew(shown: Collection[uuid.UUID]) -> list[uuid.UUID]:
    """Give each of these the order key and the facts of its smallest sighting in force; those that changed."""
    counts = Sighting.objects.filter(record_id__in=list(shown)).values("record_id").annotate(times=Count("id"))
    shared = list(counts.filter(times__gt=1).values_list("record_id", flat=True))
    if not shared:
        return []
    records = Record.objects.filter(is_quarantined=False).in_bulk(shared)
    times = {record.pk: identify(record.wire_text).time for record in records.values()}
    best: dict[uuid.UUID, tuple[OrderKey, str, str, bool]] = {}
    for sighting in _in_force(list(records)).select_related("delivery").iterator(chunk_size=1000):
        delivery, record = sighting.delivery, records[sighting.record_id]
        said = read_envelope(sighting.envelope or record.envelope)
        time, basis = find_time(
            times[record.pk], said.at if said else None, delivery.declared_start, delivery.received_at
        )
        key = (time, bytes(delivery.source_digest or b""), sighting.index)
        if record.pk not in best or key < best[record.pk][0]:
            facts = facts_at(delivery.options, sighting.index).write()
            best[record.pk] = (key, basis, facts, delivery.is_file)
    moved = []
    for record_id, (key, basis, facts, is_from_file) in best.items():
        record = records[record_id]
        now = (record.order_time, bytes(record.order_source), record.order_index)
        if (now, record.order_basis, record.facts, record.is_from_file) != (key, basis, facts, is_from_file):
            moved.append((record_id, key[0], basis, key[1], key[2], is_from_file, facts))
    if moved:
        columns = ("id", "order_time", "order_basis", "order_source", "order_index", "is_from_file", "facts")
        update_rows(model=Record, columns=columns, rows=moved)
    return sorted(row[0] for row in moved)


def find_withdrawal(*, delivery: Delivery) -> Withdrawal | None:
    """The withdrawal of this delivery that is in force, or None."""
    rows = Withdrawal.objects.select_related("by").filter(delivery=delivery, taken_back_at__isnull=True)
    return rows.first()


def list_withdrawals(*, delivery: Delivery) -> QuerySet[Withdrawal]:
    """All acts of withdrawal of this delivery, newest first, those taken back included."""
    return Withdrawal.objects.select_related("by", "taken_back_by").filter(delivery=delivery).order_by("-at")


def find_withdrawals(*, delivery_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Withdrawal]:
    """The withdrawals in force of these deliveries, by delivery."""
    rows = Withdrawal.objects.select_related("by").filter(
        delivery_id__in=list(delivery_ids), taken_back_at__isnull=True
    )
    return {withdrawal.delivery_id: withdrawal for withdrawal in rows}


def is_hidden(*, record: Record) -> bool:
    """Whether every delivery that the record was seen in is withdrawn, and it has been hidden for that."""
    return HiddenRecord.objects.filter(record=record).exists()


def has_hidden(*, workspace: Workspace) -> bool:
    """Whether any record of the workspace is hidden."""
    return HiddenRecord.objects.filter(workspace=workspace).exists()


def count_hidden_of(*, delivery: Delivery, limit: int) -> int:
    """How many of the delivery's records are hidden, counted up to a limit."""
    rows = Sighting.objects.filter(delivery=delivery, record__hidden__isnull=False)
    return rows.values("pk")[:limit].count()


def is_weighing(*, delivery: Delivery) -> bool:
    """Whether the delivery's records still wait to be hidden or shown; so they do too where that was given up."""
    return _list_weighings(delivery.workspace_id).filter(subject=delivery.pk).exists()


def is_weighing_any(*, workspace_id: uuid.UUID) -> bool:
    """The same of any delivery of the workspace: so long nobody knows by whom a record that is not hidden is held."""
    return _list_weighings(workspace_id).exists()


def _list_weighings(workspace_id: uuid.UUID) -> QuerySet[Job]:
    # The states are named one by one, as the partial indexes have them.
    undone = [Job.State.QUEUED, Job.State.RUNNING, Job.State.DEAD]
    return Job.objects.filter(workspace_id=workspace_id, kind=Job.Kind.WEIGH, state__in=undone)
