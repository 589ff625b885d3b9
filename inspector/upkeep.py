"""Upkeep: statistics for PostgreSQL's planner, before its own autovacuum comes by.

A planner that knows nothing of a table takes any index for as good as any other. The first log that somebody loads is
such a case: until autovacuum has looked, up to a minute later, one look-up by id may go through a whole channel. So a
table that has grown manifold since it was last looked at is analyzed by whoever works on it.
"""

from __future__ import annotations

import time
from typing import Final

from django.db import connection

# How often a process looks, in seconds.
LOOK_SECONDS: Final = 1.0
# A table is analyzed when it has so many times the pages that it had then, counted from `MIN_PAGES`.
GROWTH: Final = 4
MIN_PAGES: Final = 8

_FIND_GROWN: Final = """
SELECT quote_ident(relname) FROM pg_class
 WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
   AND pg_relation_size(oid) > current_setting('block_size')::bigint * %s * greatest(relpages, %s)
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
