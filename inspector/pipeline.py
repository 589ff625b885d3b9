"""The way of one message after intake, on one page: framing, and the jobs that follow it.

    intake      frame, identify, order: record + sighting + job, durable before the answer is sent
    ingest      a delivery, in batches, or small ones at once:  dialects.read, messages inserted, and small
                conversations that are at rest resolved with them; the others are marked
    weigh       a delivery that was withdrawn or holds what was:  hide or show its records, mark their conversations
    settle      a conversation, alone under its lease:  resolved block by block (`threads.resolving`); its traces marked
    open        a conversation with sealed messages, where there are keys:  try these, keep apart what they open
    trace       a trace, alone under its lease:  the tree of its messages across conversations
    export      a result set or a conversation:  its set fixed, its file written block by block, and hashed
    examine     a conversation, alone under its lease:  what the rules find in it, kept as findings
    alert       a new finding that a webhook is to hear of:  one request, tried again after growing pauses

The job row is the truth; workers are woken (`intake.waking`) and look for themselves. Each step keeps its checkpoint in
the transaction of its work, so that a worker killed at any point loses nothing and doubles nothing. A batch that fails,
or that killed its worker, is read record by record, and the record at fault is set aside as a dead letter while the
rest goes on. Every transaction locks in one order: records, framing's and reading's job, conversations, their jobs,
traces, their jobs, the totals of agents, the delivery, and last the trail of the workspace.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TypeVar

from django.db import DatabaseError, connection, transaction
from django.db.models import Q

from inspector.accounts.services import forget_sign_ins
from inspector.audit.alerts.sending import try_alert
from inspector.audit.findings.examining import ask_outdated, examine
from inspector.audit.findings.sweeping import note_all_due
from inspector.exports.making import drop_expired, make_step
from inspector.intake import jobs
from inspector.intake.breaks import end_abandoned
from inspector.intake.bulk import cut_windows
from inspector.intake.failures import is_away
from inspector.intake.liveness import alone
from inspector.intake.models import Delivery, Job, Sighting
from inspector.intake.services import frame_upload, weigh_records
from inspector.intake.staging import discard_expired
from inspector.intake.waking import wake
from inspector.keyring.encryption import KeyringError
from inspector.memory import collect_seldom, give_back
from inspector.reading import (
    BATCH_BYTES,
    BATCH_RECORDS,
    HALF_READ_SECONDS,
    MAX_TOGETHER,
    ingest_batch,
    ingest_together,
    retry_letter,
)
from inspector.threads.decryption import Attempt, open_batch
from inspector.threads.feed import forget_announcements
from inspector.threads.inserting.marking import EXAMINE_SECONDS, ask_to_examine
from inspector.threads.models import Conversation, Trace
from inspector.threads.resolving.arrivals import follow_weighing
from inspector.threads.resolving.resolver import resolve
from inspector.threads.trees.tracing import draw_traces
from inspector.upkeep import analyze_grown

logger = logging.getLogger(__name__)

SLICE_SECONDS = 20.0
# The locks of those who sweep and tidy.
_SWEEPING, _TIDYING = 0x7377656570, 0x74696479
# How often a worker looks for what nobody was woken for, and how often old things are discarded.
LOOK_SECONDS, TIDY_SECONDS = 2.0, 60.0
# A conversation that goes on growing is settled again after a pause in proportion to what settling it costs.
LEAST_PAUSE_SECONDS, PAUSE_FACTOR = 2.0, 4.0
# Reading goes first in slices of this length; while there is more to read, settling has this share of its time.
READING_SLICE_SECONDS, SETTLING_SHARE = 5.0, 0.25
# How many jobs of a kind are done together, as far as they are small.
TOGETHER: dict[str, int] = {
    Job.Kind.INGEST: MAX_TOGETHER,
    Job.Kind.SETTLE: 50,
    Job.Kind.TRACE: 50,
    Job.Kind.EXAMINE: 50,
}
# Conversations and traces are small that hold at most so many messages, and so many are worked on at once.
SMALL_MESSAGES, TOGETHER_MESSAGES = 1000, 2000
# What goes after reading and has a share of the time.
AFTER_READING = (Job.Kind.SETTLE, Job.Kind.TRACE, Job.Kind.OPEN, Job.Kind.EXAMINE, Job.Kind.EXPORT, Job.Kind.ALERT)


def run_due(
    *,
    seconds: float = SLICE_SECONDS,
    only: tuple[str, ...] = tuple(Job.Kind.values),
    is_over: Callable[[], bool] = bool,
) -> int:
    """Work off what is due; the number of jobs worked on. A job that fails is noted and left.

    Args:
        seconds: after which no job is begun.
        only: the kinds of jobs.
        is_over: whether no other job is to be begun.
    """
    collect_seldom()
    until = time.monotonic() + seconds
    looked = float("-inf")
    count = 0
    while time.monotonic() < until and not is_over():
        if time.monotonic() - looked > LOOK_SECONDS:
            jobs.take_back()
            looked = time.monotonic()
        analyze_grown()
        job = _turns.claim(only)
        if job is None:
            break
        run_job(job)
        count += 1
    return count


class Turns(threading.local):
    """Whose turn it is in a worker: reading goes before settling, which has its share all the same."""

    def __init__(self) -> None:
        self._spent = {False: 0.0, True: 0.0}
        self._claimed: tuple[bool, float] | None = None

    def claim(self, kinds: Sequence[str]) -> Job | None:
        """The next job of these kinds, or None where none is due."""
        if self._claimed is not None:
            is_settling, since = self._claimed
            self._spent[is_settling] += time.monotonic() - since
        settling = [kind for kind in kinds if kind in AFTER_READING]
        reading = [kind for kind in kinds if kind not in AFTER_READING]
        is_settlings_turn = self._spent[True] < SETTLING_SHARE * self._spent[False]
        first, second = (settling, reading) if is_settlings_turn else (reading, settling)
        job = jobs.claim(kinds=first, otherwise=second, together=TOGETHER)
        is_settling = job is not None and job.kind in AFTER_READING
        if job is None or (is_settling and not is_settlings_turn):
            # Nothing is left to read: what settling takes now is nobody's, and is not held against it later.
            self._spent = {False: 0.0, True: 0.0}
            self._claimed = None
        else:
            self._claimed = (is_settling, time.monotonic())
        return job


_turns = Turns()


def run_job(job: Job) -> None:
    """Do one slice of a leased job; whatever goes wrong is noted on its row."""
    with jobs.working_on(job):
        try:
            STEPS[job.kind](job)
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


def sweep() -> None:
    """Find what nobody ends and what nobody was woken for; of several at once one does.

    Deliveries whose receiver died are closed, jobs whose worker died are due again, and workers are woken for what is.
    """
    with alone(_SWEEPING) as is_ours:
        if not is_ours:
            return
        end_abandoned()
        jobs.take_back()
        ask_outdated()
        note_all_due()
    if jobs.has_due():
        wake()


def tidy() -> None:
    """Discard what is kept for hours or days only; of several at once one does."""
    with alone(_TIDYING) as is_ours:
        if is_ours:
            discard_expired()
            forget_announcements()
            drop_expired()
            forget_sign_ins()


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
    until = time.monotonic() + READING_SLICE_SECONDS
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
        jobs.hurry(kind=Job.Kind.SETTLE, workspace_id=job.workspace_id)
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
    batch = next(cut_windows(sizes, size_of=itemgetter(1), most_items=BATCH_RECORDS, most_bytes=BATCH_BYTES), None)
    if batch is None:
        return False
    with transaction.atomic():
        weighing = weigh_records(record_ids={record_id for *_, record_id in batch}, workspace_id=job.workspace_id)
        jobs.checkpoint(job, {"requests": job.requests, "index": batch[-1][0]})
        follow_weighing(weighing=weighing, workspace_id=job.workspace_id)
    return True


def settle_conversation(job: Job) -> None:
    """Settle a conversation, and small ones that are due together with it; while it grows, again after a pause."""
    started = time.monotonic()
    conversation, others = _load(Conversation, job)

    def finish(done: set[uuid.UUID]) -> None:
        pause = max(LEAST_PAUSE_SECONDS, PAUSE_FACTOR * (time.monotonic() - started))
        if jobs.is_half_read(workspace_id=job.workspace_id):
            pause = max(pause, HALF_READ_SECONDS)
        jobs.finish(job, subjects=done, again_after_seconds=pause)
        ask_to_examine({job.subject, *done}, workspace_id=job.workspace_id)

    if conversation is None:
        jobs.finish(job)
        return
    resolve(
        conversation=conversation,
        fence=lambda: jobs.checkpoint(job, {}),
        finish=finish,
        others=others,
    )


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
        pause = max(jobs.find_end(EXAMINE_SECONDS) - time.time(), PAUSE_FACTOR * (time.monotonic() - started))
        jobs.finish(job, subjects={other.pk for other in others}, again_after_seconds=pause)

    if conversation is None:
        finish()
        return
    examine(conversations=[conversation, *others], fence=lambda: jobs.checkpoint(job, {}), finish=finish)


def open_conversation(job: Job) -> None:
    """Try the sealed messages of a conversation with the keys of its workspace, batch by batch.

    Keys that cannot be used now are no reason not to use the others; but then the job fails, so that it is seen.
    """
    until = time.monotonic() + READING_SLICE_SECONDS
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
        pause = max(LEAST_PAUSE_SECONDS, PAUSE_FACTOR * (time.monotonic() - started))
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
    until = time.monotonic() + READING_SLICE_SECONDS
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
    Job.Kind.SETTLE: settle_conversation,
    Job.Kind.OPEN: open_conversation,
    Job.Kind.TRACE: draw_trace,
    Job.Kind.EXPORT: write_export,
    Job.Kind.EXAMINE: examine_conversation,
    Job.Kind.ALERT: send_alert,
}
