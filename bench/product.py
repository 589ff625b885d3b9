"""The product within this process, on a throw-away cluster that survives a power cut: what the ingest suite measures.

Import it only after `enter_product` has set the environment: Django's settings are read once.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from bench.installation import Installation, choose_environment

# In the order in which rows can be copied in: what is pointed at comes first.
LOG_TABLES = (
    "intake_delivery",
    "intake_scaffold",
    "intake_record",
    "intake_sighting",
    "intake_job",
    "threads_conversation",
    "threads_message",
    "threads_trace",
)
# What settling and examining keep beside the log.
TABLES = (
    *LOG_TABLES,
    "threads_agent",
    "threads_exchange",
    "threads_declaration",
    "threads_agenttotal",
    "threads_pairtotal",
    "threads_task",
    "threads_block",
    "threads_treegroup",
    "threads_wording",
    "threads_maskedwire",
    "threads_announcement",
    "audit_examination",
    "audit_finding",
)
PRINTED_SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "wal_compression", "jit")
MAX_TURNS = 10_000


@contextmanager
def enter_product(installation: Installation) -> Iterator[Product]:
    """Django set up in this process on the database of an installation whose web server and worker do not run."""
    choose_environment()
    # No worker runs: the jobs are worked off here.
    variables = {"LOG_LEVEL": "ERROR", **installation.variables}
    os.environ.update({**installation.environment(), **variables})
    import django

    django.setup()
    from django.db import connection

    try:
        yield Product()
    finally:
        connection.close()


@dataclass(frozen=True)
class Counts:
    """What a delivery's receipt says."""

    received: int
    stored: int
    duplicate: int
    quarantined: int


class Product:
    """The doors and the worker as plain calls, and the rows they leave."""

    def __init__(self) -> None:
        from inspector.accounts.services import ensure_first_workspace

        self.workspace = ensure_first_workspace()[0]
        self.channel = self.workspace.channels.get(name="main")

    def take(self, pieces: Iterable[bytes], *, name: str = "bench.jsonl") -> Counts:
        """Frame and store a file, as the import command does."""
        from inspector.intake.framing import take_stream
        from inspector.intake.models import Door
        from inspector.intake.services import open_delivery

        delivery = open_delivery(workspace=self.workspace, channel=self.channel, door=Door.IMPORT, file_name=name)
        take_stream(delivery=delivery, chunks=pieces)
        return Counts(delivery.received, delivery.stored, delivery.duplicate, delivery.quarantined)

    def make_key(self) -> str:
        """A key of the API with every scope."""
        from inspector.accounts.models import ApiKey
        from inspector.accounts.services import create_api_key

        return create_api_key(workspace=self.workspace, name="bench", scopes=ApiKey.Scope.values)[1]

    def hash_stream(self, delivery: str) -> bytes:
        """The SHA-256 of what a delivery's scaffold and slices give back."""
        from inspector.intake.models import Delivery
        from inspector.intake.selectors import rebuild_stream

        digest = hashlib.sha256()
        for piece in rebuild_stream(delivery=Delivery.objects.get(pk=delivery)):
            digest.update(piece)
        return digest.digest()

    def work(self, *, kinds: tuple[str, ...] | None = None) -> None:
        """Work off every job, also those that pause.

        Raises:
            RuntimeError: when a job fails.
        """
        from django.utils import timezone

        from inspector import pipeline
        from inspector.intake.models import Job

        wanted = kinds or tuple(Job.Kind.values)
        for _ in range(MAX_TURNS):
            pipeline.run_due(seconds=3600, only=wanted)
            left = Job.objects.filter(kind__in=wanted).exclude(state=Job.State.DONE)
            failed = left.exclude(failure="").first()
            if failed:
                raise RuntimeError(f"a job failed: {failed.kind}: {failed.failure}")
            if not left.update(due_at=timezone.now()):
                return
        raise RuntimeError("the jobs do not end")

    def wait_until_done(self) -> None:
        """Wait until others have worked off every job.

        Raises:
            RuntimeError: when a job fails.
        """
        from inspector.intake.models import Job

        while True:
            left = Job.objects.exclude(state=Job.State.DONE)
            failed = left.exclude(failure="").first()
            if failed:
                raise RuntimeError(f"a job failed: {failed.kind}: {failed.failure}")
            if not left.exists():
                return
            time.sleep(0.01)

    def clear(self) -> None:
        """Empty tables, and nothing left to be written."""
        self.execute(f"TRUNCATE {', '.join(TABLES)} CASCADE")
        self.checkpoint()

    def checkpoint(self) -> None:
        """Leave nothing to be written, where the database lets us."""
        self.execute("CHECKPOINT") if self._may_checkpoint() else None

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, or none; of all workspaces."""
        from django.db import connection

        from inspector.trail.row_security import leave

        leave()
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def count_processor_seconds(self) -> float:
        """What this process and the database's process that serves it have computed so far."""
        backend = psutil.Process(self.execute("SELECT pg_backend_pid()")[0][0]).cpu_times()
        return time.process_time() + float(backend.user) + float(backend.system)

    def _may_checkpoint(self) -> bool:
        return bool(self.execute("SELECT pg_has_role(current_user, 'pg_checkpoint', 'member')")[0][0])

    def tell_settings(self) -> str:
        """The settings of PostgreSQL that decide how fast it writes."""
        shown = [f"{name}={self.execute(f'SHOW {name}')[0][0]}" for name in PRINTED_SETTINGS]
        return f"PostgreSQL {self.execute('SHOW server_version')[0][0]}, {', '.join(shown)}"

    def dump(self, tables: Iterable[str] = TABLES) -> dict[str, list[bytes]]:
        """The rows of the tables as COPY gives them."""
        from django.db import connection

        dumped = {}
        for table in tables:
            with connection.cursor() as cursor, cursor.copy(f"COPY {table} TO STDOUT (FORMAT binary)") as copy:
                dumped[table] = [bytes(piece) for piece in copy]
        return dumped

    def copy_back(self, dumped: dict[str, list[bytes]]) -> None:
        """The same rows into the same tables with their indexes, by plain COPY in one transaction: the floor."""
        from django.db import connection, transaction

        with transaction.atomic():
            for table, pieces in dumped.items():
                with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
                    for piece in pieces:
                        copy.write(piece)

    def count_rows(self) -> dict[str, int]:
        """How many rows each table holds."""
        return {table: self.execute(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}
