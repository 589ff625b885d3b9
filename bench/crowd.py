"""`python -m bench.crowd`: writers in processes of their own load overlapping files at once: R5 of the goals.

A story of conversations that cite each other is cut into overlapping files. Each writer sends its share in batches, in
an order of its own, and works off whatever is due between them, so that framing, reading and settling of all meet.
Then every message must be there once, every link as it was written, no job dead and no record set aside; and the whole
picture must be that of the first shuffle.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.embedded.state import PROJECT

from .installation import Installation
from .logs import Log
from .measure import Goal, Row
from .product import Product, enter_product
from .workers import WorkerPool

if TYPE_CHECKING:
    from inspector.threads.trees import Tree

START = datetime(2026, 11, 1, 8, tzinfo=UTC)
CONVERSATIONS = 12
TRACES = ("t-0123456789ab", "t-ba9876543210")
CHILD = """
import json, random, sys
import django
django.setup()
from bench.crowd import make_lines
from bench.product import Product
from django.utils import timezone

from inspector import pipeline
from inspector.intake.models import Door, Job
from inspector.intake.framing import take_stream
from inspector.intake.services import open_delivery
from inspector.threads import tracing
from inspector.threads.resolving import resolver

# So that what is appended to these short conversations and traces goes on from what they carry.
resolver.SPACING = resolver.MAX_MESSAGES = tracing.MAX_PART = 10
product = Product()
print("ready", flush=True)
for order in sys.stdin:
    seed, number, writers, records = json.loads(order)
    chance = random.Random(f"{seed}/{number}")
    lines = make_lines(records)
    # Its own share, so that the files together hold everything, and as much again of the others'.
    mine = lines[number::writers] + chance.sample(lines, len(lines) // writers)
    # Every other time nearly in the order of the timeline, as agents that speak at once are heard.
    mine.sort(key=lambda line: json.loads(line)["at"])
    if seed % 2 == 0:
        chance.shuffle(mine)
    while mine:
        size = chance.randint(1, 40)
        batch, mine = mine[:size], mine[size:]
        delivery = open_delivery(
            workspace=product.workspace, channel=product.channel, door=Door.IMPORT, file_name=f"{number}.log"
        )
        take_stream(delivery=delivery, chunks=batch)
        if chance.random() < 0.5:
            # Traces wait for more; here they are drawn while it comes.
            Job.objects.filter(kind=Job.Kind.TRACE, state=Job.State.QUEUED).update(due_at=timezone.now())
            pipeline.run_due(seconds=0.5)
    pipeline.run_due(seconds=2)
    print("done", flush=True)
"""


def find_parents(records: int) -> list[int | None]:
    """Whom each message of the story answers: one before or after it, in its conversation or another, or nobody."""
    chance = random.Random(records)
    return [chance.choice([None, chance.randrange(records), max(0, at - 1)]) for at in range(records)]


def make_lines(records: int) -> list[bytes]:
    """The lines of the story, each with an id, a time of its own and the message that it answers."""
    lines = []
    for at, parent in enumerate(find_parents(records)):
        said: dict[str, Any] = {"raw": f"Step {at}.", "id": f"m{at}", "conversation": f"c{at % CONVERSATIONS}"}
        said |= {"at": (START + timedelta(seconds=at)).isoformat(), "from": f"agent-{at % 5}"}
        said |= {"parent": f"m{parent}"} if parent is not None else {}
        said |= {"trace": TRACES[at % len(TRACES)]} if at % 5 else {}
        lines.append(json.dumps(said).encode() + b"\n")
    return lines


def check(product: Product, records: int) -> tuple[list[str], list[tuple[object, ...]]]:
    """What is wrong after a shuffle, in words, and the picture that it left."""
    from inspector.intake.models import DeadLetter, Delivery, Job
    from inspector.threads.models import Conversation, Message
    from inspector.threads.timeline import number_messages

    faults = [f"job {job.kind}: {job.failure}" for job in Job.objects.exclude(state=Job.State.DONE)]
    faults += [f"set aside: {letter.failure}" for letter in DeadLetter.objects.all()]
    faults += [f"{each.file_name}: {each.state} {each.failure}" for each in Delivery.objects.exclude(state="framed")]
    stored = sum(Delivery.objects.values_list("stored", flat=True))
    faults += [f"{stored} stored of {records}"] if stored != records else []
    rows = list(Message.objects.order_by("native_id", "part"))
    number_messages(rows)
    names = {row.pk: row.native_id for row in rows}
    faults += [f"{len(rows)} messages of {records}"] if len(rows) != records else []
    parents = find_parents(records)
    for row in rows:
        at = int(row.native_id[1:])
        wanted = None if parents[at] in (None, at) else f"m{parents[at]}"
        found = names.get(row.parent) if row.parent else None
        if found != wanted and "circle" not in row.parent_why:
            faults.append(f"{row.native_id} answers {wanted}, and came out below {found}: {row.parent_why}")
    rest = Conversation.objects.order_by("native_id").values_list(
        "native_id", "state", "message_count", "missing_count", "settled_digest", "agents"
    )
    picture: list[tuple[object, ...]] = [
        (row.native_id, row.number, names.get(row.parent) if row.parent else None, row.parent_why, row.english)
        for row in rows
    ]
    faults += _check_traces()
    # The digest of a conversation stands for everything that a reader sees of it.
    return faults, [*picture, *((*each[:4], bytes(each[4] or b""), each[5]) for each in rest)]


def _check_traces() -> list[str]:
    """The traces that stand otherwise than drawn from all their messages."""
    from inspector.threads.models import Trace, TreeGroup
    from inspector.threads.tracing import draw_traces

    standing = _picture_traces()
    TreeGroup.objects.filter(trace__isnull=False).delete()
    for trace in Trace.objects.all():
        draw_traces(trace=trace, fence=lambda: None, finish=lambda done: None)
    whole = _picture_traces()
    return [f"trace {name} stands otherwise than drawn whole" for name in whole if standing.get(name) != whole[name]]


def _picture_traces() -> dict[str, tuple[object, ...]]:
    from inspector.threads.models import Trace
    from inspector.threads.trees import load_tree

    sums = ("state", "subject", "agents", "dialects", "message_count", "conversation_count", "missing_count")
    times = ("open_count", "severity", "first_at", "last_at")
    return {
        trace.native_id: (
            [getattr(trace, name) for name in sums + times],
            bytes(trace.digest or b""),
            _read_lines(tree) if (tree := load_tree(trace)) is not None else [],
        )
        for trace in Trace.objects.filter(last_at__isnull=False)
    }


def _read_lines(tree: Tree) -> list[tuple[int, object]]:
    """Every line of a tree with its depth, window by window."""
    lines: list[tuple[int, object]] = []
    window = tree.read_window(limit=1000)
    while True:
        lines += ((row.depth, row.line) for row in window.rows)
        if window.next is None:
            return lines
        window = tree.read_window(at=window.next, limit=1000)


def main() -> int:
    """Let the writers meet as often as asked, and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shuffles", type=int, default=50, help="how often (default 50)")
    parser.add_argument("--writers", type=int, default=4, help="how many at once (default 4)")
    parser.add_argument("--records", type=int, default=300, help="how many messages the story has (default 300)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    first: list[tuple[object, ...]] | None = None
    broken = differing = 0
    with ExitStack() as stack:
        installation = stack.enter_context(Installation())
        product = stack.enter_context(enter_product(installation))
        from inspector.threads import tracing

        tracing.MAX_PART = 10
        writers = [stack.enter_context(_start(installation)) for _ in range(options.writers)]
        stack.callback(lambda: [writer.kill() for writer in writers])
        _expect(writers, "ready")
        for shuffle in range(options.shuffles):
            product.clear()
            for number, writer in enumerate(writers):
                order = [options.seed + shuffle, number, options.writers, options.records]
                assert writer.stdin is not None
                writer.stdin.write(json.dumps(order) + "\n")
                writer.stdin.flush()
            _expect(writers, "done")
            product.work()
            faults, picture = check(product, options.records)
            first = first or picture
            broken += bool(faults)
            differing += picture != first
            print(f"shuffle {shuffle + 1}: {len(faults)} faults", file=sys.stderr, flush=True)
            for fault in faults[:10]:
                print(f"  {fault}", flush=True)
    print(
        f"R5: {options.writers} writers, {options.shuffles} shuffles of {options.records} records:"
        f" {broken} with faults, {differing} with another picture"
    )
    return 1 if broken or differing else 0


def _start(installation: Installation) -> subprocess.Popen[str]:
    environment = {
        **installation.environment(),
        "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}",
        "LOG_LEVEL": "ERROR",
    }
    return subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env=environment,
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _expect(writers: list[subprocess.Popen[str]], word: str) -> None:
    for writer in writers:
        assert writer.stdout is not None
        said = writer.stdout.readline().strip()
        if said != word:
            raise RuntimeError(f"a writer said {said!r} instead of {word!r}")


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

    def __exit__(self, *raised: object) -> None:
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


if __name__ == "__main__":
    sys.exit(main())
