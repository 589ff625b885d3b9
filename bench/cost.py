"""What a record costs: processor time by step, bytes on disk by relation, and what one posted alone costs.

Processor time and not time: other work on the machine changes it little, and a waiting disk not at all. In bulk, one
process frames, reads, resolves and examines a log, and the database's process that serves it is counted with it. Posted
alone, the product runs whole, and all its processes are counted until the last message is told.
"""

from __future__ import annotations

import http.client
import json
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import psutil

from .installation import Installation
from .logs import Log
from .measure import Goal, Row
from .product import Product, enter_product

BULK = Goal("P26", "milliseconds of processor time a record, in bulk", 1.0, 0.6, is_share=True)
ALONE = Goal("P26", "the same, posted alone, all processes, until it is told", 10, 4, is_share=True)
FIVE = Goal("P26", "the same, five a POST", 4, 1.5, is_share=True)
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
# What stands in the command line of a program, and so names it.
PROGRAMS = ("postgres", "celery", "posting", "gunicorn", "front")
# Posts a second stay far below what the machine can take, as agents that post what they say do.
POSTS, PAUSE_S, SETTLE_S = 200, 0.05, 120.0


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
        yield measure_posts(installation, ALONE, records=1)
        yield measure_posts(installation, FIVE, records=5)


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


def measure_posts(installation: Installation, goal: Goal, *, records: int) -> Row:
    """Records posted a few at a time, and all processes until the last job has ended."""
    installation.start()
    try:
        door = installation.door
        headers = {"Authorization": f"Bearer {door.token}", "Content-Type": "application/x-ndjson"}
        server = http.client.HTTPConnection(door.host, door.port, timeout=60)
        lines = iter(Log(seed=100 + records, records=(POSTS + 20) * records).lines())

        def post(count: int) -> int:
            accepted = 0
            for _ in range(count):
                body = b"\n".join(next(lines) for _ in range(records))
                server.request("POST", "/api/v1/messages", body, headers)
                response = server.getresponse()
                accepted += json.loads(response.read())["received"]
                time.sleep(PAUSE_S)
            return accepted

        post(20)
        installation.wait_until_idle(seconds=SETTLE_S)
        before, started = _count_by_program(), time.perf_counter()
        accepted = post(POSTS)
        posted = time.perf_counter() - started
        installation.wait_until_idle(seconds=SETTLE_S)
        waited = time.perf_counter() - started - posted
        spent = {name: seconds - before.get(name, 0) for name, seconds in _count_by_program().items()}
        server.close()
    finally:
        installation.stop()
    print(f"{'program':24} {'ms a record':>12}, {records} a POST")
    for name, seconds in sorted(spent.items(), key=itemgetter(1), reverse=True):
        print(f"{name:24} {seconds / accepted * 1e3:12.2f}")
    return Row(
        goal,
        sum(spent.values()) / accepted * 1e3,
        remark=f"{accepted:,} records in {posted:.1f} s, idle {waited:.1f} s later",
    )


def _count_by_program() -> dict[str, float]:
    """Processor seconds of this process's children and theirs, those that ended included, by what they are."""
    total: Counter[str] = Counter()
    for process in psutil.Process().children(recursive=True):
        try:
            times, command = process.cpu_times(), " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        name = next((name for name in PROGRAMS if name in command), command[:24])
        total[name] += times.user + times.system + times.children_user + times.children_system
    return total


def _look(product: Product) -> Spent:
    backend = psutil.Process(product.execute("SELECT pg_backend_pid()")[0][0]).cpu_times()
    wal = int(product.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")[0][0])
    return Spent(time.process_time(), backend.user + backend.system, wal)


def _subtract(after: Spent, before: Spent) -> Spent:
    return Spent(after.here - before.here, after.database - before.database, after.wal - before.wal)
