"""Whose turn it is: reading goes first; while there is more to read, what follows it has a share of a worker's time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from . import jobs
from .models import Job

FOLLOWING_SHARE = 0.25
# What goes after reading and has a share of the time.
AFTER_READING = (
    *(Job.Kind.RESOLVE, Job.Kind.TRACE, Job.Kind.OPEN, Job.Kind.EXAMINE),
    *(Job.Kind.EXPORT, Job.Kind.ALERT, Job.Kind.VERIFY, Job.Kind.ERASE),
)


class Turns(threading.local):
    """Whose turn it is in a worker: reading goes before what follows it, which has its share all the same."""

    def __init__(self) -> None:
        self._spent = {False: 0.0, True: 0.0}
        self._claimed: tuple[bool, float] | None = None

    def claim(self, kinds: Sequence[str], *, together: Mapping[str, int]) -> Job | None:
        """The next job of these kinds, or None where none is due; `together` is as `jobs.claim` takes it."""
        if self._claimed is not None:
            is_following, since = self._claimed
            self._spent[is_following] += time.monotonic() - since
        following = [kind for kind in kinds if kind in AFTER_READING]
        reading = [kind for kind in kinds if kind not in AFTER_READING]
        is_turn_of_following = self._spent[True] < FOLLOWING_SHARE * self._spent[False]
        first, second = (following, reading) if is_turn_of_following else (reading, following)
        job = jobs.claim(kinds=first, otherwise=second, together=together)
        is_following = job is not None and job.kind in AFTER_READING
        if job is None or (is_following and not is_turn_of_following):
            # Nothing is left to read: what follows takes now is nobody's, and is not held against it later.
            self._spent = {False: 0.0, True: 0.0}
            self._claimed = None
        else:
            self._claimed = (is_following, time.monotonic())
        return job
