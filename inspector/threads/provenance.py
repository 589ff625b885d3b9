"""Where messages come from: their channel, the trace that they are in, and the delivery that brought them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Subquery

from inspector.intake.models import Sighting, Withdrawal
from inspector.lookups import IsAny

from .models import Message
from .trees.traces import select_trace


@dataclass(frozen=True, slots=True)
class Provenance:
    """The name of the channel, the id of the trace, and that of the first delivery that is not withdrawn.

    `trace` is None for a message that names none; where all deliveries are withdrawn, `delivery` is the first of them.
    """

    channel: str
    trace: uuid.UUID | None
    delivery: uuid.UUID


def find_provenance(messages: Iterable[Message]) -> dict[uuid.UUID, Provenance]:
    """Where each of these messages comes from, by its id; one statement."""
    withdrawn = Exists(Withdrawal.objects.filter(delivery=OuterRef("delivery"), taken_back_at__isnull=True))
    seen = Sighting.objects.filter(record=OuterRef("record")).annotate(is_withdrawn=withdrawn)
    first = seen.order_by("is_withdrawn", "delivery__received_at", "index").values("delivery")[:1]
    rows = Message.objects.filter(IsAny("id", [message.pk for message in messages])).order_by()
    return {
        pk: Provenance(channel, uuid.UUID(trace["id"]) if trace else None, delivery)
        for pk, channel, trace, delivery in rows.values_list("pk", "channel__name", select_trace(), Subquery(first))
    }
