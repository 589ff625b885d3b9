"""Growth of ingest with what is there already, and memory with the size of what comes: P12 and P13 of the goals."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from itertools import pairwise

from inspector.embedded.state import PROJECT

from .installation import Installation
from .logs import SESSIONS, Log
from .measure import Goal, Row
from .product import Product

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
