"""The product as `make run` starts it, in a temporary folder of its own: PostgreSQL, web server and worker.

Nothing of it is simulated: the programs and the supervisor are the product's. It is the stage of the crash harness and
of the measurements that need real processes; it goes away with the process that made it, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg

from inspector.embedded import EmbeddedError, processes
from inspector.embedded.binaries import find_server_account
from inspector.embedded.cluster import NAME as POSTGRES
from inspector.embedded.cluster import Cluster, make_cluster
from inspector.embedded.processes import Program, Supervisor, read_last_lines
from inspector.embedded.run import HOST, open_listener
from inspector.embedded.samples import Door
from inspector.embedded.state import PROJECT, StateFolder, open_state

from .broker import NAME as BROKER
from .broker import NONE, Broker, open_broker
from .visitor import Visitor

FRONT, WEB, POSTING, WORKER = processes.FRONT, processes.WEB, processes.POSTING, processes.WORKER
BEAT = "beat"
PATIENCE_S = 120.0
RESTARTS = 20
IDLE_POLL_S = 0.2


class LateError(EmbeddedError):
    """The backlog was not drained in time."""


class Installation:
    """One installation. Use it as a context manager; PostgreSQL runs and the schema is there once it is entered.

    Args:
        variables: added to the environment of web server and worker.
        broker: as `open_broker` takes it.

    Attributes:
        address: where its web server listens.
        enter: what its programs' commands begin with.
        hosts: on what its web servers and workers run: on itself.
    """

    address = HOST
    enter: tuple[str, ...] = ()

    def __init__(self, *, variables: Mapping[str, str] | None = None, broker: str = NONE) -> None:
        self.variables = dict(variables or {})
        self._choice = broker
        # Programs that stay down on purpose, and until when.
        self._away: dict[str, float] = {}
        self._stack = ExitStack()
        self._programs: dict[str, Program] = {}
        self.state: StateFolder
        self.cluster: Cluster
        self.supervisor: Supervisor
        self.broker: Broker | None
        self.door: Door
        self.link: str
        self.hosts: Sequence[Installation] = (self,)

    def __enter__(self) -> Installation:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def _open(self) -> None:
        root = make_folder("inspector-bench-")
        self._stack.callback(shutil.rmtree, root, ignore_errors=True)
        self.state = open_state(root)
        self._stack.callback(self.state.release)
        self.listener = self._listen()
        self._stack.callback(self.listener.close)
        self.supervisor = self._stack.enter_context(Supervisor(say=_say_nothing, held=(self.state.lock,)))
        self.supervisor.throw_away(root)
        self.sockets = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="inspector-")))
        self._start_services()
        self._stack.callback(self.stop)
        self.renew()

    def _listen(self) -> socket.socket:
        return open_listener(0)

    def _make_cluster(self) -> Cluster:
        return make_cluster(self.state)

    def _start_services(self) -> None:
        """PostgreSQL, and the broker where there is one."""
        self.cluster = self._make_cluster()
        self.cluster.start(self.supervisor)
        self._stack.callback(self.cluster.stop, self.supervisor)
        self.broker = open_broker(self._choice, self.state, host=self.address)
        if self.broker:
            self._stack.callback(self.broker.leave)
            if self.broker.program:
                self.supervisor.start(self.broker.program)

    def renew(self) -> None:
        """Take the first steps, again if need be: a key lasts for two hours."""
        first = self._take_first_steps()
        self.link = first["link"]
        self.door = Door(host=self.address, port=self.listener.getsockname()[1], token=first["token"])

    def visit(self) -> Visitor:
        """Somebody who signs in; the link of the first steps does so once."""
        return Visitor(host=self.door.host, port=self.door.port, link=self.link)

    def _take_first_steps(self) -> dict[str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "inspector.embedded.first_steps"],
            cwd=PROJECT,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise EmbeddedError(f"the first steps failed: {done.stdout}{done.stderr[-3000:]}")
        told: dict[str, str] = json.loads(done.stdout)
        return told

    def environment(self) -> dict[str, str]:
        """What the processes see."""
        broker = {"CELERY_BROKER_URL": self.broker.url} if self.broker else {}
        # One person asks for all the pages that are measured.
        patient = {"LIMIT_PAGES_PER_MINUTE": "0", **self.variables}
        return {**processes.make_environment(self.state, self.cluster.url), **broker, **patient}

    def start(self) -> None:
        """Start web server and worker, and wait until the web server answers.

        Raises:
            EmbeddedError: when it does not, with the last lines of its log.
        """
        environment = self.environment()
        for program in (
            *processes.make_web(self.state, environment, self.listener, self.sockets),
            *self._make_workers(environment),
        ):
            entered = replace(program, command=(*self.enter, *program.command))
            self._programs[program.name] = entered
            self.supervisor.start(entered)
        if not self.supervisor.wait_until(self.door.is_open, seconds=PATIENCE_S, needs=WEB):
            raise EmbeddedError(f"the web server does not answer: {self.read_log(WEB)}")

    def _make_workers(self, environment: Mapping[str, str]) -> list[Program]:
        """The workers as the product starts them; beside a broker, Celery's worker and beat."""
        worker = processes.make_worker(self.state, environment)
        if self.broker is None:
            return [worker]
        celery = (sys.executable, "-m", "celery", "--app=inspector")
        at_work = (*celery, "worker", "--concurrency=2", "--loglevel=INFO", "--without-gossip", "--without-mingle")
        beat = (*celery, "beat", "--loglevel=INFO", f"--schedule={self.state.temporary / 'schedule'}", "--pidfile=")
        return [replace(worker, command=at_work), replace(worker, name=BEAT, command=beat)]

    def stop(self) -> None:
        """Stop web server and worker; what was killed stays down."""
        for name in list(self._programs):
            self.supervisor.stop(name)
            del self._programs[name]

    def keep_away(self, name: str, seconds: float) -> None:
        """Let what fell, or is about to, be down for this long before it is brought back."""
        self._away[name] = time.monotonic() + seconds

    def bring_back(self) -> None:
        """Start again what fell, without the pause that the supervisor grows between falls."""
        if not self.supervisor.is_running(POSTGRES):
            self._restart_cluster()
        brokers = {BROKER: self.broker.program} if self.broker and self.broker.program else {}
        self._bring_back(brokers | self._programs)

    def _bring_back(self, programs: Mapping[str, Program]) -> None:
        for name, program in programs.items():
            if not self.supervisor.is_running(name) and time.monotonic() >= self._away.get(name, 0.0):
                self.supervisor.stop(name)
                self.supervisor.start(program)

    def _restart_cluster(self) -> None:
        # The killed server's own sessions may live a moment longer; until they are gone no other starts on its memory.
        for _ in range(RESTARTS):
            self.supervisor.stop(POSTGRES)
            with contextlib.suppress(EmbeddedError):
                self.cluster.start(self.supervisor)
                return
        self.cluster.start(self.supervisor)

    def wait_until_idle(self, *, seconds: float, may_fail: bool = False) -> None:
        """Wait until every job has ended.

        Args:
            seconds: for how long at most.
            may_fail: whether jobs may be given up.

        Raises:
            LateError: when time is over.
            EmbeddedError: when a job is a dead letter that may not be one.
        """
        deadline = time.monotonic() + seconds
        # One session for all looks: to begin one costs PostgreSQL several milliseconds, which are nobody's record's.
        with self.connect() as connection:
            while time.monotonic() < deadline:
                self.supervisor.check()
                row = connection.execute(
                    "SELECT count(*) FILTER (WHERE state IN ('queued', 'running')), "
                    "count(*) FILTER (WHERE state = 'dead') FROM intake_job"
                ).fetchone()
                if row and row[1] and not may_fail:
                    raise EmbeddedError(f"{row[1]} jobs are dead letters: {self.read_log(WORKER, 5)[-1000:]}")
                if row and not row[0]:
                    return
                time.sleep(IDLE_POLL_S)
        raise LateError(f"the backlog is not drained: {self.read_log(WORKER, 5)[-1000:]}")

    def find_process(self, name: str) -> psutil.Process:
        """The process of one of the programs, the leader of its group.

        Raises:
            KeyError: when it is not known.
        """
        return psutil.Process(self.supervisor._children[name].process.pid)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection of our own to the database, past the product."""
        return psycopg.connect(self.cluster.url, autocommit=True, connect_timeout=10)

    def read_log(self, name: str, lines: int = 20) -> str:
        """The last lines that a program wrote."""
        file = self.state.logs / ("postgresql.log" if name == POSTGRES else f"{name}.log")
        return read_last_lines(file, lines)


def make_folder(prefix: str) -> Path:
    """A private temporary folder that the account PostgreSQL runs as can reach."""
    account = find_server_account()
    usual = Path(tempfile.gettempdir())
    parent = usual if account is None or account.can_enter(usual) else Path("/tmp")
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent))


def choose_environment() -> None:
    """Let nothing of the caller's environment point the processes at another database or folder."""
    for name in ("DATABASE_URL", "INSPECTOR_STATE_DIR", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE"):
        os.environ.pop(name, None)


def _say_nothing(sentence: str) -> None:
    """The supervisor tells each fall, and here falling is the purpose."""
