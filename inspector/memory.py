"""The memory of a process that works for long: what was freed goes back, what stays is not gone through for nothing.

The allocator of glibc keeps what is freed for what comes next. After batches of megabytes that is a third of a worker,
in pieces between what stays; `malloc_trim` gives the whole pages among them back. Other allocators have no such call,
and see to it themselves.
"""

from __future__ import annotations

import ctypes
import gc
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


# Reading, settling and showing make many small objects and hardly a circle of them. The collector looks for circles
# after every 700 new objects by default, and now and then through everything there is, for nothing.
_COLLECT_AFTER = (10_000, 20, 20)


def collect_seldom() -> None:
    """Let the collector of circles look seldom, and never at what is there now; call when a process begins."""
    if gc.get_threshold() != _COLLECT_AFTER:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)


def give_back() -> None:
    """Give freed memory back, unless this thread has done so a moment ago; call between batches, never inside one."""
    now = time.monotonic()
    if _trim is not None and now - getattr(_last, "at", float("-inf")) >= _EVERY_SECONDS:
        _trim(0)
        _last.at = time.monotonic()
