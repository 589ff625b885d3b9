"""What a record costs: processor time by step, bytes on disk by relation, and what it costs to post messages a few
at a time, one after another and by a crowd (P26, P27).

Processor time and not time: other work on the machine changes it little, and a waiting disk not at all. In bulk, one
process frames, reads, resolves and examines a log, and the database's process that serves it is counted with it. Where
messages are posted all processes of the product are counted until the last message is told; how much of it they would
have taken without any message is measured beside it.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import threading
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from statistics import quantiles

import psutil

from inspector.embedded.samples import Door

from .installation import Installation
from .logs import Log
from .measure import Goal, Row
from .product import Product, enter_product
from .visitor import Visitor

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


IDLE = Goal(
    "P26", "milliseconds of processor time a minute, all processes, while nothing comes", 1000, 250, is_share=True
)
ALONE = Goal("P26", "milliseconds of processor time a record, posted alone, until it is told", 10, 4, is_share=True)
FIVE = Goal("P26", "the same, five a POST", 4, 1.5, is_share=True)
ACCEPTED = Goal("P27", "records a second that 200 connections post, five a POST", 500, 1500)
ANSWERED = Goal("P27", "the same: seconds until a POST is answered, p95", 2, 0.5, is_share=True)
PAGES = Goal("P27", "the same: seconds until a page is there meanwhile, p95", 1, 0.25, is_share=True)
TOLD = Goal("P27", "the same: seconds until all is told after the last", 10, 4, is_share=True)
# Posts a second stay far below what the machine can take, as agents that post what they say do.
POSTS, PAUSE_S, SETTLE_S, IDLE_S = 200, 0.05, 300.0, 20.0
CONNECTIONS, POSTS_EACH, RECORDS = 200, 5, 5
PAGE_PAUSE_S = 0.25
# Agents post what they say now: later than what was loaded and posted before, in sessions that go on.
DAY_S = 86_400
# What stands in the command line of a program, and so names it.
PROGRAMS = {
    "postgres": "postgres",
    "django work": "worker",
    "inspector.front": "front",
    "posting": "posting",
    "gunicorn": "pages",
}


def measure_posted(installation: Installation) -> Iterator[Row]:
    """Every row, each on a product that was just started."""
    installation.start()
    try:
        yield _measure_posts(installation, ALONE, records=1)
        yield _measure_idle()
        yield _measure_posts(installation, FIVE, records=5)
        yield from _measure_crowd(installation)
    finally:
        installation.stop()


def _measure_posts(installation: Installation, goal: Goal, *, records: int) -> Row:
    """Records posted a few at a time, and all processes until the last job has ended."""
    server = http.client.HTTPConnection(installation.door.host, installation.door.port, timeout=60)
    lines = iter(Log(seed=100 + records, records=(POSTS + 20) * records, after_s=(100 + records) * DAY_S).lines())

    def post(count: int) -> int:
        accepted = 0
        for _ in range(count):
            body = b"\n".join(next(lines) for _ in range(records))
            server.request("POST", "/api/v1/messages", body, _make_headers(installation.door))
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
    spent = _subtract_each(_count_by_program(), before)
    server.close()
    print(f"{'program':24} {'ms a record':>12}, {records} a POST")
    for name, seconds in sorted(spent.items(), key=itemgetter(1), reverse=True):
        print(f"{name:24} {seconds / accepted * 1e3:12.2f}")
    remark = f"{accepted:,} records in {posted:.1f} s, idle {waited:.1f} s later"
    return Row(goal, sum(spent.values()) / accepted * 1e3, remark=remark)


def _measure_idle() -> Row:
    before = _count_by_program()
    time.sleep(IDLE_S)
    spent = _subtract_each(_count_by_program(), before)
    shares = ", ".join(f"{name} {seconds / IDLE_S * 60e3:.0f}" for name, seconds in spent.items() if seconds)
    return Row(IDLE, sum(spent.values()) / IDLE_S * 60e3, remark=shares)


def _measure_crowd(installation: Installation) -> Iterator[Row]:
    """Many connections at once, each sending its next POST when the last one is answered, and somebody who reads."""
    installation.renew()
    visitor = Visitor(host=installation.door.host, port=installation.door.port, link=installation.link)
    lines = list(Log(seed=300, records=CONNECTIONS * POSTS_EACH * RECORDS, after_s=300 * DAY_S).lines())
    bodies = [b"\n".join(lines[start : start + RECORDS]) for start in range(0, len(lines), RECORDS)]
    pages: list[float] = []
    is_over = threading.Event()
    reader = threading.Thread(target=_open_pages, args=(visitor, pages, is_over), daemon=True)
    reader.start()
    started = time.perf_counter()
    try:
        answers = asyncio.run(_post_all(installation.door, bodies))
        posted = time.perf_counter() - started
        told = _wait_until_told(installation)
    finally:
        is_over.set()
        reader.join()
    installation.wait_until_idle(seconds=SETTLE_S)
    idle = time.perf_counter() - started - posted
    accepted = [seconds for status, seconds in answers if status == 202]
    others = Counter(status for status, _ in answers if status != 202)
    refused = "".join(f", {count:,} x {status}" for status, count in others.items())
    remark = f"{len(accepted) * RECORDS:,} records in {posted:.1f} s{refused}"
    yield Row(ACCEPTED, len(accepted) * RECORDS / posted, remark=remark)
    yield Row(ANSWERED, _find_p95(accepted), remark=f"the longest {max(accepted, default=0):.2f}")
    yield Row(PAGES, _find_p95(pages), remark=f"{len(pages)} pages, the longest {max(pages, default=0):.2f}")
    yield Row(TOLD, told, remark=f"idle {idle:.1f} s after the last")


async def _post_all(door: Door, bodies: list[bytes]) -> list[tuple[int, float]]:
    """The status of each answer, and in how many seconds it came."""
    left = iter(bodies)
    head = "".join(f"{name}: {value}\r\n" for name, value in _make_headers(door).items())
    answers = []

    async def send_each() -> None:
        for body in itertools.islice(left, POSTS_EACH):
            started = time.perf_counter()
            reader, writer = await asyncio.open_connection(door.host, door.port)
            first = f"POST /api/v1/messages HTTP/1.1\r\nHost: {door.host}\r\nContent-Length: {len(body)}\r\n{head}\r\n"
            writer.write(first.encode() + body)
            answer = await reader.read()
            writer.close()
            answers.append((int(answer.split(None, 2)[1]), time.perf_counter() - started))

    await asyncio.gather(*(send_each() for _ in range(CONNECTIONS)))
    return answers


def _open_pages(visitor: Visitor, pages: list[float], is_over: threading.Event) -> None:
    while not is_over.wait(PAGE_PAUSE_S):
        started = time.perf_counter()
        visitor.open("/conversations/")
        pages.append(time.perf_counter() - started)


def _wait_until_told(installation: Installation) -> float:
    """Seconds until every record is read and every message has its English."""
    started = time.perf_counter()
    with installation.connect() as connection:
        while time.perf_counter() - started < SETTLE_S:
            row = connection.execute(
                "SELECT EXISTS (SELECT FROM intake_job WHERE kind = 'ingest' AND state IN ('queued', 'running'))"
                " OR EXISTS (SELECT FROM threads_message WHERE place IS NULL)"
            ).fetchone()
            if row and not row[0]:
                break
            time.sleep(0.2)
    return time.perf_counter() - started


def _make_headers(door: Door) -> dict[str, str]:
    return {"Authorization": f"Bearer {door.token}", "Content-Type": "application/x-ndjson"}


def _find_p95(seconds: list[float]) -> float | None:
    return quantiles(seconds, n=20)[-1] if len(seconds) > 1 else None


def _subtract_each(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}


def _count_by_program() -> dict[str, float]:
    """Processor seconds of this process's children and theirs, those that ended included, by what they are."""
    total: Counter[str] = Counter()
    for process in psutil.Process().children(recursive=True):
        try:
            times, command = process.cpu_times(), " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        name = next((name for words, name in PROGRAMS.items() if words in command), "other")
        total[name] += times.user + times.system + times.children_user + times.children_system
    return total
