"""Reads that a streaming replica may answer, where `REPLICA_URL` names one: of the apps below, in views that say so.

Who asks, and what they may, was read from the primary before. The primary then says how far its log is, and the replica
is read once it has come so far: whatever anybody had posted, decided or erased when the view began is in its answer.
One that is away or further behind is left alone for a while, and the primary answers; also what a replica broke off.
Everything else is the primary's: what writes, jobs, receipts, reviews, sign-offs, proofs, sessions, keys and roles.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from inspector.trail.row_security import stand_within

from .bounds import GoneError

P = ParamSpec("P")
T = TypeVar("T")
logger = logging.getLogger(__name__)

REPLICA: Final = "replica"
APPS: Final = frozenset({"threads", "intake", "audit"})
WAIT_SECONDS: Final = 0.05
STEP_SECONDS: Final = 0.005
REST_SECONDS: Final = 5.0
_CANCELLED: Final = "57014"

# What the primary had committed when the replica was taken, as PostgreSQL writes a snapshot; empty while it is not.
_snapshot: ContextVar[str] = ContextVar("replica", default="")


class ReplicaRouter:
    """Django's router: the replica within a view that may read from it, for these apps; else the primary."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        """Where a model is read."""
        return REPLICA if _snapshot.get() and model._meta.app_label in APPS else DEFAULT_DB_ALIAS

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        """The primary, also for what the replica showed."""
        return DEFAULT_DB_ALIAS

    def allow_relation(self, *rows: Model, **hints: Any) -> bool:
        """Both have the same rows."""
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """A replica gets its tables with the rows."""
        return db != REPLICA


def read_from() -> BaseDatabaseWrapper:
    """The connection for a statement that is written out and reads from tables of these apps alone."""
    return connections[REPLICA if _snapshot.get() else DEFAULT_DB_ALIAS]


def find_snapshot() -> str:
    """What the primary had committed when the replica was taken; empty where the primary is read."""
    return _snapshot.get()


def on_replica(view: Callable[P, T]) -> Callable[P, T]:
    """Let a view that only reads, and decides nothing, be answered by the replica where there is one that can.

    It stands below what asks who somebody is. Where the replica breaks off, the view is begun anew on the primary.
    """

    @wraps(view)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        snapshot = _standing.take() if REPLICA in connections.settings else ""
        if snapshot:
            token = _snapshot.set(snapshot)
            try:
                return view(*args, **kwargs)
            except GoneError:
                raise
            except Error as error:
                if getattr(error.__cause__, "sqlstate", None) == _CANCELLED:
                    raise  # A statement that took too long takes as long there.
                _standing.leave(error)
            finally:
                _snapshot.reset(token)
        return view(*args, **kwargs)

    return answer


class _Standing:
    """Whether this process takes the replica, or leaves it alone for now; a line is logged when that changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_left = False
        self._until = 0.0

    def take(self) -> str:
        """What the primary has committed, where the replica has all of it; else empty."""
        now = time.monotonic()
        if now < self._until:
            return ""
        if self._is_left:
            self._until = now + REST_SECONDS  # One tries it, the others do not wait for that.
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            # The snapshot is taken before the place is asked for: nothing in it is beyond that place.
            cursor.execute(
                "SELECT pg_current_snapshot()::text, system_identifier, pg_current_wal_flush_lsn()"
                "  FROM pg_control_system()"
            )
            snapshot, *place = cursor.fetchone()
        try:
            has_come = _wait_for(place)
            stand_within(connections[REPLICA])
        except Error as error:
            self.leave(error)
            return ""
        if not has_come:
            self.leave(f"it is no replica of it, or more than {WAIT_SECONDS:g} s behind")
            return ""
        if self._is_left and self._change(is_left=False):
            self._until = 0.0
            logger.info("The replica answers again.")
        return str(snapshot)

    def leave(self, why: object) -> None:
        """Leave the replica alone for a while."""
        self._until = time.monotonic() + REST_SECONDS
        connections[REPLICA].close()
        if self._change(is_left=True):
            logger.warning("The replica is left alone and the primary answers: %s", " ".join(str(why).split()))

    def _change(self, *, is_left: bool) -> bool:
        with self._lock:
            was, self._is_left = self._is_left, is_left
        return was != is_left


_standing: Final = _Standing()


def _wait_for(place: list[Any]) -> bool:
    """Whether the replica comes to a place, of which server's log and where, in the time that it is waited for."""
    until = time.monotonic() + WAIT_SECONDS
    with connections[REPLICA].cursor() as cursor:
        while True:
            cursor.execute(
                "SELECT pg_is_in_recovery() AND system_identifier = %s AND pg_last_wal_replay_lsn() >= %s::pg_lsn"
                "  FROM pg_control_system()",
                place,
            )
            if cursor.fetchone()[0]:
                return True
            if time.monotonic() > until:
                return False
            time.sleep(STEP_SECONDS)
