"""How fast somebody may ask: a bucket for each, kept by each web process for itself.

A bucket holds a minute's worth of requests and fills evenly, so that a burst passes and a loop without a pause does
not. It costs no query: what it protects is the time of this process, and the database's with it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class Bucket:
    """What is left of somebody's requests, as of a moment of the monotonic clock."""

    left: float
    at: float


class Buckets:
    """The buckets of all who ask for one kind of thing.

    Args:
        most_buckets: of more, those that are full again are forgotten: they say no more than one that is not there.
    """

    def __init__(self, *, most_buckets: int = 10_000) -> None:
        self._most_buckets = most_buckets
        self._buckets: dict[Hashable, Bucket] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, name: Hashable, *, most: int, now: float) -> int:
        """Take one request out of somebody's bucket; 0, or the whole seconds until there is one again.

        Args:
            name: whose bucket.
            most: requests a minute.
            now: seconds of the monotonic clock.
        """
        with self._lock:
            bucket = self._buckets.get(name)
            if bucket is None:
                self._make_room(most, now)
                bucket = self._buckets[name] = Bucket(most, now)
            bucket.left = min(most, bucket.left + (now - bucket.at) * most / 60)
            bucket.at = now
            if bucket.left < 1:
                return math.ceil((1 - bucket.left) * 60 / most)
            bucket.left -= 1
            return 0

    def _make_room(self, most: int, now: float) -> None:
        if len(self._buckets) >= self._most_buckets:
            full = [name for name, each in self._buckets.items() if each.left + (now - each.at) * most / 60 >= most]
            for name in full or list(self._buckets):
                del self._buckets[name]
