"""Upkeep of what works for long: the memory of a process, where what was freed goes back and what stays is not gone
through for nothing; and statistics for PostgreSQL's planner, before its own autovacuum comes by.

The allocator of glibc keeps what is freed for what comes next. After batches of megabytes that is a third of a worker,
in pieces between what stays; `malloc_trim` gives the whole pages among them back. Other allocators have no such call,
and see to it themselves.

A planner that knows nothing of a table takes any index for as good as any other. The first log that somebody loads is
such a case: until autovacuum has looked, up to a minute later, one look-up by id may go through a whole channel. So a
table that has grown manifold since it was last looked at is analyzed by whoever works on it.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from typing import Final

from django.db import connection

# How often a process looks, in seconds.
LOOK_SECONDS: Final = 1.0
# A table is analyzed when it has so many times the pages that it had then, counted from `MIN_PAGES`.
GROWTH: Final = 4
MIN_PAGES: Final = 8

_FIND_GROWN: Final = """
WITH grown AS MATERIALIZED (
    -- Of a table in partitions each of these is looked at, and the whole is analyzed.
    SELECT DISTINCT coalesce(pg_partition_root(oid), oid) AS oid FROM pg_class
     WHERE relkind = 'r' AND (relispartition OR relnamespace = current_schema()::regnamespace)
       AND pg_relation_size(oid) > current_setting('block_size')::bigint * %s * greatest(relpages, %s)
)
SELECT quote_ident(relname) FROM pg_class JOIN grown USING (oid) WHERE relnamespace = current_schema()::regnamespace
"""

_looked = float("-inf")


def analyze_grown() -> list[str]:
    """Analyze the tables that have grown manifold since they were; their names. At most once in `LOOK_SECONDS`.

    One that somebody else analyzes just now is left to them, and so is one that the database lets us not analyze.
    """
    global _looked
    if time.monotonic() - _looked < LOOK_SECONDS:
        return []
    _looked = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(_FIND_GROWN, [GROWTH, MIN_PAGES])
        grown = [name for (name,) in cursor.fetchall()]
        for name in grown:
            cursor.execute(f"ANALYZE (SKIP_LOCKED) {name}")
    return grown


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

# Reading, resolving and showing make many small objects and hardly a circle of them. The collector looks for circles
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
