"""Worker processes that are up before the clock starts, and rest between rounds."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

from inspector.embedded.state import PROJECT

from .installation import Installation

CHILD = """
import select, sys
import django
django.setup()
from django.utils import timezone
from inspector import pipeline
from inspector.intake.models import Job
Job.objects.exists()
print("ready", flush=True)
while sys.stdin.readline():
    while not select.select([sys.stdin], [], [], 0)[0]:
        if not pipeline.run_due(seconds=1):
            # A conversation that pauses before it is resolved again need not wait here, once all has been read.
            open_jobs = Job.objects.exclude(state=Job.State.DONE)
            waiting = open_jobs.filter(state=Job.State.QUEUED, due_at__gt=timezone.now())
            is_reading = open_jobs.filter(kind__in=[Job.Kind.FRAME, Job.Kind.INGEST]).exists()
            if is_reading or not waiting.update(due_at=timezone.now()):
                select.select([sys.stdin], [], [], 0.01)
    sys.stdin.readline()
    print("at rest", flush=True)
"""


class WorkerPool:
    """Some workers; use it as a context manager."""

    def __init__(self, installation: Installation, *, count: int) -> None:
        self._installation, self._count = installation, count
        self._stack = ExitStack()
        self._workers: list[subprocess.Popen[str]] = []

    def __enter__(self) -> WorkerPool:
        environment = {
            **self._installation.environment(),
            "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}",
            "LOG_LEVEL": "ERROR",
        }
        for _ in range(self._count):
            worker = subprocess.Popen(
                [sys.executable, "-c", CHILD],
                env=environment,
                cwd=PROJECT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self._stack.callback(worker.kill)
            self._workers.append(worker)
        self._read("ready")
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def go(self) -> None:
        """Let them work off whatever is there."""
        self._write("go")

    def rest(self) -> None:
        """Let them stop after what they have begun."""
        self._write("rest")
        self._read("at rest")

    def _write(self, word: str) -> None:
        for worker in self._workers:
            assert worker.stdin
            worker.stdin.write(f"{word}\n")
            worker.stdin.flush()

    def _read(self, word: str) -> None:
        for worker in self._workers:
            assert worker.stdout
            said = worker.stdout.readline().strip()
            if said != word:
                raise RuntimeError(f"a worker said {said!r} instead of {word!r}")
