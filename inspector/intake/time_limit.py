"""A limit on how long a stretch of Python may take, so that one record cannot hold a worker for ever."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# What caught the first reminder by mistake gets another one.
AGAIN_SECONDS = 1.0


class OutOfTimeError(Exception):
    """The stretch took longer than its limit."""


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Interrupt the block when it takes longer. Let no statement to the database stand in it.

    Only a main thread can be interrupted, which is what a worker works in. Elsewhere the lease of the job is the limit.

    Raises:
        OutOfTimeError: in the block, when its time is over.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError(f"it took longer than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
