"""R5 of the goals: writers at the same time, whose files overlap and are shuffled each time, beside two workers."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from inspector.embedded.state import PROJECT

from .installation import Installation
from .logs import Log
from .measure import Goal, Row
from .product import Product
from .workers import WorkerPool

DOUBLED = Goal(
    "R5", "{writers} writers, overlapping files, {shuffles} shuffles: records or messages doubled", 0, 0, True
)
DEADLOCKS = Goal("R5", "the same: writers and jobs that a deadlock ended for good", 0, 0, True)
WRITERS = 4
RECORDS = 400
# Of all records each writer has so many; two of them share most of theirs.
SHARE = 0.75
WRITER = """
import sys
import django
django.setup()
from inspector.accounts.services import ensure_first_workspace
from inspector.intake.models import Door
from inspector.intake.framing import take_stream
from inspector.intake.services import open_delivery
workspace = ensure_first_workspace()[0]
channel = workspace.channels.get(name="main")
print("ready", flush=True)
for line in sys.stdin:
    try:
        name = line.strip()
        delivery = open_delivery(workspace=workspace, channel=channel, door=Door.IMPORT, file_name=name)
        with open(name, "rb") as file:
            take_stream(delivery=delivery, chunks=iter(lambda: file.read(4096), b""))
        print("done", flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace("\\n", " "), flush=True)
"""


class Writers:
    """Some processes that take files in; use it as a context manager."""

    def __init__(self, installation: Installation, *, count: int) -> None:
        self._installation, self._count = installation, count
        self._stack = ExitStack()
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Writers:
        environment = {
            **self._installation.environment(),
            "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}",
            "LOG_LEVEL": "CRITICAL",
        }
        for _ in range(self._count):
            process = subprocess.Popen(
                [sys.executable, "-c", WRITER],
                env=environment,
                cwd=PROJECT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self._stack.callback(process.kill)
            self._processes.append(process)
        if any(word != "ready" for word in self._read()):
            raise RuntimeError("a writer did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def take(self, files: list[Path]) -> list[str]:
        """Let each take its file in, all at once; what went wrong, in words."""
        for process, file in zip(self._processes, files, strict=True):
            assert process.stdin
            process.stdin.write(f"{file}\n")
            process.stdin.flush()
        return [word for word in self._read() if word != "done"]

    def _read(self) -> list[str]:
        return [process.stdout.readline().strip() for process in self._processes if process.stdout]


def measure_overlapping(product: Product, installation: Installation, *, shuffles: int) -> Iterator[Row]:
    """R5: the counts after every shuffle, against those of the lines that were sent."""
    chance = random.Random(5)
    faults, doubled, sent_again = list[str](), 0, 0
    before = _count_deadlocks(product)
    product.clear()
    with Writers(installation, count=WRITERS) as writers, WorkerPool(installation, count=2) as pool:
        for shuffle in range(shuffles):
            lines = _make_lines(shuffle)
            files, sent = [], 0
            for writer in range(WRITERS):
                chosen = chance.sample(lines, k=round(len(lines) * SHARE))
                sent += len(chosen)
                files.append(installation.state.temporary / f"overlapping-{shuffle}-{writer}.jsonl")
                files[-1].write_bytes(b"".join(line + b"\n" for line in chosen))
            known = {line for file in files for line in file.read_bytes().splitlines()}
            pool.go()
            faults += writers.take(files)
            product.wait_until_done()
            pool.rest()
            for file in files:
                file.unlink()
            doubled += abs(_count_records(product) - len(known))
            doubled += abs(_count_messages(product) - len(known))
            sent_again += sent - len(known)
            faults += _check_receipts(product, sent=sent, stored=len(known))
            product.clear()
    deadlocks = _count_deadlocks(product) - before
    told = f"{sent_again:,} duplicates arrived; {deadlocks} deadlocks, each tried again"
    about = {"writers": WRITERS, "shuffles": shuffles}
    yield Row(Goal(DOUBLED.id, DOUBLED.about.format(**about), 0, 0, True), doubled, remark=told)
    yield Row(DEADLOCKS, len(faults), remark="; ".join(faults[:3]))


def _make_lines(shuffle: int) -> list[bytes]:
    """Lines with ids of their own; what is broken or sent twice is another goal's."""
    lines = dict.fromkeys(Log(seed=5_000 + shuffle, records=RECORDS).lines())
    return [line for line in lines if b"\xff" not in line and _has_id(line)]


def _has_id(line: bytes) -> bool:
    given = json.loads(line)
    return "id" in given or "mid" in given


def _count_records(product: Product) -> int:
    return int(product.execute("SELECT count(*) FROM intake_record")[0][0])


def _count_messages(product: Product) -> int:
    return int(product.execute("SELECT count(*) FROM threads_message WHERE told_digest IS NOT NULL")[0][0])


def _check_receipts(product: Product, *, sent: int, stored: int) -> list[str]:
    row = product.execute("SELECT sum(received), sum(stored), sum(duplicate), sum(quarantined) FROM intake_delivery")[0]
    expected = (sent, stored, sent - stored, 0)
    return [] if tuple(map(int, row)) == expected else [f"receipts say {row}, sent was {expected}"]


def _count_deadlocks(product: Product) -> int:
    product.execute("SELECT pg_stat_clear_snapshot()")
    return int(product.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0][0])
