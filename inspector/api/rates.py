"""How fast one key may ask: a bucket for each key, kept by each web process for itself.

The bucket holds a minute's worth of requests and fills evenly, so that a burst passes and a loop without a pause does
not. It costs no query: what it protects is the time of this process, and the database's with it.
"""

from __future__ import annotations

import math
import threading
import time
import uuid
from dataclasses import dataclass

from django.conf import settings
from rest_framework.request import Request

from inspector.accounts.models import ApiKey

from .problems import ProblemError

MOST_BUCKETS = 10_000


@dataclass(slots=True)
class Bucket:
    """What is left of a key's requests, as of a moment of the monotonic clock."""

    left: float
    at: float


_buckets: dict[uuid.UUID, Bucket] = {}
_lock = threading.Lock()


def refuse_haste(request: Request) -> None:
    """Count the request against its key.

    Raises:
        ProblemError: 429 with the time after which the next request passes.
    """
    most = settings.LIMITS["requests_per_minute"]
    key = request.auth
    if not most or not isinstance(key, ApiKey):
        return
    wait = take_from_bucket(key.pk, most=most, now=time.monotonic())
    if wait:
        raise ProblemError(
            429,
            f"this key sends more than {most} requests a minute: send more records in each, or wait {wait} s",
            retry_after=wait,
        )


def take_from_bucket(key_id: uuid.UUID, *, most: int, now: float) -> int:
    """Take one request of a key out of its bucket; 0, or the whole seconds until there is one again."""
    with _lock:
        bucket = _buckets.get(key_id)
        if bucket is None:
            _make_room(most, now)
            bucket = _buckets[key_id] = Bucket(most, now)
        bucket.left = min(most, bucket.left + (now - bucket.at) * most / 60)
        bucket.at = now
        if bucket.left < 1:
            return math.ceil((1 - bucket.left) * 60 / most)
        bucket.left -= 1
        return 0


def _make_room(most: int, now: float) -> None:
    """Forget the buckets that are full again: they say no more than one that is not there."""
    if len(_buckets) >= MOST_BUCKETS:
        full = [key for key, bucket in _buckets.items() if bucket.left + (now - bucket.at) * most / 60 >= most]
        for key in full or list(_buckets):
            del _buckets[key]
