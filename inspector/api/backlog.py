"""The backlog: in how many seconds what is posted now is told, by what waits before it and the measured pace."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Final

from django.db.models import F, Func, IntegerField, Sum
from django.utils import timezone

from inspector.intake.models import Delivery
from inspector.intake.selectors import count_posted, find_lag
from inspector.threads.models import Announcement
from inspector.trail.row_security import across

from .problems import ProblemError

# What a system without a backlog takes: what is posted is gathered, read and told.
QUIET_SECONDS: Final = 6
# Over how long the pace is measured, and the messages a second that one core tells where nothing was measured yet.
PACE_SECONDS, MIN_PACE = 60, 300
# How often a process looks.
LOOK_SECONDS: Final = 1.0

_looked: tuple[float, int] = (float("-inf"), QUIET_SECONDS)


def estimate_told() -> int:
    """In how many seconds what is posted now is told, as of the last look."""
    global _looked
    now = time.monotonic()
    if now - _looked[0] >= LOOK_SECONDS:
        with across():
            _looked = (now, QUIET_SECONDS + int(max(find_lag(), count_posted() / measure_pace())))
    return _looked[1]


def measure_pace() -> float:
    """How many messages a second all workers told lately, where there were many."""
    lately = Announcement.objects.filter(at__gt=timezone.now() - timedelta(seconds=PACE_SECONDS))
    count = Func(F("messages"), function="cardinality", output_field=IntegerField())
    told = lately.aggregate(told=Sum(count))["told"] or 0
    return max(float(MIN_PACE), told / PACE_SECONDS)


def tell_wait(delivery: Delivery) -> int:
    """In how many seconds a delivery is told; 0 for one of which everything is read."""
    is_read = delivery.is_framed and delivery.read + delivery.set_aside >= delivery.stored
    return 0 if is_read else estimate_told()


def refuse_backlog(max_seconds: int) -> None:
    """Take nothing more while what is posted would wait for longer than this.

    Raises:
        ProblemError: 503 with the seconds until it is worth another try.
    """
    seconds = estimate_told()
    if seconds > max_seconds:
        raise ProblemError(
            503,
            f"what is posted now would be processed in {seconds:,} seconds: send this again later",
            retry_after=min(max(seconds - max_seconds, 30), 300),
        )
