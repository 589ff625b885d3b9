"""R23: how long a writer waits while the schema of a million messages is changed, by the migrations that there are
after the first of each app, and by each kind of statement that the test of migrations lets through.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from inspector.embedded.state import PROJECT

from .installation import Installation
from .measure import Goal, Row
from .product import enter_product

# By name, what a migration may do to a table that is there (tests/inspector/trail/test_migrating.py).
CHANGES: Final = {
    "a column with a default": "ALTER TABLE threads_message ADD COLUMN bench integer NOT NULL DEFAULT 1",
    "a constraint": "ALTER TABLE threads_message ADD CONSTRAINT bench CHECK (bench > 0) NOT VALID",
    "looking whether a constraint holds": "ALTER TABLE threads_message VALIDATE CONSTRAINT bench",
    "an index": "CREATE INDEX CONCURRENTLY bench ON threads_message (bench, id)",
    "dropping a column": "ALTER TABLE threads_message DROP COLUMN bench",
}


def measure_migrating(rows: int) -> Iterator[Row]:
    """A row for the migrations, and one for each kind of statement."""
    with Installation() as installation:
        with enter_product(installation) as product:
            product.take([json.dumps({"raw": "Count aisle 6.", "id": "m0"}).encode() + b"\n"])
            product.work()
            [(message,)] = product.execute("SELECT id FROM threads_message")
            # Back to how it began: this code writes no message into an earlier schema.
            for folder in sorted(PROJECT.glob("inspector/*/migrations")):
                first, *later = sorted(path.stem for path in folder.glob("0*.py"))
                if later:
                    _migrate(installation, folder.parent.name, first)
            columns = product.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = 'threads_message'::regclass AND attnum > 0 "
                "AND NOT attisdropped ORDER BY attnum"
            )
            own = {"id": "gen_random_uuid()", "part": "n + 1", "order_index": "n"}
            copied = ", ".join(own.get(name, f'"{name}"') for (name,) in columns)
            product.execute(
                f"INSERT INTO threads_message SELECT {copied} FROM threads_message, generate_series(1, {rows - 1}) AS n"
            )
        with write_meanwhile(installation, message) as waits:
            _migrate(installation)
        yield _tell("the migrations after the first", rows, waits)
        with installation.connect() as connection:
            for what, statement in CHANGES.items():
                with write_meanwhile(installation, message) as waits:
                    connection.execute(statement)
                yield _tell(what, rows, waits)


def _migrate(installation: Installation, *which: str) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity=0", *which]
    subprocess.run(command, cwd=PROJECT, env=installation.environment(), check=True)


@contextmanager
def write_meanwhile(installation: Installation, message: UUID) -> Iterator[list[float]]:
    """Somebody who changes a message again and again meanwhile; how long each change took, in seconds."""
    waits: list[float] = []
    is_over = threading.Event()

    def write() -> None:
        with installation.connect() as connection:
            while not is_over.is_set():
                begun = time.perf_counter()
                connection.execute("UPDATE threads_message SET turn = 1 WHERE id = %s", [message])
                waits.append(time.perf_counter() - begun)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while not waits and thread.is_alive():
            time.sleep(0.01)
        yield waits
    finally:
        is_over.set()
        thread.join()


def _tell(what: str, rows: int, waits: list[float]) -> Row:
    goal = Goal("R23", f"{rows:,} messages: the longest that a writer waited for {what}, s", 2, 0.5, is_share=True)
    return Row(goal, max(waits), remark=f"{len(waits):,} changes meanwhile")
