"""What a record costs: processor time by step, bytes on disk by relation, and what one posted alone costs.

Processor time and not time: other work on the machine changes it little, and a waiting disk not at all. In bulk, one
process frames, reads, resolves and examines a log, and the database's process that serves it is counted with it. What
posting costs is in `posted`.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from .installation import Installation
from .logs import Log
from .measure import Goal, Row
from .posted import measure_posted
from .product import Product, enter_product

BULK = Goal("P26", "milliseconds of processor time a record, in bulk", 1.0, 0.6, is_share=True)
DISK = Goal("P26", "bytes on disk a message", 4000, 2500, is_share=True)
WAL = Goal("P26", "bytes of write-ahead log a record", 8000, 5000, is_share=True)
# What is due after a pause is worked off at once here: only processor time is measured.
STEPS = {
    "framed": (),
    "read": ("ingest",),
    "resolved": ("settle", "open"),
    "traces summed up": ("trace",),
    "examined": ("examine", "alert"),
}


@dataclass(frozen=True)
class Spent:
    """Processor seconds here and in the database, and bytes of write-ahead log."""

    here: float
    database: float
    wal: int


def measure_cost(options: Namespace) -> Iterator[Row]:
    """Every row; the tables by step and by relation are printed on the way."""
    with Installation() as installation:
        with enter_product(installation) as product:
            yield from measure_bulk(product, options.records)
        yield from measure_posted(installation)


def measure_bulk(product: Product, records: int) -> Iterator[Row]:
    """A log by one process, step by step."""
    # What is imported and prepared on first use is no record's cost.
    product.take(Log(seed=1, records=200).pieces())
    product.work()
    product.clear()
    pieces = list(Log(seed=2, records=records).pieces())
    spent = {}
    for name, kinds in STEPS.items():
        before = _look(product)
        if kinds:
            product.work(kinds=kinds)
        else:
            product.take(pieces)
        spent[name] = _subtract(_look(product), before)
    product.work()
    total = Spent(*(sum(getattr(each, name) for each in spent.values()) for name in ("here", "database", "wal")))
    print(f"a record of {len(b''.join(pieces)) / records:,.0f} bytes, {records:,} records")
    print(f"{'step':24} {'Python':>8} {'database':>9} us {'log':>9} bytes")
    for name, each in {**spent, "together": total}.items():
        here, database = each.here / records * 1e6, each.database / records * 1e6
        print(f"{name:24} {here:8,.0f} {database:9,.0f}    {each.wal / records:9,.0f}")
    yield Row(BULK, (total.here + total.database) / records * 1e3)
    yield Row(WAL, total.wal / records)
    yield from measure_disk(product)


def measure_disk(product: Product) -> Iterator[Row]:
    """The relations by size."""
    product.execute("VACUUM ANALYZE")
    messages = product.execute("SELECT count(*) FROM threads_message")[0][0]
    relations = product.execute(
        "SELECT relname, pg_table_size(oid) - coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0), "
        "coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0), pg_indexes_size(oid) "
        "FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
        "ORDER BY pg_total_relation_size(oid) DESC"
    )
    total = 0
    print(f"{'relation':24} {'rows':>8} {'long':>9} {'indexes':>8} bytes a message")
    for name, *sizes in relations:
        total += sum(sizes)
        if sum(sizes) >= messages:
            heap, long, indexes = (size / messages for size in sizes)
            print(f"{name:24} {heap:8,.0f} {long:9,.0f} {indexes:8,.0f}")
    yield Row(DISK, total / messages, remark=f"{messages:,} messages")


def _look(product: Product) -> Spent:
    backend = psutil.Process(product.execute("SELECT pg_backend_pid()")[0][0]).cpu_times()
    wal = int(product.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")[0][0])
    return Spent(time.process_time(), backend.user + backend.system, wal)


def _subtract(after: Spent, before: Spent) -> Spent:
    return Spent(after.here - before.here, after.database - before.database, after.wal - before.wal)
