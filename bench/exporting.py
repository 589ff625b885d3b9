"""Exporting many messages: P25 of the goals, beside COPY TO of the same query, and the worker's memory.

The messages are those of the search suite: taken in and settled by the product, then copied back in time. Timed is all
that an export is from the moment that it is asked for: its set, its file in the database, and the hash of that.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from typing import Any, Final

from inspector.embedded.state import PROJECT

from .installation import Installation
from .measure import Goal, Row, summarise
from .product import Product, enter_product
from .searching import SEED_RECORDS, plant

P25: Final = Goal("P25", "export of {count:,} messages as {form} v COPY TO of the same query", 0.3, 0.6)
P25_MEMORY: Final = Goal("P25", "peak memory of the worker, {large:,} messages v {small:,}", 1.2, 1.05, is_share=True)
MANY, MORE = 50_000, 1_000_000
# What a line holds, in the order of the file.
COPY: Final = """
COPY (SELECT message.id, message.part, message.conversation_id, message.place, message.parent,
             message.parent_basis, message.order_time, message.order_basis, message.dialect, message.severity,
             message.english, message.body, record.id, record.source, record.wire, record.envelope, record.channel_id
        FROM threads_message AS message JOIN intake_record AS record ON record.id = message.record_id
       WHERE message.workspace_id = '{workspace}'
         AND NOT EXISTS (SELECT 1 FROM intake_hiddenrecord AS hidden WHERE hidden.record_id = message.record_id)
       ORDER BY message.order_time, message.order_source, message.order_index, message.record_id, message.part)
TO STDOUT
"""
WORK: Final = """
import resource, django
django.setup()
from inspector import pipeline
while pipeline.run_due(seconds=3600, only=("export",)):
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measure_exporting(options: Namespace) -> Iterator[Row]:
    """Every row of the suite; a million messages with `--long`."""
    large = MORE if options.long else MANY
    with Installation() as installation, enter_product(installation) as product:
        print(product.tell_settings(), file=sys.stderr)
        small = plant(product, SEED_RECORDS)
        little = measure_memory(installation, product)
        count = plant(product, large)
        print(f"exports: {small:,} messages, then {count:,}", file=sys.stderr, flush=True)
        much = measure_memory(installation, product)
        goal = _fill(P25_MEMORY, large=count, small=small)
        yield Row(goal, much / little, remark=f"{much / 1024:.0f} v {little / 1024:.0f} MB")
        for form in ("jsonl", "csv"):
            goal = _fill(P25, count=count, form=form)
            if not is_equal(product, form):
                yield Row(goal, 0.0, remark="the outputs differ")
                continue
            pairs = [(time_export(product, form), time_copy(product)) for _ in range(options.rounds)]
            rates = f"{count / min(ours for ours, _ in pairs):,.0f} messages/s"
            yield summarise(goal, pairs, remark=rates)


def _fill(goal: Goal, **values: Any) -> Goal:
    return Goal(goal.id, goal.about.format(**values), goal.required, goal.stretch, goal.is_share)


def ask(product: Product, form: str) -> Any:
    """An export of every message, exact."""
    from inspector.accounts.models import Membership
    from inspector.exports.services import ask_for_export

    membership = Membership.objects.filter(workspace=product.workspace).first()
    return ask_for_export(
        workspace=product.workspace, membership=membership, form=form, is_masked=False, query="", title="bench"
    )


def remove(product: Product) -> None:
    """Delete every export, and leave nothing to be written."""
    product.execute("TRUNCATE exports_export, exports_block, exports_piece")
    product.execute("DELETE FROM intake_job WHERE kind = 'export'")
    product.checkpoint()


def time_export(product: Product, form: str) -> float:
    """Seconds from asking to the hashed file."""
    start = time.perf_counter()
    export = ask(product, form)
    product.work(kinds=("export",))
    spent = time.perf_counter() - start
    export.refresh_from_db()
    if export.state != "done":
        raise RuntimeError(f"the export is {export.state}: {export.failure}")
    remove(product)
    return spent


def time_copy(product: Product) -> float:
    """Seconds of COPY TO, every byte of it read."""
    from django.db import connection

    start = time.perf_counter()
    with connection.cursor() as cursor, cursor.copy(COPY.format(workspace=product.workspace.pk)) as copy:
        for _ in copy:
            pass
    return time.perf_counter() - start


def is_equal(product: Product, form: str) -> bool:
    """Whether the file holds the messages that COPY gives, in its order."""
    from django.db import connection

    from inspector.exports.making import read_file

    export = ask(product, form)
    product.work(kinds=("export",))
    export.refresh_from_db()
    data = b"".join(read_file(export))
    lines = (gzip.decompress(data) if export.is_packed else data).splitlines()
    remove(product)
    if form == "csv":
        # A cell may hold line ends; an id stands at the beginning of a row.
        ids = [line[:36].decode() for line in lines[1:] if line[8:9] == line[13:14] == b"-" and line[36:37] == b","]
    else:
        ids = [message["id"] for line in lines for message in json.loads(line)["inspected"]["messages"]]
    with connection.cursor() as cursor, cursor.copy(COPY.format(workspace=product.workspace.pk)) as copy:
        copied = [row.split(b"\t", 1)[0].decode() for row in b"".join(copy).splitlines()]
    return ids == copied


def measure_memory(installation: Installation, product: Product) -> int:
    """The peak of a fresh worker's resident memory in kB, for an export of everything."""
    ask(product, "jsonl")
    done = subprocess.run(
        [sys.executable, "-c", WORK],
        cwd=PROJECT,
        env=installation.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    remove(product)
    return int(done.stdout.split()[-1])
