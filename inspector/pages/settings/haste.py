"""How fast sign-ins may come: so many a minute from one address, and so many passwords hashed at a time.

Both are kept by each process for itself; they protect its processor time, and the name is locked by django-axes.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings

from inspector.api.rates import take_from_bucket

# A hash takes a processor for some hundredths of a second, and memory.
MOST_HASHES: Final = 2
PATIENCE_SECONDS: Final = 2.0
_NAMESPACE: Final = uuid.UUID("6c1f7a0e-0d53-4b0c-9a55-3a1f5d1f9b42")
_hashes = threading.BoundedSemaphore(MOST_HASHES)


class HastyError(Exception):
    """A sign-in that has to wait `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"wait {seconds} s")
        self.seconds = seconds


@contextmanager
def hash_in_turn(address: str) -> Iterator[None]:
    """Let a sign-in from this address check its password.

    Raises:
        HastyError: when the address has tried too often, or too many others are being checked.
    """
    most = settings.LIMITS["sign_ins_per_minute"]
    wait = take_from_bucket(uuid.uuid5(_NAMESPACE, address), most=most, now=time.monotonic()) if most else 0
    if wait:
        raise HastyError(wait)
    if not _hashes.acquire(timeout=PATIENCE_SECONDS):
        raise HastyError(5)
    try:
        yield
    finally:
        _hashes.release()
