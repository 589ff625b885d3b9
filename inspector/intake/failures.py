"""Which failures pass: the database is away, full or in a deadlock, the object store is away, a key is not there yet;
no message's fault. And a limit on how long a stretch of Python may take, so that one record cannot hold a worker for
ever.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from django.db import InterfaceError, OperationalError

from inspector.database import make_storable
from inspector.keyring.encryption import LockedError
from inspector.tokens import hide_tokens

from .object_store import MissingObjectError, StoreError

# Codes of SQLSTATE, or the beginnings of them, as PostgreSQL's appendix A lists them.
_BUSY: Final = ("40001", "40P01", "55P03")
_AWAY: Final = (
    "08",  # the line to the server
    "53000",  # it has too little of something
    "53100",  # its disk is full
    "53300",  # it has too many connections
    "57P",  # it is starting, stopping, or has crashed
    "58",  # its own system fails it
    "25006",  # it only reads: a stand-in that has not taken over yet
)


def is_busy(error: BaseException) -> bool:
    """Whether two transactions got in each other's way, so that trying again at once is right."""
    return isinstance(error, OperationalError) and _code_of(error).startswith(_BUSY)


def is_away(error: BaseException) -> bool:
    """Whether the database could not be reached, or cannot take anything now."""
    if isinstance(error, InterfaceError):
        return True
    # Without a code it was not the server that answered: the line broke, or there was none.
    return isinstance(error, OperationalError) and (not _code_of(error) or _code_of(error).startswith(_AWAY))


def is_cut_off(error: BaseException) -> bool:
    """Whether a statement took longer than it may (SQLSTATE 57014)."""
    return isinstance(error, OperationalError) and _code_of(error) == "57014"


def is_passing(error: BaseException) -> bool:
    """Whether the same work may succeed later, unchanged: it costs no attempt."""
    is_stored = isinstance(error, StoreError) and not isinstance(error, MissingObjectError)
    return is_busy(error) or is_away(error) or is_stored or isinstance(error, LockedError)


def describe(error: BaseException) -> str:
    """The error as one short text for people, without tokens that it may quote."""
    return make_storable(hide_tokens(f"{type(error).__name__}: {error}".removesuffix(": ")))[:2000]


def _code_of(error: BaseException) -> str:
    return getattr(error.__cause__, "sqlstate", None) or ""


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
