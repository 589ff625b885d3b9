"""Reads of the keyring: which keys a workspace holds, and what was done with them. No secret is read here."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

from django.db.models import Max, QuerySet

from inspector.accounts.models import Workspace
from inspector.database import take_page

from .models import EscrowedKey, KeyEvent, PeriodKey

_SEALED = ("secret", "data_key")


def list_keys(*, workspace: Workspace) -> QuerySet[EscrowedKey]:
    """The keys of a workspace, newest first, without what is sealed in them."""
    rows = EscrowedKey.objects.select_related("added_by", "released_by").filter(workspace=workspace)
    return rows.defer(*_SEALED).order_by("-added_at", "-pk")


def find_key(*, workspace: Workspace, key_id: uuid.UUID) -> EscrowedKey | None:
    """The key of that id in this workspace, or None."""
    return list_keys(workspace=workspace).filter(pk=key_id).first()


def list_period_keys(*, workspace_id: uuid.UUID) -> QuerySet[PeriodKey]:
    """The keys that records of a workspace were sealed with, the latest month first, without the keys themselves."""
    return PeriodKey.objects.filter(workspace=workspace_id).defer("data_key").order_by("-period")


def has_keys(*, workspace_id: uuid.UUID) -> bool:
    """Whether the workspace holds any key that may open messages."""
    return EscrowedKey.objects.in_force().filter(workspace_id=workspace_id).exists()


def find_last_uses(*, workspace: Workspace, key_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, datetime]:
    """When each of these keys last opened something, or what it opened was last shown."""
    rows = KeyEvent.objects.filter(
        workspace=workspace, key__in=list(key_ids), kind__in=[KeyEvent.Kind.OPENED, KeyEvent.Kind.SHOWN]
    )
    return dict(rows.values_list("key").annotate(last=Max("at")))


def list_events(
    *, workspace: Workspace, before: tuple[datetime, uuid.UUID] | None = None, limit: int = 50
) -> list[KeyEvent]:
    """What was done with the keys of a workspace, newest first, by keyset.

    Args:
        before: (at, id) of the last one seen.
    """
    rows = KeyEvent.objects.select_related("by").filter(workspace=workspace)
    return take_page(rows, "at", before, limit)
