"""Reads of intake: deliveries and their problems, records and their exact bytes, all within one workspace; and how
intake stands, in numbers over all workspaces: what came in, what waits, and for how long.
"""

from __future__ import annotations

import hashlib
import heapq
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any, Final

from django.db import connection
from django.db.models import BinaryField, Count, Exists, F, Func, Min, OuterRef, QuerySet, Sum
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from inspector.accounts.models import Channel, Workspace
from inspector.database import take_page

from .models import LINE_END, DeadLetter, Delivery, Door, Job, Record, Scaffold, Sighting, Withdrawal
from .sealed import clear_length

# A longer record is fetched in pieces: whole, it would be held several times over on its way from the database.
PIECE_BYTES: Final = 1024 * 1024


def find_delivery(*, workspace: Workspace, delivery_id: uuid.UUID) -> Delivery | None:
    """The delivery of that id in this workspace, or None; what is only staged is none yet."""
    rows = Delivery.objects.select_related("channel", "sent_by_user", "sent_by_key")
    return rows.filter(workspace=workspace, pk=delivery_id).exclude(state=Delivery.State.STAGED).first()


def list_deliveries(
    *,
    workspace: Workspace,
    channel: Channel | None = None,
    state: str = "",
    before: tuple[datetime, uuid.UUID] | None = None,
    limit: int = 50,
) -> list[Delivery]:
    """Deliveries, newest first, of a channel or in a state; `before` is the (received_at, id) of the last one seen."""
    rows = Delivery.objects.select_related("channel", "sent_by_user", "sent_by_key")
    rows = rows.defer("warnings").filter(workspace=workspace).exclude(state=Delivery.State.STAGED)
    if channel is not None:
        rows = rows.filter(channel=channel)
    if state:
        rows = rows.filter(state=state)
    return take_page(rows, "received_at", before, limit)


def sum_deliveries(*, workspace: Workspace) -> QuerySet[Any, Any]:
    """How many deliveries there are, and their counts added up: one row, or none where there are none."""
    rows = Delivery.objects.filter(workspace=workspace).exclude(state=Delivery.State.STAGED).order_by()
    counts = ("received", "stored", "duplicate", "quarantined")
    return rows.values("workspace").annotate(deliveries=Count("pk"), **{name: Sum(name) for name in counts})


def list_problems(*, delivery: Delivery, after: int = -1, limit: int = 100) -> QuerySet[Sighting]:
    """What was quarantined in a delivery, in its order, from the index after `after` on."""
    return (
        Sighting.objects.filter(delivery=delivery, outcome=Sighting.Outcome.QUARANTINED, index__gt=after)
        .select_related("record")
        .order_by("index")[:limit]
    )


def find_record(*, workspace: Workspace, record_id: uuid.UUID) -> Record | None:
    """The record of that id in this workspace, or None.

    A long one is without its bytes, see `read_source`; `wire_bytes` says how long the text is that was read of it.
    """
    rows = Record.objects.select_related("channel").defer("source", "wire")
    rows = rows.annotate(source_bytes=clear_length("source"), wire_bytes=clear_length("wire"))
    record = rows.filter(workspace=workspace, pk=record_id).first()
    if record is not None and vars(record)["source_bytes"] <= PIECE_BYTES:
        record.refresh_from_db(fields=["source", "wire", "sealed_with"])
    return record


def has_bytes(record: Record) -> bool:
    """Whether the record was loaded with its bytes; where one is long, it was not."""
    return "source" not in record.get_deferred_fields()


def list_sightings(*, record: Record) -> QuerySet[Sighting]:
    """Where a record was seen, first delivery first; each with `is_withdrawn`, whether its delivery is now."""
    in_force = Withdrawal.objects.filter(delivery_id=OuterRef("delivery_id"), taken_back_at__isnull=True)
    rows = Sighting.objects.select_related("delivery").annotate(is_withdrawn=Exists(in_force))
    return rows.filter(record=record).order_by("delivery__received_at", "index")


def find_first_sighting(*, record: Record) -> Sighting | None:
    """The sighting by which the record came in, or None."""
    return list_sightings(record=record).first()


def find_first_sightings(*, record_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, Sighting]:
    """The sighting by which each of these records came in, with its delivery, by the record's id."""
    rows = Sighting.objects.select_related("delivery").filter(record_id__in=record_ids)
    first = rows.order_by("record_id", "delivery__received_at", "index").distinct("record_id")
    return {sighting.record_id: sighting for sighting in first}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a delivery is on its way: bytes and lines framed, records read, work that is left.

    `lines` is None where it is not counted: only the framing of an upload keeps it.
    """

    framed_bytes: int
    size_bytes: int
    lines: int | None
    stored: int
    read: int
    set_aside: int
    is_framed: bool
    is_read: bool
    failure: str


def find_progress(*, delivery: Delivery) -> Progress:
    """How far a delivery is: framed by bytes, read by records; a dead letter shows as its failure."""
    work = {job.kind: job for job in Job.objects.filter(subject=delivery.pk)}
    dead = next((job.failure for job in work.values() if job.state == Job.State.DEAD), "")
    reader = work[Job.Kind.FRAME].checkpoint.get("reader") if Job.Kind.FRAME in work else None
    # What was here before is read again where it got another place, though every new record is read already.
    is_reading = Job.Kind.INGEST in work and work[Job.Kind.INGEST].state in (Job.State.QUEUED, Job.State.RUNNING)
    return Progress(
        framed_bytes=delivery.framed_bytes,
        size_bytes=delivery.size_bytes,
        lines=reader["line"] - 1 if reader else None,
        stored=delivery.stored,
        read=delivery.read,
        set_aside=delivery.set_aside,
        is_framed=delivery.is_framed,
        is_read=delivery.is_framed and delivery.read + delivery.set_aside >= delivery.stored and not is_reading,
        failure=delivery.failure or dead,
    )


def rebuild_stream(*, delivery: Delivery) -> Iterator[bytes]:
    """The bytes of the delivery's (decompressed) stream again, from its slices and its scaffold, in order.

    Where the scaffold holds something at the offset of a record, it is a duplicate's own bytes.
    """
    slices = (
        Sighting.objects.filter(delivery=delivery)
        .order_by("offset")
        .select_related("record")
        .only("offset", "length", "record__source", "record__sealed_with")
        .iterator(chunk_size=500)
    )
    between = delivery.scaffold.order_by("offset").iterator(chunk_size=500)
    covered, end = -1, 0
    # Of equal offsets the scaffold's comes first.
    pieces: Iterator[Scaffold | Sighting] = heapq.merge(between, slices, key=lambda piece: piece.offset)
    for piece in pieces:
        if piece.offset == end + 1:
            yield LINE_END
        if piece.offset != covered:
            data = bytes(piece.data if isinstance(piece, Scaffold) else piece.record.source)
            yield data
            covered = piece.offset if data else covered
        end = max(end, piece.offset + (len(piece.data) if isinstance(piece, Scaffold) else piece.length))


def read_source(*, record: Record) -> Iterator[bytes]:
    """The exact bytes of a record's slice, in pieces; those of a record over the limit come from its delivery.

    A quarantined record without a length stands for what could not be had of a file: it gives the file as it arrived.
    """
    if not has_bytes(record):
        yield from read_pieces(record=record, name="source")
        return
    if record.source:
        yield bytes(record.source)
        return
    sighting = find_first_sighting(record=record)
    if sighting is None:
        return
    if not sighting.length:
        yield from read_arrival(delivery=sighting.delivery)
        return
    pieces = sighting.delivery.scaffold.filter(
        offset__gte=sighting.offset, offset__lt=sighting.offset + sighting.length
    ).order_by("offset")
    for piece in pieces.iterator(chunk_size=8):
        yield bytes(piece.data)


def read_pieces(*, record: Record, name: str) -> Iterator[bytes]:
    """The bytes of a long record in pieces: of its `source`, or of its `wire`."""
    if record.sealed_with_id is not None:
        # What is sealed opens as a whole.
        yield bytes(getattr(Record.objects.only(name, "sealed_with").get(pk=record.pk), name) or b"")
        return
    rows = Record.objects.filter(pk=record.pk)
    for start in count(1, PIECE_BYTES):
        piece = Func(F(name), start, PIECE_BYTES, function="substring", output_field=BinaryField())
        held = bytes(rows.values_list(piece, flat=True).get() or b"")
        if held:
            yield held
        if len(held) < PIECE_BYTES:
            return


def measure_source(*, record: Record) -> tuple[int, str]:
    """How many the exact bytes of a record are, and their SHA-256 in hex."""
    size, digest = 0, hashlib.sha256()
    for piece in read_source(record=record):
        size += len(piece)
        digest.update(piece)
    return size, digest.hexdigest()


def read_arrival(*, delivery: Delivery) -> Iterator[bytes]:
    """The file of a broken upload or import as it arrived, in pieces; nothing where its stream is kept in whole."""
    for chunk in delivery.chunks.order_by("offset").iterator(chunk_size=8):
        yield bytes(chunk.data)


def list_letters(
    *,
    workspace: Workspace,
    delivery: Delivery | None = None,
    before: tuple[datetime, uuid.UUID] | None = None,
    limit: int = 50,
) -> list[DeadLetter]:
    """Records that could not be read yet, set aside last first; of one delivery, or of all.

    Args:
        before: (created_at, id) of the last one seen.
    """
    rows = _open_letters(workspace).select_related("delivery", "sighting", "asked_by")
    if delivery:
        rows = rows.filter(delivery=delivery)
    return take_page(rows, "created_at", before, limit)


def count_letters(*, workspace: Workspace) -> int:
    """How many records could not be read yet."""
    return _open_letters(workspace).count()


def list_given_up(*, workspace: Workspace, limit: int = 100) -> list[Job]:
    """Work that was given up after three attempts, latest first."""
    rows = Job.objects.filter(workspace=workspace, state=Job.State.DEAD)
    return list(rows.order_by("-updated_at", "-id")[:limit])


def has_dead_letters(*, workspace: Workspace) -> bool:
    """Whether anything waits on the page of dead letters."""
    return _open_letters(workspace).exists() or Job.objects.filter(workspace=workspace, state=Job.State.DEAD).exists()


def _open_letters(workspace: Workspace) -> QuerySet[DeadLetter]:
    return DeadLetter.objects.filter(workspace=workspace).exclude(state=DeadLetter.State.READ)


def find_lag() -> float:
    """For how many seconds the reading or telling has been due that has waited longest; 0 where none waits."""
    waiting = Job.objects.filter(
        state=Job.State.QUEUED, kind__in=[Job.Kind.INGEST, Job.Kind.RESOLVE], due_at__lte=timezone.now()
    )
    since = waiting.order_by("due_at").values_list("due_at", flat=True).first()
    return (timezone.now() - since).total_seconds() if since else 0.0


def count_posted() -> int:
    """How many posted records wait to be read of which nothing has been read yet, over all workspaces.

    Files do not keep what is posted waiting: they are read in slices, between which others are read.
    """
    waiting = Job.objects.filter(kind=Job.Kind.INGEST, state=Job.State.QUEUED)
    rows = Delivery.objects.filter(pk__in=waiting.values("subject"), door=Door.API, read=0)
    return rows.aggregate(total=Sum("stored"))["total"] or 0


def count_backlog(**which: Any) -> int:
    """How many stored records wait to be read, over all workspaces; of such deliveries as `which` says."""
    waiting = Job.objects.filter(kind=Job.Kind.INGEST, state__in=[Job.State.QUEUED, Job.State.RUNNING])
    deliveries = Delivery.objects.filter(pk__in=waiting.values("subject"), **which)
    return deliveries.aggregate(total=Sum(F("stored") - F("read") - F("set_aside")))["total"] or 0


def list_measures() -> Iterator[Metric]:
    """Every measure, as a collector of Prometheus' library yields it, each by one query or two."""
    deliveries = GaugeMetricFamily("inspector_deliveries", "Deliveries by door and state.", labels=["door", "state"])
    doors = Delivery.objects.values_list("door", "state").annotate(count=Count("pk")).order_by("door", "state")
    for door, state, sent in doors:
        deliveries.add_metric([door, state], sent)
    yield deliveries
    records = CounterMetricFamily(
        "inspector_records_total", "Records received, by what came of them.", labels=["outcome"]
    )
    sums = Delivery.objects.aggregate(stored=Sum("stored"), duplicate=Sum("duplicate"), quarantined=Sum("quarantined"))
    for outcome, total in sums.items():
        records.add_metric([outcome], total or 0)
    yield records
    yield GaugeMetricFamily("inspector_backlog_records", "Stored records that wait to be read.", count_backlog())
    waiting = Job.objects.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING])
    dead = Job.objects.filter(state=Job.State.DEAD)
    counts = {
        (kind, state): count
        for jobs in (waiting, dead)
        for kind, state, count in jobs.values_list("kind", "state").annotate(count=Count("pk"))
    }
    jobs_by_state = GaugeMetricFamily(
        "inspector_jobs", "Jobs that wait, run, or were given up, by kind.", labels=["kind", "state"]
    )
    for kind in Job.Kind.values:
        for state in (Job.State.QUEUED, Job.State.RUNNING, Job.State.DEAD):
            jobs_by_state.add_metric([kind, state], counts.get((kind, state), 0))
    yield jobs_by_state
    letters = DeadLetter.objects.filter(state=DeadLetter.State.DEAD).count()
    yield GaugeMetricFamily("inspector_dead_letters", "Records that could not be read and were given up.", letters)
    used, most, size = ask_server()
    yield GaugeMetricFamily("inspector_database_sessions", "Sessions of clients that the database server has.", used)
    yield GaugeMetricFamily(
        "inspector_database_max_sessions",
        "Sessions that the database server takes from roles like the application's.",
        most,
    )
    yield GaugeMetricFamily("inspector_database_bytes", "Bytes of the database on its disk.", size)
    due = GaugeMetricFamily(
        "inspector_oldest_due_seconds",
        "For how long the longest waiting job has been due; of settle it is the oldest conversation.",
        labels=["kind"],
    )
    oldest = dict(waiting.values_list("kind").annotate(due=Min("due_at")))
    now = timezone.now()
    for kind in Job.Kind.values:
        due.add_metric([kind], max(0.0, (now - oldest[kind]).total_seconds()) if kind in oldest else 0)
    yield due


def ask_server() -> tuple[int, int, int]:
    """Its sessions, how many it takes, and the bytes of the database."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
                   current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
                   pg_database_size(current_database())
            """
        )
        used, most, size = cursor.fetchone()
    return used, most, size
