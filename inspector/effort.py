"""The processor time of an answer is bounded, and work ends when whoever asked for it goes: the statement that runs for
nobody is cancelled, no other begins, and what is computed ends too.

Whatever goes through many rows, messages or fields for an answer asks at each (`check_effort`) whether to go on. One
step is bounded by the bytes that it may read. Outside of a request, as in a worker, nothing is bounded here.

A thread that waits for PostgreSQL does not see that its own line was closed. So one thread of each process looks at the
lines of the requests under way. What only reads is ended; what writes goes on to its end, for its sender may have gone
because all was said. What is computed between two statements ends where it asks.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from django.core.signals import request_finished, request_started
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest, HttpResponseBase

EVERY_SECONDS: Final = 0.5
CANCEL_SECONDS: Final = 5.0
READING: Final = frozenset({"GET", "HEAD"})


class GoneError(OperationalError):
    """Whoever sent the request that is answered has gone."""

    def __str__(self) -> str:
        return "the client of this request has gone"


@dataclass(slots=True)
class _Visit:
    """A request under way: the line that it came by, and the connections that its thread asks databases by."""

    line: socket.socket
    databases: Sequence[BaseDatabaseWrapper]
    is_gone: bool = False
    is_over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def execute(self, execute: Callable[..., Any], *statement: Any) -> Any:
        """Run a statement unless nobody waits for it any more, as a wrapper of Django's does."""
        if self.is_gone:
            raise GoneError
        return execute(*statement)

    def end_if_gone(self) -> None:
        """Cancel the statement under way where the line was closed."""
        with self.lock:  # Whoever ends the visit waits meanwhile, so that no statement of another one is cancelled.
            self.is_gone = self.is_gone or (not self.is_over and _is_closed(self.line))
            if self.is_over or not self.is_gone:
                return
            for database in self.databases:
                line: psycopg.Connection[Any] | None = database.connection
                if line is not None and line.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                    with suppress(psycopg.Error):  # The next look tries again.
                        line.cancel_safe(timeout=CANCEL_SECONDS)


# By thread: each answers one request at a time.
_visits: Final[dict[int, _Visit]] = {}
_is_busy: Final = threading.Event()
_watcher: Final = threading.Lock()


def end_work_of_the_gone() -> None:
    """Watch the requests of this process; call once, where a server whose threads each answer one request begins."""
    request_started.connect(_begin_visit)
    request_finished.connect(_end_visit)


def has_gone() -> bool:
    """Whether whoever sent the request that this thread answers has gone."""
    visit = _visits.get(threading.get_ident())
    return visit is not None and visit.is_gone


def _begin_visit(environ: dict[str, Any] | None = None, **_: Any) -> None:
    _end_visit()
    line = (environ or {}).get("gunicorn.socket")
    if environ is None or line is None or environ["REQUEST_METHOD"] not in READING:
        return
    if _watcher.acquire(blocking=False):  # The first request of a process; it is given back by nobody.
        threading.Thread(target=_watch, name="leaving", daemon=True).start()
    visit = _Visit(line, connections.all())
    for database in visit.databases:
        database.execute_wrappers.append(visit.execute)
    _visits[threading.get_ident()] = visit
    _is_busy.set()


def _end_visit(**_: Any) -> None:
    visit = _visits.pop(threading.get_ident(), None)
    if visit is None:
        return
    with visit.lock:
        visit.is_over = True
    for database in visit.databases:
        database.execute_wrappers.remove(visit.execute)
        if visit.is_gone:
            database.close()  # A late word of cancelling must not meet what is asked by it next.


def _watch() -> None:
    while True:
        _is_busy.wait()
        time.sleep(EVERY_SECONDS)
        for visit in list(_visits.values()):
            visit.end_if_gone()
        _is_busy.clear()
        if _visits:
            _is_busy.set()


def _is_closed(line: socket.socket) -> bool:
    try:
        return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (BlockingIOError, ValueError):  # It is silent; or it is encrypted, and says nothing of itself.
        return False
    except OSError:
        return True


MAX_SECONDS: Final = 10.0

# The processor time of this thread at which the answer under way has had its share.
_end: ContextVar[float | None] = ContextVar("effort", default=None)


class SpentError(Exception):
    """The answer takes more of the processor than one answer may."""

    def __str__(self) -> str:
        return f"this takes more than {MAX_SECONDS:.0f} seconds of the processor: ask for less of it at once"


@contextmanager
def bound_effort() -> Iterator[None]:
    """Give what is computed within its share of the processor."""
    token = _end.set(time.thread_time() + MAX_SECONDS)
    try:
        yield
    finally:
        _end.reset(token)


class EffortMiddleware:
    """Bounds every request that only reads; what writes goes on to its end, and what is streamed is no part of it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        with bound_effort() if request.method in READING else nullcontext():
            return self.get_response(request)


def check_effort() -> None:
    """Go on with the answer under way, or end it.

    Raises:
        SpentError: where it has had its share of the processor.
        GoneError: where whoever asked has gone.
    """
    end = _end.get()
    if end is None:
        return
    if has_gone():
        raise GoneError
    if time.thread_time() > end:
        raise SpentError
