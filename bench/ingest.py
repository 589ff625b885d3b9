"""Ingest beside PostgreSQL itself: P8 to P11 of the goals. Both sides write the same rows into the same tables.
Growth with what is there already and memory with the size of what comes: P12 and P13. The answer to a POST: P24.

A round empties the tables, lets the product take a log in and settle it, keeps the rows, empties the tables again, and
lets COPY write those rows. The product's time holds framing, reading, telling and outlining; COPY's nothing of it.
"""

from __future__ import annotations

import gc
import http.client
import json
import math
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import median, quantiles
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from inspector.embedded.state import PROJECT

from .installation import WORKER, Installation
from .logs import SESSIONS, Log
from .measure import Goal, Row, summarise
from .product import LOG_TABLES, Product, enter_product
from .workers import WorkerPool

P8 = Goal("P8", "ingest and settling v COPY of the same rows, 1 process", 2.0, 1.3, is_share=True)
P9 = Goal("P9", "the same, framed here and read and settled by 2 workers", 1.25, 0.95, is_share=True)
P10_BULK = Goal("P10", "insertion of finished rows alone v bulk_create of the same rows", 2, 2.5)
P10_SAVE = Goal("P10", "insertion of finished rows alone v save() of the same rows", 5, 8)
P11 = Goal("P11", "an identical file again v its first ingest", 1.0, 0.5, is_share=True)
FILES = 4
SAVED_ROWS = 1000


def measure_ingest(options: Namespace) -> Iterator[Row]:
    """Every row of the suite, or of the goals that were asked for."""
    wanted = set(options.only.split(",")) if options.only else {"P8", "P9", "P10", "P11", "P12", "P13", "P24"}
    with Installation() as installation:
        with enter_product(installation) as product:
            print(product.tell_settings(), file=sys.stderr)
            if wanted & {"P8", "P11"}:
                yield from measure_rounds(product, options)
            if "P9" in wanted:
                yield measure_workers(product, installation, options)
            if "P10" in wanted:
                yield from measure_writing(product, options)
            if "P12" in wanted:
                yield from measure_growth(product, options)
        if "P13" in wanted:
            yield from measure_memory(installation, options)
        if "P24" in wanted:
            yield from measure_posting(installation, options)


def measure_rounds(product: Product, options: Namespace) -> Iterator[Row]:
    """P8 and P11, in the same rounds."""
    pairs, again, framing_again = [], [], []
    stages: dict[str, float] = {"framed and stored": 0.0, "read": 0.0, "settled": 0.0}
    for number in range(options.rounds):
        pieces = list(Log(seed=number, records=options.records).pieces())
        product.clear()
        framed = _time(lambda pieces=pieces: product.take(pieces))
        read = _time(lambda: product.work(kinds=("ingest",)))
        settled = _time(product.work)
        rows = product.count_rows()
        second_framed = _time(lambda pieces=pieces: product.take(pieces))
        second = second_framed + _time(product.work)
        grown = {table: count for table, count in product.count_rows().items() if rows[table] != count}
        if set(grown) - {"intake_delivery", "intake_sighting", "intake_scaffold", "intake_job"}:
            yield Row(P11, None, remark=f"the same file added rows: {grown}")
            return
        product.clear()
        product.take(pieces)
        product.work()
        # What is announced depends on when the work was done: COPY writes what was there this time.
        dumped, rows = product.dump(), product.count_rows()
        product.clear()
        floor = _time(lambda dumped=dumped: product.copy_back(dumped))
        if product.count_rows() != rows:
            yield Row(P8, None, remark="COPY wrote other rows than the product")
            return
        pairs.append((framed + read + settled, floor))
        again.append((second, framed + read + settled))
        framing_again.append(second_framed / framed)
        for name, seconds in zip(stages, (framed, read, settled), strict=True):
            stages[name] += seconds / options.rounds / options.records * 1e6
    told = ", ".join(f"{name} {spent:.0f}" for name, spent in stages.items())
    yield summarise(P8, pairs, remark=f"ms per 1,000 records: {told}")
    median_again = sorted(framing_again)[len(framing_again) // 2]
    yield summarise(P11, again, remark=f"framing and storing alone {median_again:.2f}; no new record or message")


def measure_workers(product: Product, installation: Installation, options: Namespace) -> Row:
    """P9: four files; this process frames them while two others read and settle what is there already."""
    pairs = []
    with WorkerPool(installation, count=2) as pool:
        for number in range(options.rounds):
            logs = [
                list(Log(seed=1000 + number * FILES + part, records=options.records // FILES).pieces())
                for part in range(FILES)
            ]
            product.clear()
            start = time.perf_counter()
            pool.go()
            for part, pieces in enumerate(logs):
                product.take(pieces, name=f"bench-{part}.jsonl")
            product.wait_until_done()
            ours = time.perf_counter() - start
            pool.rest()
            dumped = product.dump()
            product.clear()
            pairs.append((ours, _time(lambda dumped=dumped: product.copy_back(dumped))))
    return summarise(P9, pairs)


def measure_writing(product: Product, options: Namespace) -> Iterator[Row]:
    """P10: the insertion of rows beside Django's ways, on the tables that hold most of them.

    Both sides are given the same finished rows: no framing, reading, telling or settling is in either time. What the
    product takes for all of it is P8.
    """
    from django.apps import apps
    from django.db import transaction

    from inspector.database import insert_rows

    models = {model._meta.db_table: model for model in apps.get_models() if model._meta.db_table in LOG_TABLES}
    product.clear()
    product.take(Log(seed=77, records=options.records).pieces())
    product.work()
    held = {table: list(models[table].objects.order_by("pk")) for table in LOG_TABLES}
    for goal, most in ((P10_BULK, None), (P10_SAVE, SAVED_ROWS)):
        chosen = _choose_rows(held, most)

        def write_ours(chosen: dict[str, list[Any]] = chosen) -> None:
            with transaction.atomic():
                for table, rows in chosen.items():
                    fields = models[table]._meta.concrete_fields
                    values = ([_adapt(field, getattr(row, field.attname)) for field in fields] for row in rows)
                    key = (models[table]._meta.pk.column,)
                    insert_rows(
                        model=models[table], columns=[field.column for field in fields], rows=values, order_by=key
                    )

        def bulk_create(chosen: dict[str, list[Any]] = chosen) -> None:
            with transaction.atomic():
                for table, rows in chosen.items():
                    models[table].objects.bulk_create(rows, batch_size=1000)

        def save(chosen: dict[str, list[Any]] = chosen) -> None:
            with transaction.atomic():
                for rows in chosen.values():
                    for row in rows:
                        row.save(force_insert=True)

        theirs = bulk_create if goal is P10_BULK else save
        pairs = []
        for _ in range(options.rounds):
            product.clear()
            ours = _time(write_ours)
            counts = product.count_rows()
            product.clear()
            pairs.append((ours, _time(theirs)))
            if product.count_rows() != counts:
                yield Row(goal, None, remark="the two wrote different rows")
                return
        yield summarise(goal, pairs, remark=f"{sum(map(len, chosen.values())):,} rows of {len(chosen)} tables")


def _choose_rows(held: dict[str, list[Any]], most: int | None) -> dict[str, list[Any]]:
    """All rows, or the records up to a number with what belongs to them."""
    if most is None:
        return held
    records = {row.pk for row in held["intake_record"][:most]}
    belonging = {
        "intake_record": lambda row: row.pk in records,
        "intake_sighting": lambda row: row.record_id in records,
        "threads_message": lambda row: row.record_id in records,
    }
    return {table: [row for row in rows if belonging.get(table, lambda _: True)(row)] for table, rows in held.items()}


def _adapt(field: Any, value: Any) -> Any:
    from django.db import connection

    return field.get_db_prep_save(value, connection)


def _time(call: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start
    finally:
        gc.enable()


P12 = Goal("P12", "growth of ingest and settling with the rows there, {load}", 1.10, 1.05, is_share=True)
# Whether each log has conversations of its own, or a fifth of it goes on with the same ones, which never end.
LOADS = {"ended": "conversations that end", "endless": f"a fifth into {SESSIONS} conversations without end"}
P13 = Goal("P13", "peak memory, {large} v {small} MB, {form}", 1.2, 1.05, is_share=True)
DECADES = (10_000, 100_000)
LONG_DECADES = (10_000, 100_000, 1_000_000)
SHOWN_EVERY = 100_000
SMALL_MB, LARGE_MB, LONG_MB = 10, 100, 1000
# Records of some kilobytes, so that the megabytes are many and their rows few.
WORDS = 600
FORMS = {"NDJSON": "lines", "JSON array": "array", "gzip": "gzip"}
CHILD = """
import gzip, sys, zlib
import django
django.setup()
from django.utils import timezone
from bench.logs import Log
from bench.product import Product
from inspector.intake.models import Door
from inspector.intake.services import open_delivery, take_file

form, size, words = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
log = Log(seed=size, size_bytes=size, words=words)

def pack(pieces):
    packer = zlib.compressobj(6, wbits=31)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()

pieces = log.pieces(form="array" if form == "array" else "lines")
product = Product()
whose = {"workspace": product.workspace, "channel": product.channel}
delivery = open_delivery(**whose, door=Door.UPLOAD, file_name=f"{form}.log")
take_file(delivery=delivery, chunks=pack(pieces) if form == "gzip" else pieces)
product.work()
delivery.refresh_from_db()
assert delivery.state == "framed" and delivery.read == delivery.stored > 0, delivery.failure
if form != "array":
    assert delivery.received == log.made.received and delivery.quarantined == log.made.quarantined
# Not ru_maxrss: that remembers the process this one was forked from.
print(delivery.stored, next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def measure_growth(product: Product, options: Namespace) -> Iterator[Row]:
    """P12: one log after the other into the same tables, each of later hours; the time of all up to each decade.

    Beside the time on the clock stands what was computed, by us and by the database for us: that is the same however
    much else the machine has to do.
    """
    decades = LONG_DECADES if options.long else DECADES
    for load in options.load or LOADS:
        goal = Goal(P12.id, P12.about.format(load=LOADS[load]), P12.required, P12.stretch, is_share=True)
        yield from _measure_load(product, load, decades, goal)


def _measure_load(product: Product, load: str, decades: tuple[int, ...], goal: Goal) -> Iterator[Row]:
    product.clear()
    step, spent, computed = decades[0], 0.0, 0.0
    marks: dict[int, tuple[float, float]] = {}
    dumps: dict[int, dict[str, list[bytes]]] = {}
    for number, taken in enumerate(range(step, decades[-1] + 1, step)):
        sessions_from = number * SESSIONS if load == "ended" else 0
        log = Log(seed=50_000 + taken, records=step, after_s=taken - decades[-1], sessions_from=sessions_from)
        pieces = list(log.pieces())
        start, computed_before = time.perf_counter(), product.count_processor_seconds()
        product.take(pieces, name=f"growth-{taken}.jsonl")
        product.work()
        spent += time.perf_counter() - start
        computed += product.count_processor_seconds() - computed_before
        if taken in decades or taken % SHOWN_EVERY == 0:
            said = f"{taken:,} records in {spent:.0f} s, {computed:.0f} s computed"
            print(f"P12, {LOADS[load]}: {said}", file=sys.stderr, flush=True)
        if taken in decades:
            marks[taken] = spent, computed
            if taken in DECADES:
                dumps[taken] = product.dump()
    floors = {taken: _time_copy(product, dumped) for taken, dumped in dumps.items()}
    for small, large in pairwise(decades):
        exponent, by_processor = (
            math.log(late / early) / math.log(large / small)
            for early, late in zip(marks[small], marks[large], strict=True)
        )
        rate = (large - small) / (marks[large][0] - marks[small][0])
        told = f"{small:,} to {large:,} records; by processor time {by_processor:.2f}"
        told += f"; {rate:,.0f} records/s in that stretch"
        if large in floors:
            floor = math.log(floors[large] / floors[small]) / math.log(large / small)
            told += f"; COPY of the same rows {floor:.2f}"
        yield Row(goal, exponent, remark=told)


def _time_copy(product: Product, dumped: dict[str, list[bytes]]) -> float:
    product.clear()
    start = time.perf_counter()
    product.copy_back(dumped)
    return time.perf_counter() - start


def measure_memory(installation: Installation, options: Namespace) -> Iterator[Row]:
    """P13: a process takes an upload in and works it off; its peak."""
    large_mb = LONG_MB if options.long else LARGE_MB
    for name in options.form or FORMS:
        form = FORMS[name]
        goal = Goal(
            P13.id, P13.about.format(large=large_mb, small=SMALL_MB, form=name), P13.required, P13.stretch, True
        )
        peaks = {}
        for megabytes in (SMALL_MB, large_mb):
            with installation.connect() as connection:
                connection.execute("TRUNCATE intake_delivery, threads_conversation, intake_record, intake_job CASCADE")
            stored, peak_kib = map(int, run_child(installation, form, megabytes))
            peaks[megabytes] = peak_kib / 1024
        value = peaks[large_mb] / peaks[SMALL_MB]
        told = " v ".join(f"{peaks[size]:.0f}" for size in (large_mb, SMALL_MB))
        yield Row(goal, value, remark=f"{told} MiB (150 at most), {stored:,} records")


def run_child(installation: Installation, form: str, megabytes: int) -> list[str]:
    """What the child printed.

    Raises:
        RuntimeError: when it failed.
    """
    environment = {
        **installation.environment(),
        "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}",
        "LOG_LEVEL": "ERROR",
    }
    done = subprocess.run(
        [sys.executable, "-c", CHILD, form, str(megabytes * 1_000_000), str(WORDS)],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return done.stdout.split()


P24 = Goal("P24", "POST of 1,000 messages, durable, p95, v COPY of the batch, p95", 3, 1.5, is_share=True)
SPANS = Goal("P24", "POST of 1,000 spans by OTLP in Protobuf, the same, v COPY of the spans", 3, 1.5, is_share=True)
MESSAGES = 1000
WARM_UPS = 3
START_NS = 1_795_118_400_000_000_000


class Batch(NamedTuple):
    """What is posted, where and as what; and the rows that COPY writes of it."""

    path: str
    kind: str
    body: bytes
    rows: Sequence[bytes]


def measure_posting(installation: Installation, options: Namespace) -> Iterator[Row]:
    """P24: through the real web server; COPY writes the bare rows into a table with a primary key, and commits."""
    with installation.connect() as connection:
        connection.execute("TRUNCATE intake_delivery, threads_conversation, intake_record, intake_job CASCADE")
    installation.start()
    installation.supervisor.stop(WORKER)
    for goal, make in ((P24, make_messages), (SPANS, make_spans)):
        yield _measure(installation, goal, [make(number) for number in range(WARM_UPS + 8 * options.rounds)])
    installation.stop()


def make_messages(number: int) -> Batch:
    """1,000 messages, as no other number has them."""
    lines = list(Log(seed=90_000 + number, records=MESSAGES).lines())
    return Batch("/api/v1/messages", "application/x-ndjson", b"\n".join(lines), lines)


def make_spans(number: int) -> Batch:
    """One trace of 1,000 spans of a model and its tools, as an exporter sends them."""
    exported = ExportTraceServiceRequest()
    resource = exported.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "bench"
    spans = resource.scope_spans.add().spans
    for at in range(MESSAGES):
        span = spans.add(
            name=f"execute_tool search {at}",
            trace_id=(number + 1).to_bytes(16),
            span_id=(at + 1).to_bytes(8),
            parent_span_id=(at // 8 + 1).to_bytes(8) if at else b"",
            start_time_unix_nano=START_NS + at * 1_000_000,
            end_time_unix_nano=START_NS + (at + 5) * 1_000_000,
        )
        said = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": f"call-{number}-{at}",
            "gen_ai.tool.call.arguments": json.dumps({"q": f"question {at} of {number}"}),
        }
        for key, value in said.items():
            span.attributes.add(key=key).value.string_value = value
    rows = [span.SerializeToString() for span in spans]
    return Batch("/v1/traces", "application/x-protobuf", exported.SerializeToString(), rows)


def _measure(installation: Installation, goal: Goal, batches: Sequence[Batch]) -> Row:
    door = installation.door
    server = http.client.HTTPConnection(door.host, door.port, timeout=60)
    ours, theirs = [], []
    counted = "SELECT coalesce(sum(received), 0)::bigint FROM intake_delivery"
    with installation.connect() as connection:
        (before,) = connection.execute(counted).fetchone() or (0,)
        connection.execute("CREATE TABLE raw_batch (id bigserial PRIMARY KEY, line bytea NOT NULL)")
        for number, batch in enumerate(batches):
            headers = {"Authorization": f"Bearer {door.token}", "Content-Type": batch.kind}
            start = time.perf_counter()
            server.request("POST", batch.path, batch.body, headers)
            response = server.getresponse()
            answer = response.read()
            spent = time.perf_counter() - start
            if response.status not in (200, 202):
                return Row(goal, None, remark=f"the answer was {response.status}: {answer!r}")
            start = time.perf_counter()
            with connection.cursor() as cursor, cursor.copy("COPY raw_batch (line) FROM STDIN") as copy:
                for row in batch.rows:
                    copy.write_row((row,))
            copied = time.perf_counter() - start
            if number >= WARM_UPS:
                ours.append(spent)
                theirs.append(copied)
        (after,) = connection.execute(counted).fetchone() or (0,)
        connection.execute("DROP TABLE raw_batch")
        connection.execute("TRUNCATE intake_delivery, threads_conversation, intake_record, intake_job CASCADE")
    server.close()
    sent = sum(len(batch.rows) for batch in batches)
    if after - before != sent:
        return Row(goal, None, remark=f"{after - before} records were received of {sent}")
    p95 = [quantiles(times, n=20)[-1] for times in (ours, theirs)]
    told = (
        f"p95 {p95[0] * 1000:.0f} v {p95[1] * 1000:.0f} ms, p50 {median(ours) * 1000:.0f} v {median(theirs) * 1000:.0f}"
    )
    return Row(goal, p95[0] / p95[1], remark=f"{told}, {len(ours)} posts")
