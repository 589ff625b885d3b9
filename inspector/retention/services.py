"""Retention: rules and holds, each an owner's act that the audit log has, and what is known of something that was
erased.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from inspector.accounts.models import Channel, Membership
from inspector.trail.services import Thing, record_deed

from .models import Erasure, LegalHold, RetentionRule, Tombstone


def find_rules(*, workspace_id: uuid.UUID) -> Mapping[uuid.UUID | None, RetentionRule]:
    """The rules in force of a workspace, by channel; that of the workspace itself under None."""
    rows = RetentionRule.objects.filter(workspace_id=workspace_id).select_related("channel", "by")
    return {rule.channel_id: rule for rule in rows.order_by("channel", "-id").distinct("channel")}


def list_holds(*, workspace_id: uuid.UUID) -> QuerySet[LegalHold]:
    """The holds in force of a workspace, newest first."""
    rows = LegalHold.objects.select_related("by", "channel")
    return rows.filter(workspace_id=workspace_id, lifted_at=None).order_by("-at")


def is_held(*, workspace_id: uuid.UUID, channel_id: uuid.UUID | None) -> bool:
    """Whether a hold stops erasing in a channel; without one, in any part of the workspace."""
    holds = list_holds(workspace_id=workspace_id)
    return (holds.filter(Q(channel=None) | Q(channel=channel_id)) if channel_id else holds).exists()


def list_erasures(*, workspace_id: uuid.UUID) -> QuerySet[Erasure]:
    """The erasures of a workspace, newest first, each with how many `records` it erased so far."""
    rows = Erasure.objects.select_related("by", "channel").filter(workspace_id=workspace_id)
    gone = Tombstone.objects.filter(erasure=OuterRef("pk"), kind="record").order_by().values("erasure")
    count = Subquery(gone.annotate(count=Count("subject")).values("count"))
    return rows.annotate(records=Coalesce(count, 0)).order_by("-id")


def is_erased(kind: str, subject: OuterRef) -> Exists:
    """Whether a row was erased, as a condition of another statement."""
    return Exists(Tombstone.objects.filter(kind=kind, subject=subject))


def find_tombstones(*, kind: str, subjects: Collection[uuid.UUID]) -> dict[uuid.UUID, Tombstone]:
    """The tombstones of these rows, with their erasures."""
    rows = Tombstone.objects.select_related("erasure__by").filter(kind=kind, subject__in=subjects)
    return {row.subject: row for row in rows}


def find_tombstone(*, workspace_id: uuid.UUID, about: uuid.UUID) -> Tombstone | None:
    """The tombstone of the record that a message stood in, by the message's id, or the record's own."""
    rows = Tombstone.objects.select_related("erasure__by").filter(kind="record", workspace_id=workspace_id)
    return rows.filter(Q(subject=about) | Q(about__contains=[about])).first()


MAX_DAYS = 36_500
MAX_REASON_LENGTH = 2000


@transaction.atomic
def set_retention(*, membership: Membership, channel: Channel | None, days: int | None) -> RetentionRule:
    """Set after how many days messages are erased; None keeps them for ever.

    Raises:
        PermissionDenied: for anybody but an owner.
        ValidationError: for a number of days that cannot be.
    """
    _require_owner(membership, channel)
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise ValidationError({"days": f"keep messages for 1 to {MAX_DAYS:,} days, or leave it empty for ever"})
    rule = RetentionRule.objects.create(
        workspace_id=membership.workspace_id, channel=channel, days=days, by=membership.user
    )
    on = Thing("retention", channel.pk if channel else "", channel.name if channel else "whole workspace")
    record_deed("retention.set", workspace_id=membership.workspace_id, by=membership, on=on, details={"days": days})
    return rule


@transaction.atomic
def place_hold(*, membership: Membership, channel: Channel | None, reason: str) -> LegalHold:
    """Stop retention and erasure, in a channel or everywhere, until this is lifted.

    Raises:
        PermissionDenied: for anybody but an owner.
        ValidationError: without a reason.
    """
    _require_owner(membership, channel)
    reason = reason.strip().replace("\x00", "")
    if not 1 <= len(reason) <= MAX_REASON_LENGTH:
        raise ValidationError({"reason": f"give a reason of at most {MAX_REASON_LENGTH:,} characters"})
    hold = LegalHold.objects.create(
        workspace_id=membership.workspace_id, channel=channel, reason=reason, by=membership.user
    )
    _record("hold.placed", membership, hold)
    return hold


@transaction.atomic
def lift_hold(*, membership: Membership, hold_id: uuid.UUID) -> LegalHold:
    """Lift a hold: what it stopped goes on within ten minutes.

    Raises:
        PermissionDenied: for anybody but an owner.
        ValidationError: where it is not in force.
    """
    _require_owner(membership, None)
    rows = LegalHold.objects.select_for_update(of=("self",)).filter(workspace_id=membership.workspace_id)
    hold = rows.filter(pk=hold_id, lifted_at=None).first()
    if hold is None:
        raise ValidationError("this hold is not in force any more")
    hold.lifted_by, hold.lifted_at = membership.user, timezone.now()
    hold.save(update_fields=["lifted_by", "lifted_at"])
    _record("hold.lifted", membership, hold)
    return hold


def _record(code: str, membership: Membership, hold: LegalHold) -> None:
    where = hold.channel.name if hold.channel else "whole workspace"
    details = {"reason": hold.reason}
    on = Thing("legal hold", hold.pk, where)
    record_deed(code, workspace_id=hold.workspace_id, by=membership, on=on, details=details)


def _require_owner(membership: Membership, channel: Channel | None) -> None:
    if not membership.is_owner or (channel and channel.workspace_id != membership.workspace_id):
        raise PermissionDenied("only an owner of this workspace decides how long messages are kept")
