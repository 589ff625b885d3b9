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
    erase       what an owner asked to erase, or what is too old:  piece by piece, with all that was made of it
    alert       a new finding that a webhook is to hear of:  one request, tried again after growing pauses

The job row is the truth; workers are woken (`intake.liveness`) and look for themselves. Each step keeps its checkpoint
in the transaction of its work, so that a worker killed at any point loses nothing and doubles nothing. A batch that
fails, or that killed its worker, is read record by record, and the record at fault is set aside as a dead letter while
the rest goes on. Every transaction locks in one order: records, framing's and reading's job, conversations, their jobs,
traces, their jobs, the totals of agents, the delivery, and last the trail of the workspace.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import DatabaseError, connection

from inspector.accounts.services import forget_sign_ins, record_reads
from inspector.audit.findings.examining import ask_outdated, note_all_due
from inspector.erasing import erase_expired
from inspector.exports.making import drop_expired
from inspector.intake import jobs
from inspector.intake.failures import is_away
from inspector.intake.framing import end_abandoned
from inspector.intake.liveness import alone, wake
from inspector.intake.models import Job
from inspector.intake.object_store import sweep as sweep_objects
from inspector.intake.staging import discard_expired
from inspector.intake.turns import Turns
from inspector.keyring.services import remove_expired_keys
from inspector.ledger.sequencing import enter_new
from inspector.logs import about, step
from inspector.reading import MAX_TOGETHER
from inspector.steps import SLICE_SECONDS, STEPS
from inspector.threads.resolving.writing import forget_announcements
from inspector.trail.row_security import leave
from inspector.upkeep import analyze_grown, collect_seldom, give_back

logger = logging.getLogger(__name__)

# The locks of those who sweep and tidy.
_SWEEPING, _TIDYING = 0x7377656570, 0x74696479
# How often a worker looks for what nobody was woken for, and how often old things are discarded.
LOOK_SECONDS, TIDY_SECONDS = 2.0, 60.0
# How many jobs of a kind are done together, as far as they are small.
TOGETHER: dict[str, int] = {
    Job.Kind.INGEST: MAX_TOGETHER,
    Job.Kind.SETTLE: 50,
    Job.Kind.TRACE: 50,
    Job.Kind.EXAMINE: 50,
}
OF_DELIVERIES = frozenset({Job.Kind.FRAME, Job.Kind.INGEST, Job.Kind.WEIGH})
_turns = Turns()


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
    leave()  # Where the same process answers requests, as in tests and measurements.
    until = time.monotonic() + seconds
    looked = float("-inf")
    count = 0
    while time.monotonic() < until and not is_over():
        if time.monotonic() - looked > LOOK_SECONDS:
            jobs.take_back()
            looked = time.monotonic()
        analyze_grown()
        job = _turns.claim(only, together=TOGETHER)
        if job is None:
            break
        run_job(job)
        count += 1
    return count


def run_job(job: Job) -> None:
    """Do one slice of a leased job; whatever goes wrong is noted on its row."""
    of = "delivery" if job.kind in OF_DELIVERIES else "subject"
    ids = {"job": job.pk, "kind": job.kind, of: job.subject}
    with about(**ids), jobs.working_on(job):
        try:
            began = time.monotonic()
            with step(job.kind, {**ids, "jobs": 1 + len(job.companions)}):
                STEPS[job.kind](job)
            logger.log(
                logging.INFO if job.kind in OF_DELIVERIES else logging.DEBUG,
                "a slice of %d jobs took %.0f ms",
                1 + len(job.companions),
                1000 * (time.monotonic() - began),
            )
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
        remove_expired_keys()
    if jobs.has_due():
        wake()
    enter_new()


def tidy() -> None:
    """Discard what is kept for hours or days only; of several at once one does."""
    with alone(_TIDYING) as is_ours:
        if is_ours:
            discard_expired()
            forget_announcements()
            drop_expired()
            erase_expired()
            forget_sign_ins()
            record_reads()
            sweep_objects()
