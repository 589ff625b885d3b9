"""Reads of retention: rules and holds in force, and what is known of something that was erased."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

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
