"""How often something may be done in a minute, by all processes together: each such limit has a row with what is left
of it, which fills evenly, up to a minute's worth.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Final

from django.db import connection
from django.utils import timezone

from .models import Pace

# What was taken out of a row for a process, and not used, is given up after so long.
KEPT_SECONDS: Final = 10.0
MAX_NAMES: Final = 10_000
# By name: how many are taken out for this process, and when that was.
_taken: Final[dict[str, tuple[int, float]]] = {}
_lock: Final = threading.Lock()

_TAKE: Final = """
INSERT INTO accounts_signinpace AS held (address, tries_left, tries_at)
VALUES (%(name)s, %(most)s - %(count)s, clock_timestamp())
ON CONFLICT (address) DO UPDATE SET tries_at = clock_timestamp(), tries_left = LEAST(%(most)s,
       held.tries_left + %(most)s / 60.0 * EXTRACT(epoch FROM clock_timestamp() - held.tries_at)) - %(count)s
 WHERE LEAST(%(most)s, held.tries_left
             + %(most)s / 60.0 * EXTRACT(epoch FROM clock_timestamp() - held.tries_at)) >= %(count)s
"""


def reserve(name: str, *, most: int, count: int = 1) -> bool:
    """Take so many out of what is left of a limit; whether there were so many.

    Args:
        name: of what is limited and for whom, of 45 characters at most.
        most: a minute.
        count: how many, no more than `most`.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, {"name": name, "most": float(most), "count": count})
        return bool(cursor.rowcount)


def reserve_often(name: str, *, most: int) -> bool:
    """Take one out, for what is done many times a second: a second's worth at a time is taken out for this process."""
    if _take(name):
        return True
    count = max(1, most // 60)
    if reserve(name, most=most, count=count):
        _keep(name, count - 1)
        return True
    return count > 1 and reserve(name, most=most)


def forget_full() -> None:
    """Drop the rows that have filled up: without one a limit is as full."""
    Pace.objects.filter(at__lt=timezone.now() - timedelta(minutes=1)).delete()


def _take(name: str) -> bool:
    with _lock:
        left, at = _taken.get(name, (0, 0.0))
        if not left or time.monotonic() - at > KEPT_SECONDS:
            return False
        _taken[name] = (left - 1, at)
        return True


def _keep(name: str, count: int) -> None:
    with _lock:
        if len(_taken) >= MAX_NAMES:
            _taken.clear()
        _taken[name] = (count, time.monotonic())
