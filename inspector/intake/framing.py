"""From bytes to stored records: the one way that every door takes from framing on, and the end of a stream that broke
off.

A record that was cut must not look like one that was whole, so what came of it is quarantined, in one piece. Where a
file could not be read on, one more quarantined record without any length stands for the rest: its exact bytes are the
file as it arrived, which is kept.

Whoever receives a delivery shows a sign of life (`liveness`). Where it is gone, nobody will ever end the delivery.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from dialects import Item, LogOptions, LogReader, LogRecord, Piece, Problem, Scaffold
from inspector.database import make_storable
from inspector.upkeep import give_back

from . import jobs
from .containers import Arrival, BeyondLimitsError
from .failures import is_busy
from .identity import add_ending, draft_record
from .liveness import Sign, find_alive
from .models import Delivery, Door
from .store import AbandonedError, TwinError, store_batch


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
    since = timezone.now() - timedelta(seconds=GRACE_SECONDS)
    ended = close_abandoned(Delivery.objects.filter(received_at__lt=since))
    for delivery in ended:
        logger.warning("nobody receives delivery %s any more; it is closed as broken off", delivery.pk)
    return len(ended)


def close_abandoned(rows: QuerySet[Delivery]) -> list[Delivery]:
    """Close those of these deliveries whose receiver is gone: their records stand, and they are broken from now on."""
    receiving = rows.filter(state=Delivery.State.RECEIVING)
    held = list(receiving.defer("warnings").order_by("received_at", "pk")[:MAX_AT_ONCE])
    living = find_alive(delivery.pk for delivery in held)
    ended = []
    for delivery in held:
        # Between the list and this statement it may have come to its end; then the condition does not hold.
        if delivery.pk not in living:
            ended += [delivery] * Delivery.objects.filter(pk=delivery.pk, state=Delivery.State.RECEIVING).update(
                state=Delivery.State.BROKEN,
                failure=WORDS[Door(delivery.door)],
                size_bytes=F("framed_bytes"),
                framed_at=timezone.now(),
            )
    return ended


PIECE_BYTES = 128 * 1024
LAST_BYTES = 1024
BATCH_RECORDS = 1000
BATCH_BYTES = 1024 * 1024
MAX_TRIES = 5
# Of a delivery so many records are taken, and beyond that one for each so many bytes of it as it arrived, packed: of
# little no millions become. An operator who imports may have any number.
FREE_RECORDS: Final = 100_000
BYTES_EACH: Final = 4
# The name only helps where the bytes leave the form open, and then it is the name of what the container holds.
_CONTAINER_ENDING = re.compile(r"\.(gz|zst|zstd)\Z", re.IGNORECASE)


def options_of(delivery: Delivery) -> LogOptions:
    """How this delivery is to be framed, as its sender declared."""
    said = delivery.options
    return LogOptions(
        form=said.get("form"),
        name=_CONTAINER_ENDING.sub("", delivery.file_name) or None,
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
    state and the stored records always agree. `appear` is called before the row of a delivery is first written that
    is not whole by then. `measure` tells how much of what arrived has been taken, where that is not what was fed: the
    bytes of a container. `count_packed` tells how much arrived, where that is another number.
    """

    def __init__(
        self,
        delivery: Delivery,
        *,
        state: dict[str, Any] | None = None,
        keep: Callable[[dict[str, Any]], None] | None = None,
        appear: Callable[[], None] | None = None,
        measure: Callable[[], int] | None = None,
        count_packed: Callable[[], int] | None = None,
    ) -> None:
        self._delivery = delivery
        self._keep = keep
        self._appear = appear
        self._records: list[LogRecord] = []
        self._scaffold: list[Scaffold | Piece] = []
        # How much is held: records, and what lies between them, such as the pieces of one over the limit.
        self._held_bytes = 0
        self._reader = LogReader.from_state(state) if state else LogReader(options_of(delivery))
        self._measure = measure
        self._count_packed = count_packed or measure
        # How many bytes of the stream have been fed.
        self.position: int = state["offset"] if state else 0

    def bound(self, stream: Iterable[bytes]) -> Iterator[bytes]:
        """The stream in pieces, to be fed one by one, as far as a delivery may have records.

        A record has one byte at least, so that a piece of so many bytes as records are left completes no more; but
        pieces do not become smaller than `LAST_BYTES`, and so many records may be beyond the limit.

        Raises:
            BeyondLimitsError: where there are too many, and more bytes come.
        """
        if self._delivery.door == Door.IMPORT:
            yield from stream
            return
        for data in stream:
            at = 0
            while at < len(data):
                most = self._count_allowed()
                left = most + 1 - self._delivery.received - len(self._records)
                if left <= 0:
                    raise BeyondLimitsError(f"there are more than {most:,} records: send the rest by itself")
                size = min(max(left, LAST_BYTES), PIECE_BYTES)
                yield data[at : at + size]
                at += size

    def _count_allowed(self) -> int:
        arrived = self._count_packed() if self._count_packed else self.position
        return min(int(settings.LIMITS["delivery_records"]), max(FREE_RECORDS, arrived // BYTES_EACH))

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            self._take(self._reader.feed(piece))
            self.position += len(piece)
            self._delivery.framed_bytes = self._measure() if self._measure else self.position
            if len(self._records) >= BATCH_RECORDS or self._held_bytes >= BATCH_BYTES:
                self._store()
                give_back()

    def close(self, **ended: Any) -> None:
        """The stream has ended: store the rest, and with it what the delivery is from now on."""
        self._take(self._reader.close())
        state, ending = self._reader.state(), self._reader.ending
        if ending is not None:
            given = (state["index"], state["line"], ending)
            self._delivery.warnings = add_ending(self._delivery.warnings, *given)
        self._store(ended)

    def break_off(self, reason: str, *, file_digest: bytes | None = None, **ended: Any) -> None:
        """The stream goes no further: store what was whole, and quarantine what was cut (`close_broken`)."""
        reason = make_storable(reason)
        self._take(close_broken(self._reader, position=self.position, reason=reason, file_digest=file_digest))
        self._store(ended)

    def pause(self) -> None:
        """Store what is complete, so that another framer can go on from the kept state."""
        self._store()

    def _take(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, LogRecord):
                self._records.append(item)
                self._held_bytes += len(item.source or b"")
            else:
                self._scaffold.append(item)
                self._held_bytes += len(item.data)

    def _store(self, ended: Mapping[str, Any] = MappingProxyType({})) -> None:
        delivery = self._delivery
        if delivery._state.adding and not ended and self._appear:
            self._appear()
        if self._records and delivery.source_digest is None:
            delivery.source_digest = self._records[0].chain
        drafts = [
            draft_record(
                framed,
                series=None if delivery.is_file else series_of(delivery),
                start=delivery.declared_start,
                received_at=delivery.received_at,
                form=delivery.options.get("form"),
            )
            for framed in self._records
        ]
        counts = (delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined, delivery.warnings)
        for tries in range(1, MAX_TRIES + 1):
            try:
                with transaction.atomic():
                    store_batch(delivery=delivery, drafts=drafts, scaffold=self._scaffold, ended=ended)
                    if self._keep:
                        self._keep(self._reader.state())
                break
            except BaseException as error:
                delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined, delivery.warnings = counts
                if not is_busy(error) or tries == MAX_TRIES:
                    raise
        delivery._state.adding = False
        for name, value in ended.items():
            setattr(delivery, name, value)
        self._records, self._scaffold, self._held_bytes = [], [], 0


def take_stream(
    *,
    delivery: Delivery,
    chunks: Iterable[bytes],
    arrival: Arrival | None = None,
    count_packed: Callable[[], int] | None = None,
) -> Delivery:
    """Frame a stream of (decompressed) bytes now and finish the receipt: what the API and the import command do.

    The bytes that did arrive are kept whatever happens to the stream; a stream that breaks off leaves the delivery
    `broken` with its complete records, and what was cut is quarantined.

    The row of a delivery that has none yet is written with its first batch. Where that is all of it, nobody sees it
    before it is whole; otherwise whoever receives it shows a sign of life first.

    Args:
        delivery: just opened.
        chunks: the stream.
        arrival: of a file, what the stream is unfolded from; the delivery's size and digest are of it.
        count_packed: how much of it has arrived, where it is unfolded on the way.

    Raises:
        EmptyError: for one without a row and of no bytes, of which nothing is stored.
        TwinError: for one without a row whose Idempotency-Key is another's, of which nothing is stored.
        AbandonedError: where it was closed meanwhile.
        Exception: what reading the stream raised, after its complete records were stored.
    """
    with Sign(delivery.pk) as sign:
        if not delivery._state.adding:
            sign.show()
        return _frame(delivery, chunks, arrival, sign, count_packed)


class EmptyError(Exception):
    """The stream ended before it had begun."""


def _frame(
    delivery: Delivery,
    chunks: Iterable[bytes],
    arrival: Arrival | None,
    sign: Sign,
    count_packed: Callable[[], int] | None,
) -> Delivery:
    framer = Framer(delivery, appear=sign.show, measure=lambda: arrived.size_bytes, count_packed=count_packed)
    stream = Arrival(framer.bound(chunks))
    arrived = arrival or stream

    def end(state: str, failure: str) -> dict[str, Any]:
        return {
            "state": state,
            "failure": make_storable(failure),
            "sha256": arrived.sha256,
            "size_bytes": arrived.size_bytes,
            "framed_at": timezone.now(),
        }

    try:
        for chunk in stream:
            framer.feed(chunk)
    except (AbandonedError, TwinError):
        raise
    except Exception as error:
        if arrival:
            arrival.drain()
        failure = f"the stream broke off: {error}"
        file_digest = arrival.sha256 if arrival else None
        framer.break_off(str(error), file_digest=file_digest, **end(Delivery.State.BROKEN, failure))
        jobs.wake_workers_for(delivery.due)
        raise
    if delivery._state.adding and not stream.size_bytes:
        raise EmptyError
    framer.close(**end(Delivery.State.FRAMED, ""))
    jobs.wake_workers_for(delivery.due)
    return delivery
