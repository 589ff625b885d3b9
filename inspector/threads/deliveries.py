"""Reads of messages by the delivery that brought them."""

from __future__ import annotations

import uuid

from django.db.models import Min, Q, QuerySet

from inspector.accounts.models import Workspace
from inspector.intake.models import Delivery, Sighting

from .models import Message


def select_messages_of_delivery(*, workspace: Workspace, delivery_id: uuid.UUID) -> QuerySet[Message]:
    """The shown messages of the records that a delivery brought, duplicates included, in no order."""
    sighted = Sighting.objects.filter(workspace=workspace, delivery=delivery_id).values("record")
    return Message.objects.shown().filter(workspace=workspace, record__in=sighted)


def list_messages_of_delivery(*, delivery: Delivery, limit: int) -> list[Message]:
    """The messages of the records that a delivery brought, duplicates included, in the order of the delivery."""
    place = Min("record__sightings__index", filter=Q(record__sightings__delivery=delivery))
    rows = Message.objects.filter(workspace_id=delivery.workspace_id, record__sightings__delivery=delivery)
    return list(rows.annotate(line=place).order_by("line", "part")[:limit])


def has_unread_records(*, delivery: Delivery) -> bool:
    """Whether a record that a delivery brought has no messages yet; a duplicate may wait for another's reading."""
    taken = Sighting.objects.filter(delivery=delivery).exclude(outcome=Sighting.Outcome.QUARANTINED)
    return taken.filter(record__messages__isnull=True).exists()
