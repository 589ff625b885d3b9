"""`python -m bench.settling`: what settling costs where a conversation is large, and where conversations are many.

One conversation of 50,000 messages is settled once; then one message is appended, and one comes late near its front.
1,500 conversations of 40 messages are settled, and one message is appended to one of them. Of each: the seconds of
settling alone (reading was done before), how many records were told again, how many rows were written, and the peak
memory of a process that does nothing else. With `--loaded` the table says that other work shared the machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from inspector.embedded.state import PROJECT

from .installation import Installation
from .measure import align
from .product import Product, enter_product

START = datetime(2026, 11, 1, 8, tzinfo=UTC)
SHAPES = ("chain", "star", "nslip")
# The child measures one step: it settles, and says how long it took and how much memory it had at most.
CHILD = """
import json, sys, time
import django
django.setup()
from bench.product import Product
from inspector.intake.models import Job
from inspector.threads.resolving import writing

told = []
tell_record = writing.tell_record
writing.tell_record = lambda *given, **names: told.append(1) or tell_record(*given, **names)
product = Product()
start = time.perf_counter()
product.work(kinds=(Job.Kind.RESOLVE,))
spent = time.perf_counter() - start
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(json.dumps([spent, len(told), int(peak) // 1024]))
"""


def make_line(at: int, *, conversation: str, shape: str, offset: float = 0.0, name: str = "") -> bytes:
    """A message: in a chain it answers the one before it, in a star the first; nSLIP counts turns and tasks."""
    moment = (START + timedelta(seconds=at + offset)).isoformat()
    said: dict[str, Any] = {"id": name or f"{conversation}-{at}", "at": moment}
    if shape == "nslip":
        return (
            json.dumps(said | {"raw": f'@a3|f0|c1|S{at % 2}|d{(at + 1) % 2}|T{_base62(at)}|k1|t"step"#'}).encode()
            + b"\n"
        )
    said |= {"raw": f"Step {at} is taken.", "conversation": conversation, "from": f"agent-{at % 7}"}
    if at:
        said["parent"] = f"{conversation}-{at - 1 if shape == 'chain' else 0}"
    return json.dumps(said).encode() + b"\n"


def _base62(number: int) -> str:
    signs = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    digits = signs[number % 62]
    while number := number // 62:
        digits = signs[number % 62] + digits
    return digits


class Stage:
    """An installation on which steps are delivered here, and settled in a child process that is measured."""

    def __init__(self, installation: Installation, product: Product) -> None:
        self._installation, self._product = installation, product
        self._files = 0

    def deliver(self, lines: Iterator[bytes] | list[bytes]) -> float:
        """Take lines in and read them; the seconds it took."""
        from inspector.intake.models import Job

        start = time.perf_counter()
        self._files += 1
        self._product.take(lines, name=f"settling-{self._files}.jsonl")
        self._product.work(kinds=(Job.Kind.FRAME, Job.Kind.INGEST))
        return time.perf_counter() - start

    def settle(self) -> tuple[float, int, int, int]:
        """Settle what is due: seconds, records told again, rows written, peak megabytes.

        Raises:
            RuntimeError: when the child fails.
        """
        before = self._count_updates()
        environment = {
            **self._installation.environment(),
            "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}",
            "LOG_LEVEL": "ERROR",
        }
        child = subprocess.run(
            [sys.executable, "-c", CHILD], env=environment, cwd=PROJECT, capture_output=True, text=True, check=False
        )
        if child.returncode:
            raise RuntimeError(child.stderr[-2000:])
        seconds, told, peak = json.loads(child.stdout)
        return seconds, told, self._count_updates() - before, peak

    def _count_updates(self) -> int:
        self._product.execute("SELECT pg_stat_force_next_flush()")
        # The child's own counts are sent when it ends.
        time.sleep(1.5)
        found = self._product.execute("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'threads_message'")
        return int(found[0][0])


def measure(
    stage: Stage, *, shapes: Sequence[str], messages: int, conversations: int, each: int
) -> Iterator[tuple[str, ...]]:
    """The steps, as lines of a table."""
    for shape in shapes:
        name = f"big-{shape}"
        reading = stage.deliver([make_line(at, conversation=name, shape=shape) for at in range(0, 2 * messages, 2)])
        yield _write(f"{shape}, {messages:,} messages (read in {reading:.0f} s)", stage.settle())
        stage.deliver([make_line(2 * messages, conversation=name, shape=shape)])
        yield _write(f"{shape}: one appended", stage.settle())
        stage.deliver([make_line(21, conversation=name, shape=shape)])
        yield _write(f"{shape}: one late near the front", stage.settle())
    if not conversations:
        return
    lines = [
        make_line(at, conversation=f"many-{number}", shape="chain")
        for at in range(each)
        for number in range(conversations)
    ]
    reading = stage.deliver(lines)
    yield _write(f"{conversations:,} conversations of {each} (read in {reading:.0f} s)", stage.settle())
    stage.deliver([make_line(each, conversation="many-7", shape="chain")])
    yield _write("one appended to one of them", stage.settle())


def _write(what: str, found: tuple[float, int, int, int]) -> tuple[str, ...]:
    seconds, told, written, peak = found
    return (what, f"{seconds:.2f}", f"{told:,}", f"{written:,}", f"{peak:,}")


def main() -> int:
    """Measure the steps and print their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=50_000, help="of the large conversation (default 50,000)")
    parser.add_argument("--conversations", type=int, default=1500, help="how many small ones (default 1,500)")
    parser.add_argument("--each", type=int, default=40, help="messages of each small one (default 40)")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="of the large conversation (default all)")
    parser.add_argument("--loaded", action="store_true", help="say that other work shared the machine")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = [("step", "seconds", "told again", "rows written", "peak MB")]
    with Installation() as installation, enter_product(installation) as product:
        stage = Stage(installation, product)
        for row in measure(
            stage,
            shapes=options.shapes.split(","),
            messages=options.messages,
            conversations=options.conversations,
            each=options.each,
        ):
            rows.append(row)
            print("  ".join(row), file=sys.stderr, flush=True)
    print(align(rows))
    print(f"Python {platform.python_version()}{', on a machine under other load' if options.loaded else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
