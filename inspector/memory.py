"""Memory that was freed goes back to the system, so that a process is as large as what it holds and not as it has been.

The allocator of glibc keeps what is freed for what comes next. After batches of megabytes that is a third of a worker,
in pieces between what stays; `malloc_trim` gives the whole pages among them back. Other allocators have no such call,
and see to it themselves.
"""

from __future__ import annotations

import ctypes
import threading
import time

# Often enough that no two large batches lie beside each other, and seldom enough to cost nothing beside small ones.
_EVERY_SECONDS = 0.25


def _find_trim() -> ctypes._NamedFuncPointer | None:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return trim


_trim = _find_trim()
_last = threading.local()


def give_back() -> None:
    """Give freed memory back, unless this thread has done so a moment ago; call between batches, never inside one."""
    now = time.monotonic()
    if _trim is not None and now - getattr(_last, "at", float("-inf")) >= _EVERY_SECONDS:
        _trim(0)
        _last.at = time.monotonic()
