"""Workers: what is periodic; the tasks of Celery; and the worker of an installation without a broker, which waits in
PostgreSQL until there is work, and does it.

That one does all that is periodic too, beside any number of others: of what is due each job is leased to one, and of
those who would sweep or tidy at the same time one does. What is to be done stands in the job rows; a task of Celery
only has somebody look at them.
"""

from __future__ import annotations

import faulthandler
import logging
import mmap
import os
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

import psycopg
from celery import shared_task
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections
from django.utils import timezone

from inspector import pipeline
from inspector.accounts import limits
from inspector.accounts.services import record_reads
from inspector.audit.findings.examining import ask_outdated, note_all_due
from inspector.erasing import erase_expired
from inspector.exports.making import drop_expired
from inspector.intake import jobs
from inspector.intake.framing import end_abandoned
from inspector.intake.liveness import Listener, alone, wake
from inspector.intake.object_store import sweep as sweep_objects
from inspector.intake.staging import discard_expired
from inspector.keyring.services import remove_expired_keys
from inspector.ledger.sequencing import enter_new
from inspector.threads.resolving.writing import forget_announcements

logger = logging.getLogger(__name__)

# How long a job is waited for that another worker is just claiming, and a database that is away.
BUSY_SECONDS: Final = 0.02
AWAY_SECONDS: Final = 1.0
# A process that ends sooner than this has a fault of its own, and the next one is started after as long.
SHORT_LIFE_SECONDS: Final = 1.0
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)
# The locks of those who sweep and tidy.
_SWEEPING, _TIDYING = 0x7377656570, 0x74696479
# How often old things are discarded.
TIDY_SECONDS = 60.0


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
            limits.forget_full()
            record_reads()
            sweep_objects()


def _in_session(step: Callable[[], object]) -> None:
    close_old_connections()
    try:
        step()
    finally:
        close_old_connections()


@shared_task(name="inspector.work", ignore_result=True)
def work() -> None:
    """Work off what is due, for two seconds, so that a worker can stop; wake another if more is left."""
    _in_session(lambda: pipeline.run_due(seconds=pipeline.LOOK_SECONDS))
    if jobs.has_due():
        work.delay()


@shared_task(name="inspector.sweep", ignore_result=True)
def sweep_in_session() -> None:
    """Find the work that nobody was woken for: after a crash, a lost queue, a pause that is over."""
    _in_session(sweep)


@shared_task(name="inspector.tidy", ignore_result=True)
def tidy_in_session() -> None:
    """Discard what is kept for hours or days only."""
    _in_session(tidy)


class StoppedError(BaseException):
    """The worker was told to stop while it waited."""


class Worker:
    """Works until SIGTERM or SIGINT; what it has begun then it ends. Of those forked from one, each sweeps for all."""

    def __init__(self) -> None:
        self._is_over = False
        self._is_waiting = False
        # When somebody last swept and tidied, in memory that forked processes share.
        self._looked = memoryview(mmap.mmap(-1, 16)).cast("d")
        self._looked[0] = self._looked[1] = float("-inf")

    def run(self) -> None:
        """Work until told to stop, also where the database is away for a while."""
        for number in _ENDING:
            signal.signal(number, self._stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        while not self._is_over:
            try:
                self._work()
            except StoppedError:
                return
            except (DatabaseError, psycopg.Error):
                logger.warning("the database is away; another try follows", exc_info=True)
                connections.close_all()
                time.sleep(AWAY_SECONDS)

    def _work(self) -> None:
        with Listener() as listener:
            while not self._is_over:
                # What hangs beyond any lease ends its process, with a trace in the log; another one is started.
                faulthandler.dump_traceback_later(settings.WORKER_TIME_LIMIT_SECONDS, exit=True)
                self._look_around()
                due_at, count = jobs.find_next_due(), 0
                seconds = (due_at - timezone.now()).total_seconds() if due_at else pipeline.LOOK_SECONDS
                if seconds <= 0:
                    count = pipeline.run_due(seconds=pipeline.LOOK_SECONDS, is_over=lambda: self._is_over)
                faulthandler.cancel_dump_traceback_later()
                if not count:
                    until_look = self._looked[0] + pipeline.LOOK_SECONDS - time.monotonic()
                    self._wait(listener, max(min(seconds, until_look), BUSY_SECONDS))

    def _look_around(self) -> None:
        close_old_connections()
        now = time.monotonic()
        if now - self._looked[0] >= pipeline.LOOK_SECONDS:
            self._looked[0] = now
            sweep()
        if now - self._looked[1] >= TIDY_SECONDS:
            self._looked[1] = now
            tidy()

    def _wait(self, listener: Listener, seconds: float) -> None:
        self._is_waiting = True
        try:
            if not self._is_over:
                listener.wait(seconds)
        finally:
            self._is_waiting = False

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_over = True
        if self._is_waiting:
            raise StoppedError


class Pool:
    """Workers in processes of their own, which share what was imported before; one that dies is replaced.

    Args:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._worker = Worker()
        self._is_over = False
        self._born: dict[int, float] = {}

    def run(self) -> None:
        """Keep that many at work until SIGTERM or SIGINT, then wait until each has ended what it had begun."""
        for number in _ENDING:
            signal.signal(number, self._stop)
        while self._born or not self._is_over:
            while len(self._born) < self._count and not self._is_over:
                self._start()
            process, status = os.wait()
            lived = time.monotonic() - self._born.pop(process)
            if not self._is_over:
                logger.error("worker process %d ended (%d); another one is started", process, status)
                time.sleep(max(0.0, SHORT_LIFE_SECONDS - lived))

    def _start(self) -> None:
        # A signal that arrives between the fork and the child's own handlers waits until these are set.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        process = os.fork()
        if not process:
            os._exit(_run(self._worker))
        self._born[process] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_over = True
        for process in self._born:
            os.kill(process, signal.SIGTERM)


def _run(worker: Worker) -> int:
    try:
        worker.run()
    except Exception:
        logger.exception("a worker failed")
        return 1
    return 0
