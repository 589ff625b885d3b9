"""Waking workers: by a Celery task where a broker is named, else by PostgreSQL's NOTIFY.

A wake-up may be lost or come twice. The job rows are the truth, and whoever works looks for due ones every few seconds.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any, Final

import psycopg
from celery import current_app
from django.conf import settings
from django.db import connection

from .liveness import own_session

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
