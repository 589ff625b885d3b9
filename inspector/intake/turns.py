"""Whose turn it is: reading goes first; while there is more to read, what follows it has a share of a worker's time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from . import jobs
from .models import Job

SETTLING_SHARE = 0.25
# What goes after reading and has a share of the time.
AFTER_READING = (
    *(Job.Kind.SETTLE, Job.Kind.TRACE, Job.Kind.OPEN, Job.Kind.EXAMINE),
    *(Job.Kind.EXPORT, Job.Kind.ALERT, Job.Kind.VERIFY, Job.Kind.ERASE),
)


class Turns(threading.local):
    """Whose turn it is in a worker: reading goes before settling, which has its share all the same."""

    def __init__(self) -> None:
        self._spent = {False: 0.0, True: 0.0}
        self._claimed: tuple[bool, float] | None = None

    def claim(self, kinds: Sequence[str], *, together: Mapping[str, int]) -> Job | None:
        """The next job of these kinds, or None where none is due; `together` is as `jobs.claim` takes it."""
        if self._claimed is not None:
            is_settling, since = self._claimed
            self._spent[is_settling] += time.monotonic() - since
        settling = [kind for kind in kinds if kind in AFTER_READING]
        reading = [kind for kind in kinds if kind not in AFTER_READING]
        is_settlings_turn = self._spent[True] < SETTLING_SHARE * self._spent[False]
        first, second = (settling, reading) if is_settlings_turn else (reading, settling)
        job = jobs.claim(kinds=first, otherwise=second, together=together)
        is_settling = job is not None and job.kind in AFTER_READING
        if job is None or (is_settling and not is_settlings_turn):
            # Nothing is left to read: what settling takes now is nobody's, and is not held against it later.
            self._spent = {False: 0.0, True: 0.0}
            self._claimed = None
        else:
            self._claimed = (is_settling, time.monotonic())
        return job
