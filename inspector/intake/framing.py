"""From bytes to stored records: the one way that every door takes from framing on."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.db import OperationalError, transaction
from django.utils import timezone

from dialects import Item, LogOptions, LogReader, LogRecord, Piece, Scaffold

from . import jobs
from .identity import draft_record
from .models import Delivery
from .store import store_batch

PIECE_BYTES = 128 * 1024
BATCH_RECORDS = 1000
BATCH_BYTES = 4 * 1024 * 1024
_RETRIED = ("40P01", "40001")


def options_of(delivery: Delivery) -> LogOptions:
    """How this delivery is to be framed, as its sender declared."""
    said = delivery.options
    return LogOptions(
        form=said.get("form"),
        name=delivery.file_name or None,
        prefixes=said.get("prefixes", True),
        max_record_bytes=settings.LIMITS["record_bytes"],
    )


def series_of(delivery: Delivery) -> uuid.UUID:
    """What its records without id and time are new within: itself, or the first of the tries it goes on from."""
    said = delivery.options.get("series")
    return uuid.UUID(said) if said else delivery.pk


class Framer:
    """Frames one delivery, batch by batch; each batch is one transaction with the counts and the checkpoint.

    `keep` is called inside each batch's transaction with the reader's state, for whoever must be able to resume
    from `state` (null: from the start). A batch is what one piece of the stream completes, so that the reader's
    state and the stored records always agree.
    """

    def __init__(
        self,
        delivery: Delivery,
        *,
        state: dict[str, Any] | None = None,
        keep: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self._delivery = delivery
        self._keep = keep
        self._records: list[LogRecord] = []
        self._scaffold: list[Scaffold | Piece] = []
        self._reader = LogReader.from_state(state) if state else LogReader(options_of(delivery))

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            self._take(self._reader.feed(piece))
            self._delivery.framed_bytes += len(piece)
            if len(self._records) >= BATCH_RECORDS or sum(record.length for record in self._records) >= BATCH_BYTES:
                self._store()

    def close(self) -> None:
        """The stream has ended: store the rest."""
        self._take(self._reader.close())
        self._store()

    def pause(self) -> None:
        """Store what is complete, so that another framer can go on from the kept state."""
        self._store()

    def _take(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, LogRecord):
                self._records.append(item)
            else:
                self._scaffold.append(item)

    def _store(self) -> None:
        delivery = self._delivery
        if self._records and delivery.source_digest is None:
            delivery.source_digest = self._records[0].chain
        drafts = [
            draft_record(
                framed,
                series=None if delivery.is_file else series_of(delivery),
                start=delivery.declared_start,
                received_at=delivery.received_at,
            )
            for framed in self._records
        ]
        counts = (delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined)
        for attempt in range(5):
            try:
                with transaction.atomic():
                    store_batch(delivery=delivery, drafts=drafts, scaffold=self._scaffold)
                    if self._keep:
                        self._keep(self._reader.state())
                break
            except OperationalError as error:
                delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined = counts
                if getattr(error.__cause__, "sqlstate", None) not in _RETRIED or attempt == 4:
                    raise
        self._records, self._scaffold = [], []


def frame_stream(*, delivery: Delivery, chunks: Iterable[bytes]) -> Delivery:
    """Frame a stream of (decompressed) bytes now and finish the receipt: what the API and the import command do.

    The bytes that did arrive are kept whatever happens to the stream; a stream that breaks off leaves the delivery
    `broken` with its complete records.

    Raises:
        Exception: what reading the stream raised, after its complete records were stored.
    """
    framer = Framer(delivery)
    digest = hashlib.sha256()
    try:
        for chunk in chunks:
            digest.update(chunk)
            delivery.size_bytes += len(chunk)
            framer.feed(chunk)
    except Exception as error:
        framer.close()
        _end(delivery, digest.digest(), Delivery.State.BROKEN, f"the stream broke off: {error}")
        raise
    framer.close()
    _end(delivery, digest.digest(), Delivery.State.FRAMED, "")
    return delivery


def _end(delivery: Delivery, digest: bytes, state: str, failure: str) -> None:
    delivery.sha256, delivery.state, delivery.failure = digest, state, failure
    delivery.framed_at = timezone.now()
    delivery.save(update_fields=["sha256", "state", "failure", "size_bytes", "framed_bytes", "framed_at"])
    jobs.ring()
