"""Signs of life: an advisory lock of the database session, which PostgreSQL lets go of when its process is gone.

Whoever works on something that another would take over if it died holds the lock of its id. A killed process, a lost
machine, a broken line: the session ends, and with it the lock. Nothing has to be renewed, and nobody has to guess
how long a healthy worker may be silent. A pooler that shares sessions between transactions is gone around.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

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
