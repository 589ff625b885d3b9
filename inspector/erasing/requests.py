"""What is to be erased: counted beforehand, asked for with a reason; and what has become too old."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Exists, Max, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from inspector.accounts.models import Channel, Membership
from inspector.intake import jobs
from inspector.intake.models import Delivery, Job, Record, Sighting
from inspector.intake.staging import NotStagedError, discard
from inspector.intake.text import make_storable
from inspector.intake.withdrawals import (
    check_reason,
    find_withdrawal,
    withdraw_delivery,
)
from inspector.keyring.periods import destroy_key, find_period_key
from inspector.ledger.kinds import first_id
from inspector.retention.models import Erasure, RetentionRule, Tombstone
from inspector.retention.selectors import find_rules, is_erased, is_held
from inspector.threads.models import (
    Agent,
    Exchange,
    Message,
)  # fmt: skip
from inspector.trail.services import Thing, record_deed

# A preview counts up to here.
MAX_COUNTED: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be erased: a record or delivery by its id, all messages that a person sent, or a period.

    Args:
        name: of a person, as messages spell it; of a period its month, as 2026-10.
        is_both: whether what others sent to that person goes too.
    """

    kind: str
    subject: uuid.UUID | None = None
    name: str = ""
    is_both: bool = False

    def __post_init__(self) -> None:
        """Spell the name as messages store it, so that any text can be asked for."""
        object.__setattr__(self, "name", make_storable(self.name))


@dataclass(frozen=True, slots=True)
class Preview:
    """What erasing means now, counted up to `MAX_COUNTED`: `others` are messages of others in the same records."""

    records: int
    messages: int
    others: int
    first: datetime | None
    last: datetime | None
    is_held: bool

    def __str__(self) -> str:
        times = f", from {self.first:%Y-%m-%d} to {self.last:%Y-%m-%d}" if self.first and self.last else ""
        others = f", {self.others:,} of them by others" if self.others else ""
        held = "; a legal hold stops that" if self.is_held else ""
        return f"{self.messages:,} messages in {self.records:,} records{times}{others}{held}"


def preview(*, workspace_id: uuid.UUID, target: Target) -> Preview:
    """How many messages would be erased, and how old they are.

    Raises:
        ValidationError: where there is nothing of the kind.
    """
    channel = _find_channel(workspace_id, target)
    if target.kind == Erasure.Kind.PERSON:
        records = list(list_records_of(workspace_id, target.name, is_both=target.is_both)[:MAX_COUNTED])
    elif target.kind == Erasure.Kind.PERIOD:
        rows = Record.objects.filter(sealed_with=find_period_key(workspace_id=workspace_id, period=target.name))
        records = list(rows.order_by("pk").values_list("pk", flat=True)[:MAX_COUNTED])
    elif target.kind == Erasure.Kind.DELIVERY:
        seen = Sighting.objects.filter(delivery=target.subject)
        elsewhere = Sighting.objects.filter(record=OuterRef("record")).exclude(delivery=target.subject)
        records = list(seen.filter(~Exists(elsewhere)).values_list("record", flat=True)[:MAX_COUNTED])
    else:
        records = [uuid.UUID(str(target.subject))]
    kept = Record.objects.filter(pk__in=records).filter(~is_erased("record", OuterRef("pk")))
    times = kept.aggregate(first=Min("order_time"), last=Max("order_time"))
    messages = Message.objects.filter(record__in=records)
    count, others = messages.count(), 0
    if target.kind == Erasure.Kind.PERSON:
        others = messages.exclude(sender=target.name).count()
    held = is_held(workspace_id=workspace_id, channel_id=channel)
    return Preview(kept.count(), count, others, times["first"], times["last"], held)


def count_expired(*, workspace_id: uuid.UUID, channel: Channel | None, days: int) -> tuple[int, datetime | None]:
    """How many records a rule would erase now, counted up to `MAX_COUNTED`, and when the first of them came."""
    rows = Record.objects.filter(workspace=workspace_id, pk__lt=first_id(timezone.now() - timedelta(days=days)))
    rows = rows.filter(~is_erased("record", OuterRef("pk")))
    ids = (rows.filter(channel=channel) if channel else rows).order_by("pk").values_list("pk", flat=True)
    found = list(ids[:MAX_COUNTED])
    return len(found), Record.objects.get(pk=found[0]).created_at if found else None


def find_erased(*, delivery: Delivery) -> tuple[int, Erasure] | None:
    """How many of a delivery's records were erased, counted up to `MAX_COUNTED`, and one erasure of them."""
    rows = Tombstone.objects.filter(
        kind="record", subject__in=Sighting.objects.filter(delivery=delivery).values("record")
    )
    first = rows.select_related("erasure__by").first()
    return (rows[:MAX_COUNTED].count(), first.erasure) if first else None


def _find_channel(workspace_id: uuid.UUID, target: Target) -> uuid.UUID | None:
    """The channel of what is meant; None of a person or a period, whose messages may be in any."""
    if target.kind == Erasure.Kind.PERIOD:
        return None
    if target.kind == Erasure.Kind.PERSON:
        if not Agent.objects.filter(workspace=workspace_id, name=target.name).exists():
            raise ValidationError("no message here names this agent: write the name as the messages spell it")
        return None
    models: dict[str, Any] = {Erasure.Kind.RECORD: Record, Erasure.Kind.DELIVERY: Delivery}
    if target.kind not in models:
        raise ValidationError("what is erased is a record, a delivery, a person or a period")
    found = models[target.kind].objects.filter(pk=target.subject, workspace_id=workspace_id)
    channel: uuid.UUID | None = found.values_list("channel", flat=True).first()
    if channel is None:
        raise ValidationError(f"there is no such {target.kind} in this workspace")
    return channel


@transaction.atomic
def ask_to_erase(*, membership: Membership, target: Target, reason: str) -> Erasure:
    """Have something erased for good, by a job that follows; uploads that wait to be imported are discarded at once.

    Of a period the key is destroyed at once: what the job then removes cannot be read any more.

    Raises:
        PermissionDenied: for anybody but an owner.
        ValidationError: without a reason, where there is nothing of the kind, under a legal hold, or for a delivery
            that is still being taken in.
    """
    if not membership.is_owner:
        raise PermissionDenied("only an owner of this workspace erases messages")
    workspace_id, reason = membership.workspace_id, check_reason(reason)
    channel = _find_channel(workspace_id, target)
    if is_held(workspace_id=workspace_id, channel_id=channel):
        raise ValidationError("a legal hold stops erasing: lift it first")
    if target.kind == Erasure.Kind.DELIVERY:
        delivery = Delivery.objects.get(pk=uuid.UUID(str(target.subject)))
        if find_withdrawal(delivery=delivery) is None:
            withdraw_delivery(membership=membership, delivery=delivery, reason=reason)
    for staged in Delivery.objects.filter(workspace=workspace_id, state=Delivery.State.STAGED):
        try:
            discard(delivery=staged)
        except NotStagedError as error:
            raise ValidationError("an upload is being imported just now: try again when it is read") from error
    key = None
    if target.kind == Erasure.Kind.PERIOD:
        key = find_period_key(workspace_id=workspace_id, period=target.name)
        destroy_key(key)
    given = {"name": target.name, "is_both": target.is_both} if target.kind == Erasure.Kind.PERSON else {}
    erasure = Erasure(
        workspace_id=workspace_id,
        kind=target.kind,
        channel_id=channel,
        target=key.pk if key else target.subject,
        by=membership.user,
    )
    return _begin(erasure, reason, given, by=membership)


def _begin(erasure: Erasure, reason: str, given: dict[str, Any], *, by: Membership | None = None) -> Erasure:
    """A person's name stands in the job alone, which forgets it at the end."""
    erasure.reason = reason
    erasure.save(force_insert=True)
    jobs.ask(kind=Job.Kind.ERASE, subjects=[erasure.pk], workspace_id=erasure.workspace_id)
    Job.objects.filter(kind=Job.Kind.ERASE, subject=erasure.pk).update(checkpoint=given)
    jobs.wake_workers()
    record_act("erasure.asked", erasure, by=by, reason=reason)
    return erasure


def record_act(code: str, erasure: Erasure, *, by: Membership | None = None, **details: Any) -> None:
    on = Thing("erasure", erasure.pk, erasure.get_kind_display().lower())
    record_deed(code, workspace_id=erasure.workspace_id, on=on, by=by, about=[erasure.target or erasure.pk],
                details=details)  # fmt: skip


def erase_expired() -> int:
    """Begin to erase what is older than its channel keeps it; how many erasures that were. At most one a day each."""
    begun = 0
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    for channel in Channel.objects.filter(Exists(RetentionRule.objects.filter(workspace=OuterRef("workspace")))):
        rules = find_rules(workspace_id=channel.workspace_id)
        rule = rules.get(channel.pk) or rules.get(None)
        if rule is None or rule.days is None or is_held(workspace_id=channel.workspace_id, channel_id=channel.pk):
            continue
        until = today - timedelta(days=rule.days)
        done = Erasure.objects.filter(kind=Erasure.Kind.AGE, channel=channel)
        if done.filter(Q(finished_at=None) | Q(until__gte=until)).exists():
            continue
        old = Record.objects.filter(workspace=channel.workspace_id, channel=channel, pk__lt=first_id(until))
        since = done.aggregate(last=Max("until"))["last"]
        if not old.filter(pk__gte=first_id(since) if since else uuid.UUID(int=0)).exists():
            continue
        with transaction.atomic():
            reason = f"kept for {rule.days} days, as {rule.by.get_username()} set on {rule.at:%Y-%m-%d}"
            erasure = Erasure(workspace_id=channel.workspace_id, kind=Erasure.Kind.AGE, channel=channel, until=until)
            _begin(erasure, reason, {"after": str(first_id(since))} if since else {})
        begun += 1
    return begun


def list_records_of(workspace_id: uuid.UUID, name: str, *, is_both: bool) -> QuerySet[Any]:
    """The records with messages that an agent sent, or also received, by the conversations that it is known from."""
    agents = Agent.objects.filter(workspace=workspace_id, name=name).values("pk")
    places = Exchange.objects.filter(Q(sender__in=agents) | Q(receiver__in=agents)).values("conversation")
    whose = Q(sender=name) | Q(receivers__contains=[name]) if is_both else Q(sender=name)
    rows = Message.objects.filter(whose, workspace=workspace_id, conversation__in=places)
    return rows.order_by("record").values_list("record", flat=True).distinct()
