"""Deliveries whose receiving process died: they are closed as broken off, with the complete records they have.

Whoever receives a delivery shows a sign of life (`liveness`). Where it is gone, nobody will ever end the delivery.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from django.db.models import F
from django.utils import timezone

from .liveness import find_alive
from .models import Delivery, Door

logger = logging.getLogger(__name__)

# Between the row of a delivery and the sign of life of its receiver lies a moment.
GRACE_SECONDS: Final = 10.0
MOST_AT_ONCE: Final = 500
WORDS: Final = {
    Door.API: "the process that received it died before the end of the body; the complete records that were stored "
    "until then are kept. Send the body again: with the same Idempotency-Key nothing is stored twice",
    Door.UPLOAD: "the process that received it died before the file was kept; upload the file again",
    Door.IMPORT: "the import was stopped before its end; running it again adds what is missing",
}


def end_abandoned() -> int:
    """Close the deliveries that nobody receives any more; how many there were."""
    receiving = Delivery.objects.filter(
        state=Delivery.State.RECEIVING, received_at__lt=timezone.now() - timedelta(seconds=GRACE_SECONDS)
    )
    doors = dict(receiving.order_by("received_at").values_list("pk", "door")[:MOST_AT_ONCE])
    ended = 0
    for delivery_id in doors.keys() - find_alive(doors):
        # Between the list and this statement it may have come to its end; then the condition does not hold.
        ended += Delivery.objects.filter(pk=delivery_id, state=Delivery.State.RECEIVING).update(
            state=Delivery.State.BROKEN,
            failure=WORDS[Door(doors[delivery_id])],
            size_bytes=F("framed_bytes"),
            framed_at=timezone.now(),
        )
        logger.warning("nobody receives delivery %s any more; it is closed as broken off", delivery_id)
    return ended
