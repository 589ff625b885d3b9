"""The way of one message after intake, on one page: two jobs, `ingest` and `settle`, and the framing before them.

    intake      frame, identify, order: record + sighting + job, durable before the answer is sent
    ingest      a delivery, in batches:  dialects.read, messages inserted, their conversations marked
    weigh       a delivery that was withdrawn or holds what was:  hide or show its records, mark their conversations
    settle      a conversation, alone under its lease:  place, order, tell, outline

The job row is the truth and Celery the doorbell. Each step keeps its checkpoint in the transaction of its work, so
that a worker killed at any point loses nothing and doubles nothing. Every transaction locks in one order: records,
framing's and reading's job, conversations, their jobs, the delivery.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from operator import itemgetter

from django.db import transaction
from django.db.models import F, Q

from inspector.intake import jobs
from inspector.intake.bulk import cut_windows
from inspector.intake.models import Delivery, Job, Sighting
from inspector.intake.services import frame_upload, weigh_records
from inspector.threads.models import Conversation
from inspector.threads.services import follow_weighing, hold_records, insert_arrivals, read_record, settle

logger = logging.getLogger(__name__)

BATCH_RECORDS = 500
BATCH_BYTES = 4 * 1024 * 1024
SLICE_SECONDS = 20.0
# A conversation that goes on growing is settled again after a pause in proportion to what settling it costs.
LEAST_PAUSE_SECONDS, PAUSE_FACTOR = 2.0, 4.0


def run_due(*, seconds: float = SLICE_SECONDS, only: tuple[str, ...] = tuple(Job.Kind.values)) -> int:
    """Work off what is due for up to this long; the number of jobs worked on. A job that fails is noted and left."""
    until = time.monotonic() + seconds
    count = 0
    while time.monotonic() < until:
        job = jobs.claim(kinds=only)
        if job is None:
            break
        run_job(job)
        count += 1
    return count


def run_job(job: Job) -> None:
    """Do one slice of a leased job; whatever goes wrong is noted on its row."""
    try:
        STEPS[job.kind](job)
    except jobs.LostLeaseError:
        logger.warning("job %s has been taken over by another worker", job.pk)
    except Exception as error:
        logger.exception("job %s (%s) failed", job.pk, job.kind)
        jobs.fail(job, error)


def frame(job: Job) -> None:
    """Frame an upload that waits in the database, slice by slice."""
    if frame_upload(job):
        jobs.finish(job)
    else:
        jobs.release(job)
    jobs.ring()


def ingest(job: Job) -> None:
    """Read a delivery's new records, batch by batch, and mark the conversations they belong to."""
    until = time.monotonic() + SLICE_SECONDS
    while ingest_batch(job):
        if time.monotonic() > until:
            jobs.release(job)
            return
    jobs.finish(job)
    jobs.ring()


def ingest_batch(job: Job) -> bool:
    """One batch: its messages, its conversations' generations and the checkpoint in one transaction."""
    after = job.checkpoint.get("index", -1)
    waiting = Sighting.objects.filter(delivery_id=job.subject, index__gt=after).filter(
        Q(outcome=Sighting.Outcome.STORED) | Q(is_earlier=True)
    )
    sizes = waiting.order_by("index").values_list("index", "length")[:BATCH_RECORDS]
    batches = cut_windows(sizes, size_of=itemgetter(1), most_items=BATCH_RECORDS, most_bytes=BATCH_BYTES)
    batch = next(batches, None)
    if batch is None:
        return False
    sightings = list(waiting.filter(index__lte=batch[-1][0]).select_related("record").order_by("index"))
    records = {sighting.record_id: sighting.record for sighting in sightings}
    arrivals = [read_record(record) for record in records.values()]
    moved = [sighting.record_id for sighting in sightings if sighting.is_earlier]
    stored = sum(sighting.outcome == Sighting.Outcome.STORED for sighting in sightings)
    with transaction.atomic():
        arrivals = hold_records(arrivals)
        jobs.checkpoint(job, {"index": sightings[-1].index})
        insert_arrivals(arrivals=arrivals, workspace_id=job.workspace_id, moved=moved)
        Delivery.objects.filter(pk=job.subject).update(read=F("read") + stored)
    return True


def weigh(job: Job) -> None:
    """Hide or show a delivery's records as the withdrawals in force say, batch by batch."""
    until = time.monotonic() + SLICE_SECONDS
    while weigh_batch(job):
        if time.monotonic() > until:
            jobs.release(job)
            return
    jobs.finish(job)
    jobs.ring()


def weigh_batch(job: Job) -> bool:
    """One batch: what is hidden, its conversations' generations and the checkpoint in one transaction.

    What was asked for meanwhile begins anew: the batches before it were weighed by what was in force then.
    """
    is_same = job.checkpoint.get("requests") == job.requests
    rows = Sighting.objects.filter(delivery_id=job.subject, index__gt=job.checkpoint["index"] if is_same else -1)
    sizes = rows.order_by("index").values_list("index", "length", "record_id")[:BATCH_RECORDS]
    batch = next(cut_windows(sizes, size_of=itemgetter(1), most_items=BATCH_RECORDS, most_bytes=BATCH_BYTES), None)
    if batch is None:
        return False
    with transaction.atomic():
        weighing = weigh_records(record_ids={record_id for *_, record_id in batch}, workspace_id=job.workspace_id)
        jobs.checkpoint(job, {"requests": job.requests, "index": batch[-1][0]})
        follow_weighing(weighing=weighing, workspace_id=job.workspace_id)
    return True


def settle_conversation(job: Job) -> None:
    """Settle a conversation; while it goes on growing, again after a pause."""
    started = time.monotonic()
    conversation = Conversation.objects.filter(pk=job.subject).first()

    def finish() -> None:
        spent = time.monotonic() - started
        jobs.finish(job, again_after_seconds=max(LEAST_PAUSE_SECONDS, PAUSE_FACTOR * spent))

    if conversation is None:
        finish()
    else:
        settle(conversation=conversation, fence=lambda: jobs.checkpoint(job, {}), finish=finish)


STEPS: dict[str, Callable[[Job], None]] = {
    Job.Kind.FRAME: frame,
    Job.Kind.INGEST: ingest,
    Job.Kind.WEIGH: weigh,
    Job.Kind.SETTLE: settle_conversation,
}
