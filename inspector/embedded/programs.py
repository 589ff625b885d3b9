"""The product's own processes, as the supervisor runs them: front, pages, posting and the worker."""

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from .processes import Program
from .state import PROJECT, StateFolder

FRONT = "front"
WEB = "web"
POSTING = "posting"
WORKER = "worker"
STEPS = "first steps"
UNREACHABLE = 3  # What the first steps answer where the database does not.


def make_environment(state: StateFolder, database_url: str) -> dict[str, str]:
    """What the processes see: our own environment, the database and the private folders."""
    return {
        # Each job has a thread that renews its lease; memory that is kept for every thread apart is memory twice.
        "MALLOC_ARENA_MAX": "2",
        **os.environ,
        "DATABASE_URL": database_url,
        "INSPECTOR_STATE_DIR": str(state.root),
        "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE", "inspector.settings"),
        "TMPDIR": str(state.temporary),
        "PYTHONUNBUFFERED": "1",
    }


def make_web(
    state: StateFolder, environment: Mapping[str, str], listener: socket.socket, sockets: Path
) -> tuple[Program, ...]:
    """The front, and the processes behind it that answer pages and take bodies in, in the order of their start.

    Args:
        state: where their logs are.
        environment: what they see.
        listener: what visitors connect to. We hold it: while the front is started again they wait, and are not refused.
        sockets: a folder of our own, whose path is short.
    """
    pages, posting = sockets / WEB, sockets / POSTING
    front = Program(
        name=FRONT,
        command=(
            *(sys.executable, "-m", "inspector.front", f"--bind=fd://{listener.fileno()}"),
            *(f"--pages={pages}", f"--posting={posting}"),
        ),
        environment=environment,
        folder=PROJECT,
        log=state.logs / "front.log",
        rank=2,
        inherited=(listener.fileno(),),
    )
    return _make_pool(WEB, state, environment, pages), _make_pool(POSTING, state, environment, posting), front


def _make_pool(name: str, state: StateFolder, environment: Mapping[str, str], path: Path) -> Program:
    memory = Path("/dev/shm")  # noqa: S108  # gunicorn makes its file there with a random name, and private
    return Program(
        name=name,
        command=(
            *(sys.executable, "-m", "gunicorn", "inspector.pool:application", f"--bind=unix:{path}"),
            *("--worker-class=gthread", "--workers=2", "--threads=4", "--timeout=120"),
            f"--worker-tmp-dir={memory if memory.is_dir() else state.temporary}",
            "--no-control-socket",  # Otherwise every server of this user shares one in the home folder.
            "--config=python:inspector.server",
        ),
        environment=environment,
        folder=PROJECT,
        log=state.logs / f"{name}.log",
        rank=3,
    )


def make_worker(state: StateFolder, environment: Mapping[str, str]) -> Program:
    """The workers. What they have begun they end; a slice that takes longer is given back by its lease."""
    return Program(
        name=WORKER,
        command=(sys.executable, "-m", "django", "work", "--wait=2"),
        environment=environment,
        folder=PROJECT,
        log=state.logs / "worker.log",
        rank=1,
    )
