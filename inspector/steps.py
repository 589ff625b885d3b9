"""The steps: one slice of a leased job, for each kind of job. `pipeline` says how they follow each other.

A step goes on from the checkpoint of its job, and ends the job or gives it back before its slice is over.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from operator import itemgetter
from typing import TypeVar

from django.db import DatabaseError, connection, transaction
from django.db.models import Q

from inspector.audit.alerts import try_alert
from inspector.audit.findings.examining import examine
from inspector.database import cut_windows
from inspector.erasing import erase
from inspector.exports.making import make_step
from inspector.intake import jobs
from inspector.intake.failures import is_away
from inspector.intake.models import Delivery, Job, Sighting
from inspector.intake.services import frame_upload
from inspector.intake.withdrawals import weigh_records
from inspector.keyring.encryption import KeyringError
from inspector.ledger.verifying import verify
from inspector.logs import about, step
from inspector.opening import Attempt, open_batch
from inspector.reading import BATCH_BYTES, BATCH_RECORDS, HALF_READ_SECONDS, ingest_batch, ingest_together, retry_letter
from inspector.threads.inserting import EXAMINE_SECONDS, ask_to_examine
from inspector.threads.models import Conversation, Trace
from inspector.threads.resolving.arrivals import follow_weighing
from inspector.threads.resolving.resolver import resolve
from inspector.threads.tracing import draw_traces
from inspector.upkeep import analyze_grown, give_back

logger = logging.getLogger(__name__)

# How long a slice is, before which others get their turn, and a worker can stop.
SLICE_SECONDS = 5.0
# A conversation that goes on growing is resolved again after a pause in proportion to what that costs.
MIN_PAUSE_SECONDS, PAUSE_FACTOR = 2.0, 4.0
# And no longer than this: what took long may only have waited, for a lock or on a line that was cut.
MAX_PAUSE_SECONDS = 30.0
# Conversations and traces are small that hold at most so many messages, and so many are worked on at once.
SMALL_MESSAGES, TOGETHER_MESSAGES = 1000, 2000


def frame(job: Job) -> None:
    """Frame an upload that waits in the database, slice by slice."""
    if frame_upload(job):
        jobs.finish(job)
    else:
        jobs.release(job)
    jobs.wake_workers()


def ingest(job: Job) -> None:
    """Read a delivery's new records, batch by batch, and mark the conversations they belong to.

    A small one is read together with others that are due.
    """
    if ingest_together(job):
        return
    until = time.monotonic() + SLICE_SECONDS
    while ingest_batch(job) or retry_letter(job):
        give_back()
        analyze_grown()
        if time.monotonic() > until:
            jobs.release(job)
            return
    jobs.finish(job)
    several = Q(received__gt=BATCH_RECORDS) | Q(size_bytes__gt=BATCH_BYTES)
    if Delivery.objects.filter(several, pk=job.subject).exists():
        # Its conversations waited for the rest of it, and now have all.
        jobs.hurry(kind=Job.Kind.RESOLVE, workspace_id=job.workspace_id)
    jobs.wake_workers()


def weigh(job: Job) -> None:
    """Hide or show a delivery's records as the withdrawals in force say, batch by batch."""
    until = time.monotonic() + SLICE_SECONDS
    while weigh_batch(job):
        if time.monotonic() > until:
            jobs.release(job)
            return
    jobs.finish(job)
    jobs.wake_workers()


def weigh_batch(job: Job) -> bool:
    """One batch: what is hidden, its conversations' generations and the checkpoint in one transaction.

    What was asked for meanwhile begins anew: the batches before it were weighed by what was in force then.
    """
    is_same = job.checkpoint.get("requests") == job.requests
    rows = Sighting.objects.filter(delivery_id=job.subject, index__gt=job.checkpoint["index"] if is_same else -1)
    sizes = rows.order_by("index").values_list("index", "length", "record_id")[:BATCH_RECORDS]
    batch = next(cut_windows(sizes, size_of=itemgetter(1), max_items=BATCH_RECORDS, max_bytes=BATCH_BYTES), None)
    if batch is None:
        return False
    with transaction.atomic():
        weighing = weigh_records(record_ids={record_id for *_, record_id in batch}, workspace_id=job.workspace_id)
        jobs.checkpoint(job, {"requests": job.requests, "index": batch[-1][0]})
        follow_weighing(weighing=weighing, workspace_id=job.workspace_id)
    return True


def resolve_conversation(job: Job) -> None:
    """Resolve a conversation, and small ones that are due together with it; while it grows, again after a pause."""
    started = time.monotonic()
    conversation, others = _load(Conversation, job)

    def finish(done: set[uuid.UUID]) -> None:
        pause = max(MIN_PAUSE_SECONDS, _pause_after(started))
        if jobs.is_half_read(workspace_id=job.workspace_id):
            pause = max(pause, HALF_READ_SECONDS)
        jobs.finish(job, subjects=done, again_after_seconds=pause)

    if conversation is None:
        jobs.finish(job)
        return
    resolve(
        conversation=conversation,
        fence=lambda: jobs.checkpoint(job, {}),
        finish=finish,
        others=others,
    )


def _pause_after(started: float) -> float:
    """How long to wait before work that began then, by `time.monotonic`, is done once more."""
    return min(MAX_PAUSE_SECONDS, PAUSE_FACTOR * (time.monotonic() - started))


Subject = TypeVar("Subject", Conversation, Trace)


def _load(model: type[Subject], job: Job) -> tuple[Subject | None, list[Subject]]:
    """The subject of a leased job and those of its companions, which it parts with where they are too much together."""
    rows = model._default_manager.in_bulk([job.subject, *(each.subject for each in job.companions)])
    first = rows.pop(job.subject, None)
    others: list[Subject] = []
    held = first.message_count if first else SMALL_MESSAGES
    if held < SMALL_MESSAGES:
        for other in rows.values():
            if other.message_count <= SMALL_MESSAGES and held + other.message_count <= TOGETHER_MESSAGES:
                held += other.message_count
                others.append(other)
    kept = {other.pk for other in others}
    jobs.part(job, [each for each in job.companions if each.subject not in kept])
    return first, others


def examine_conversation(job: Job) -> None:
    """Examine a conversation, and small ones that are due together with it; while it grows, again after a pause."""
    started = time.monotonic()
    conversation, others = _load(Conversation, job)

    def finish() -> None:
        pause = max(jobs.find_end(EXAMINE_SECONDS) - time.time(), _pause_after(started))
        jobs.finish(job, subjects={other.pk for other in others}, again_after_seconds=pause)

    if conversation is None:
        finish()
        return
    examine(conversations=[conversation, *others], finish=finish)


def open_conversation(job: Job) -> None:
    """Try the sealed messages of a conversation with the keys of its workspace, batch by batch.

    Keys that cannot be used now are no reason not to use the others; but then the job fails, so that it is seen.
    """
    until = time.monotonic() + SLICE_SECONDS
    attempt = Attempt.begin(conversation_id=job.subject, workspace_id=job.workspace_id)
    while open_batch(attempt, lambda: jobs.checkpoint(job, {})):
        if time.monotonic() > until:
            jobs.release(job)
            return
    if attempt.ring.problem:
        raise KeyringError(attempt.ring.problem)
    with transaction.atomic():
        jobs.finish(job)
        ask_to_examine({job.subject}, workspace_id=job.workspace_id)


def draw_trace(job: Job) -> None:
    """Sum a trace up, and those small ones that are due together with it; while it grows, after a pause."""
    started = time.monotonic()
    trace, others = _load(Trace, job)

    def finish(done: set[uuid.UUID]) -> None:
        pause = max(MIN_PAUSE_SECONDS, _pause_after(started))
        jobs.finish(job, subjects=done, again_after_seconds=pause)

    if trace is None:
        jobs.finish(job)
        return
    draw_traces(
        trace=trace,
        fence=lambda: jobs.checkpoint(job, {}),
        finish=finish,
        others=others,
    )


def write_export(job: Job) -> None:
    """Write an export, step by step; `exports.making` says what a step is."""
    until = time.monotonic() + SLICE_SECONDS
    while make_step(job):
        if time.monotonic() > until:
            jobs.release(job)
            return
    jobs.finish(job)


def send_alert(job: Job) -> None:
    """Tell a webhook of a finding; what fails is due again after a pause that the alert itself keeps."""
    pause = try_alert(alert_id=job.subject)
    if pause is None:
        jobs.finish(job)
    else:
        jobs.release(job, delay_seconds=pause)


STEPS: dict[str, Callable[[Job], None]] = {
    Job.Kind.FRAME: frame,
    Job.Kind.INGEST: ingest,
    Job.Kind.WEIGH: weigh,
    Job.Kind.RESOLVE: resolve_conversation,
    Job.Kind.OPEN: open_conversation,
    Job.Kind.TRACE: draw_trace,
    Job.Kind.EXPORT: write_export,
    Job.Kind.EXAMINE: examine_conversation,
    Job.Kind.ALERT: send_alert,
    Job.Kind.VERIFY: verify,
    Job.Kind.ERASE: erase,
}
OF_DELIVERIES = frozenset({Job.Kind.FRAME, Job.Kind.INGEST, Job.Kind.WEIGH})


def run_job(job: Job) -> None:
    """Do one slice of a leased job; whatever goes wrong is noted on its row."""
    of = "delivery" if job.kind in OF_DELIVERIES else "subject"
    ids = {"job": job.pk, "kind": job.kind, of: job.subject}
    count, began = 1 + len(job.companions), time.monotonic()
    with about(**ids), jobs.working_on(job):
        try:
            with step(job.kind, {**ids, "jobs": count}):
                STEPS[job.kind](job)
            level = logging.INFO if job.kind in OF_DELIVERIES else logging.DEBUG
            logger.log(level, "a slice of %d jobs took %.0f ms", count, 1000 * (time.monotonic() - began))
        except jobs.LostLeaseError:
            logger.warning("job %s has been taken over by another worker", job.pk)
        except Exception as error:
            logger.exception("job %s (%s) failed", job.pk, job.kind)
            _note_failure(job, error)
    give_back()


def _note_failure(job: Job, error: Exception) -> None:
    """Where the database does not take even the note, the job stands as running, and is taken back by the next look."""
    if is_away(error):
        connection.close()
    try:
        jobs.fail(job, error)
    except DatabaseError:
        logger.exception("the failure of job %s could not be noted", job.pk)
        connection.close()
