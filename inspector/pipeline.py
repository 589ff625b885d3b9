"""The way of one message after intake, on one page: framing, and the jobs that follow it.

    intake      frame, identify, order: record + sighting + job, durable before the answer is sent
    ingest      a delivery, in batches, or small ones at once:  dialects.read, messages inserted, and small
                conversations that are at rest resolved with them; the others are marked
    weigh       a delivery that was withdrawn or holds what was:  hide or show its records, mark their conversations
    resolve     conversations, a long one alone:  resolved block by block (`threads.resolving`); their traces marked
    open        a conversation with sealed messages, where there are keys:  try these, keep apart what they open
    trace       traces, a long one alone:  the sums of its messages across conversations
    export      a result set or a conversation:  its set fixed, its file written block by block, and hashed
    examine     conversations, a long one alone:  what the rules find in them, kept as findings
    erase       what an owner asked to erase, or what is too old:  piece by piece, with all that was made of it
    verify      a ledger, as somebody asked:  each entry compared with what it stands for
    alert       a new finding that a webhook is to hear of:  one request, tried again after growing pauses

The job row is the truth; workers are woken (`intake.liveness`) and look for themselves. Each step keeps its checkpoint
in the transaction of its work, so that a worker killed at any point loses nothing and doubles nothing. A batch that
fails, or that killed its worker, is read record by record, and the record at fault is set aside as a dead letter while
the rest goes on. Every transaction locks in one order: records, framing's and reading's job, conversations, their jobs,
traces, their jobs, the totals of agents, the delivery, and last the trail of the workspace.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from inspector.intake import jobs
from inspector.intake.models import Job
from inspector.intake.turns import Turns
from inspector.reading import MAX_TOGETHER
from inspector.steps import SLICE_SECONDS, run_job
from inspector.trail.row_security import leave
from inspector.upkeep import analyze_grown, collect_seldom

# How often a worker looks for what nobody was woken for.
LOOK_SECONDS = 2.0
# How many jobs of a kind are done together, as far as they are small.
TOGETHER: dict[str, int] = {
    Job.Kind.INGEST: MAX_TOGETHER,
    Job.Kind.RESOLVE: 50,
    Job.Kind.TRACE: 50,
    Job.Kind.EXAMINE: 50,
}
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
