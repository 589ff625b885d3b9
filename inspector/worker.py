"""The worker of an installation without a broker: it waits in PostgreSQL until there is work, and does it.

It does all that is periodic too, beside any number of others: of what is due each job is leased to one, and of those
who would sweep or tidy at the same time one does.
"""

from __future__ import annotations

import faulthandler
import logging
import mmap
import os
import signal
import time
from types import FrameType
from typing import Final

import psycopg
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections
from django.utils import timezone

from inspector import pipeline
from inspector.intake import jobs
from inspector.intake.liveness import Listener

logger = logging.getLogger(__name__)

# How long a job is waited for that another worker is just claiming, and a database that is away.
BUSY_SECONDS: Final = 0.02
AWAY_SECONDS: Final = 1.0
# A process that ends sooner than this has a fault of its own, and the next one is started after as long.
SHORT_LIFE_SECONDS: Final = 1.0
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


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
            pipeline.sweep()
        if now - self._looked[1] >= pipeline.TIDY_SECONDS:
            self._looked[1] = now
            pipeline.tidy()

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
