"""What keys read, gathered: the audit log has an entry for each key, hour and kind of thing, and not one a request.

The first read of a second is written down before it is answered. What follows in the same process within that second
is added by the next read: a busy key costs a statement a second, and a process that is killed loses a second's count,
never that a key read.
"""

from __future__ import annotations

import threading
import time
from typing import Final
from uuid import UUID

from inspector.accounts.models import ApiKey
from inspector.accounts.services import add_reads

SECONDS: Final = 1.0
MAX_KEPT: Final = 10_000
# By key and what it read: how many answers are not written yet, and when it last was.
_kept: Final[dict[tuple[UUID, str], tuple[int, float]]] = {}
_lock: Final = threading.Lock()


def note_read(key: ApiKey, what: str) -> None:
    """Count an answer that shows a key something, before it is given."""
    now = time.monotonic()
    with _lock:
        left, at = _kept.get((key.pk, what), (0, -SECONDS))
        if now - at < SECONDS:
            _kept[key.pk, what] = (left + 1, at)
            return
        _kept[key.pk, what] = (0, now)
        due = {(key.pk, what): left + 1}
        for each, (count, since) in list(_kept.items()):
            if now - since >= SECONDS:
                del _kept[each]
                due |= {each: count} if count else {}
        if len(_kept) > MAX_KEPT:
            _kept.clear()
    for (key_id, read), count in due.items():
        add_reads(key_id=key_id, what=read, count=count)
