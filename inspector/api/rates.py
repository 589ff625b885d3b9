"""How fast one key may ask, whichever process answers.

What a key may send stands in its row. A process takes a second's worth out of it at a time, so that a busy key costs a
statement a second and not one a request.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Final
from uuid import UUID

from django.conf import settings
from rest_framework.request import Request

from inspector.accounts.models import ApiKey
from inspector.accounts.services import reserve_requests

from .problems import ProblemError

# What was taken out of the row and not used is given up after so long.
KEPT_SECONDS: Final = 10.0
MAX_KEYS: Final = 10_000
# By key: how many requests are taken out for this process, and when that was.
_taken: Final[dict[UUID, tuple[int, float]]] = {}
_lock: Final = threading.Lock()


def refuse_haste(request: Request) -> None:
    """Count the request against its key.

    Raises:
        ProblemError: 429 with the time after which the next request passes.
    """
    most = settings.LIMITS["requests_per_minute"]
    key = request.auth
    if not most or not isinstance(key, ApiKey) or _take(key.pk):
        return
    count = max(1, most // 60)
    if reserve_requests(key=key, count=count, most=most):
        _keep(key.pk, count - 1)
    elif count == 1 or not reserve_requests(key=key, count=1, most=most):
        wait = math.ceil(60 / most)
        raise ProblemError(
            429,
            f"this key sends more than {most} requests a minute: send more records in each, or wait {wait} s",
            retry_after=wait,
        )


def _take(key: UUID) -> bool:
    with _lock:
        left, at = _taken.get(key, (0, 0.0))
        if not left or time.monotonic() - at > KEPT_SECONDS:
            return False
        _taken[key] = (left - 1, at)
        return True


def _keep(key: UUID, count: int) -> None:
    with _lock:
        if len(_taken) >= MAX_KEYS:
            _taken.clear()
        _taken[key] = (count, time.monotonic())
