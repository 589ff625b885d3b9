"""Processes of their own on the database of a test, which may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.db import connection
from psycopg.conninfo import make_conninfo

PROJECT = Path(__file__).parents[3]


def make_environment(state: Path, **more: str) -> dict[str, str]:
    """What the product's processes see: this test's database, and a state folder."""
    info = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    return os.environ | {
        "DATABASE_URL": make_conninfo(**{name: info[name] for name in names if info.get(name)}),
        "INSPECTOR_STATE_DIR": str(state),
        "DJANGO_SETTINGS_MODULE": "inspector.settings",
        "PYTHONPATH": f"{PROJECT / 'codecs'}:{PROJECT}",
        **more,
    }


@contextmanager
def process(state: Path, *words: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`python WORDS…` in a session of its own; what is left of it at the end is killed. Its log is `process.log`."""
    with (state / "process.log").open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, *words],
            cwd=PROJECT,
            env=make_environment(state, **more),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield child
    finally:
        kill(child)


@contextmanager
def worker(state: Path, processes: int = 1, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """The worker of an installation without a broker, as the product's supervisor starts it."""
    with process(state, "-m", "django", "work", f"--wait={processes}", **more) as child:
        yield child


@contextmanager
def celery(state: Path, *words: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`celery WORDS…` of the product, beside a broker."""
    with process(state, "-m", "celery", "--app=inspector", *words, "--loglevel=WARNING", **more) as child:
        yield child


def kill(child: subprocess.Popen[bytes]) -> None:
    """kill -9 of the process and of all that is in its session."""
    with suppress(ProcessLookupError):  # It may have ended by itself.
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
