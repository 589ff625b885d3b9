"""Signs of life: an advisory lock of the database session, which PostgreSQL lets go of when its process is gone; and
waking workers: by a Celery task where a broker is named, else by PostgreSQL's NOTIFY.

Whoever works on something that another would take over if it died holds the lock of its id. A killed process, a lost
machine, a broken line: the session ends, and with it the lock. Nothing has to be renewed, and nobody has to guess how
long a healthy worker may be silent. A pooler that shares sessions between transactions is gone around.

A wake-up may be lost or come twice. The job rows are the truth, and whoever works looks for due ones every few seconds.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

import psycopg
from celery import current_app
from django.conf import settings
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper


def key_of(name: uuid.UUID) -> int:
    """The number by which PostgreSQL knows the lock: the low half of the id, which is random."""
    return int.from_bytes(name.bytes[8:], "big", signed=True)


def own_session() -> BaseDatabaseWrapper:
    """The connection whose session is this thread's alone: locks of sessions are held on it, and let go of."""
    return connections["direct" if "direct" in connections.settings else "default"]


def show(name: uuid.UUID) -> None:
    """Begin to hold the sign of life."""
    with own_session().cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [key_of(name)])


class Sign:
    """A sign of life that whoever works shows when others can see the work, and lets go of at the end of the block."""

    def __init__(self, name: uuid.UUID) -> None:
        self._name = name
        self._is_shown = False

    def __enter__(self) -> Sign:
        return self

    def __exit__(self, *error: object) -> None:
        if self._is_shown:
            let_go(self._name)

    def show(self) -> None:
        """Begin to hold it, unless it is held."""
        if not self._is_shown:
            show(self._name)
            self._is_shown = True


@contextmanager
def alive(name: uuid.UUID) -> Iterator[None]:
    """Hold the sign of life while the block runs."""
    show(name)
    try:
        yield
    finally:
        let_go(name)


def let_go(name: uuid.UUID) -> None:
    """Take the sign of life away; where the session is gone, it went with it."""
    _unlock(key_of(name))


@contextmanager
def alone(key: int) -> Iterator[bool]:
    """Whether nobody else is inside a block of this key; nobody else gets in while it runs."""
    with own_session().cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        is_ours = bool(cursor.fetchone()[0])
    try:
        yield is_ours
    finally:
        if is_ours:
            _unlock(key)


def _unlock(key: int) -> None:
    session = own_session()
    if session.connection is None or session.connection.closed or session.needs_rollback:
        return
    with session.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [key])


def find_alive(names: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Which of these are held by a session that lives, our own included."""
    wanted = {key_of(name): name for name in names}
    if not wanted:
        return set()
    with connection.cursor() as cursor:
        # A lock of one number stands in the view as its two halves.
        cursor.execute(
            """
            SELECT (classid::bigint << 32) | objid::bigint
              FROM pg_locks
             WHERE locktype = 'advisory' AND objsubid = 1 AND mode = 'ExclusiveLock' AND granted
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        )
        return {wanted[key] for (key,) in cursor.fetchall() if key in wanted}


logger = logging.getLogger(__name__)

_CHANNEL: Final = "inspector_work"


def wake(*, delay_seconds: float = 0.0) -> None:
    """Wake a worker; call outside a transaction. Never raises.

    Args:
        delay_seconds: when there is something to do. Workers that listen to PostgreSQL see by themselves when that is.
    """
    try:
        if settings.CELERY_BROKER_URL:
            current_app.send_task("inspector.work", retry=False, ignore_result=True, countdown=delay_seconds or None)
        elif not delay_seconds:
            with connection.cursor() as cursor:
                cursor.execute(f"NOTIFY {_CHANNEL}")
    except Exception:
        logger.warning("no worker could be woken; the next look for due jobs finds the work", exc_info=True)


def reach_broker() -> None:
    """Connect to the broker; each transport raises an error of its own where that fails."""
    with current_app.connection_for_write() as line:
        line.ensure_connection(max_retries=1, timeout=5)


class Listener:
    """A session of its own in which PostgreSQL says that there is work. Use it as a context manager."""

    def __init__(self) -> None:
        self._session: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Listener:
        self._session = psycopg.connect(**own_session().get_connection_params(), autocommit=True)
        self._session.execute(f"LISTEN {_CHANNEL}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.close()

    def wait(self, seconds: float) -> None:
        """Wait until somebody wakes us, for this long at most.

        Raises:
            psycopg.OperationalError: where the session is gone.
        """
        if self._session is None:
            raise RuntimeError("a listener waits inside its `with` block only")
        for _ in self._session.notifies(timeout=seconds, stop_after=1):
            pass
