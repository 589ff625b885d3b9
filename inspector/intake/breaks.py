"""The end of a stream that broke off, its process alive or dead: what was whole, what was cut in two, what is missing.

A record that was cut must not look like one that was whole, so what came of it is quarantined, in one piece. Where a
file could not be read on, one more quarantined record without any length stands for the rest: its exact bytes are
the file as it arrived, which is kept.

Whoever receives a delivery shows a sign of life (`liveness`). Where it is gone, nobody will ever end the delivery.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

from django.db.models import F
from django.utils import timezone

from dialects import Item, LogReader, LogRecord, Piece, Problem, Scaffold

from .liveness import find_alive
from .models import Delivery, Door


def close_broken(reader: LogReader, *, position: int, reason: str, file_digest: bytes | None = None) -> list[Item]:
    """What a reader gives at the end of a stream that broke off.

    Args:
        reader: fed with all that came.
        position: how many bytes of the stream that is.
        reason: why it goes no further.
        file_digest: the SHA-256 of the file that could not be read to its end; None for a POST.
    """
    before = reader.state()
    items = reader.close()
    if not before["long"] and not any(isinstance(item, Piece) for item in items):
        items = _mark_cut(items, before, position, f"the record is cut: {reason}")
    if file_digest is not None:
        after = reader.state()
        index = before["index"] + sum(isinstance(item, LogRecord) for item in items)
        items.append(
            LogRecord(
                index=index,
                offset=position,
                length=0,
                line=after["line"],
                source=b"",
                chain=sha256(bytes.fromhex(after["chain"]) + file_digest).digest(),
                problem=Problem(code="cut", reason=reason, offset=position),
            )
        )
    return items


def _mark_cut(items: list[Item], before: dict[str, Any], position: int, reason: str) -> list[Item]:
    records = [item for item in items if isinstance(item, LogRecord)]
    if not records:
        return items
    last = records[-1]
    is_open = last.offset + last.length == position
    problem = Problem(code="cut", reason=reason, offset=position)
    if before["form"] is None:
        # The reader had not yet decided how to read; what ends with a line end is whole.
        cut = {name: getattr(last, name) for name in ("index", "offset", "length", "line", "source", "chain")}
        return [LogRecord(**cut, problem=problem) if is_open and item is last else item for item in items]
    if len(records) == 1 and not is_open:
        return items
    # Several records are one block of lines that was given back for want of its end: it is kept in one piece.
    gap = bytes.fromhex(before["gap"])
    stream = b"".join((item.source or b"") if isinstance(item, LogRecord) else item.data for item in items)
    offset = before["offset"]
    cut_record = LogRecord(
        index=before["index"],
        offset=offset,
        length=len(stream) - len(gap),
        line=before["line"],
        source=stream[len(gap) :],
        chain=sha256(bytes.fromhex(before["chain"]) + stream).digest(),
        problem=problem,
    )
    return [*([Scaffold(offset=offset - len(gap), data=gap)] if gap else []), cut_record]


logger = logging.getLogger(__name__)

# Between the row of a delivery and the sign of life of its receiver lies a moment.
GRACE_SECONDS: Final = 10.0
MAX_AT_ONCE: Final = 500
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
    doors = dict(receiving.order_by("received_at").values_list("pk", "door")[:MAX_AT_ONCE])
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
