"""Child processes: each in a group of its own, watched, started again when it falls, stopped in order; and the
product's own, as the supervisor runs them: front, pages, posting and the worker.

The supervisor has no thread: whoever waits for something calls `check` meanwhile. This module run as a program is its
watchdog, which stops the children if the supervisor dies, however it dies. The watchdog reads lines of JSON on its
standard input, whose other end only the supervisor holds, so that the end of the input means the end of the supervisor,
even by kill -9. Each child announces itself before it runs its program, so no child is ever unknown.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from . import EmbeddedError
from .binaries import ServerAccount
from .state import PROJECT, StateFolder, is_alive

POLL_S = 0.05
FIRST_DELAY_S = 0.5
MAX_DELAY_S = 30.0
STEADY_S = 60.0  # A process that ran for this long has earned a fresh start of the delays.
MAX_LOG_BYTES = 16 * 1024 * 1024
TRIM_EVERY_S = 60.0
SHOWN_LINES = 15


class ProcessFailedError(EmbeddedError):
    """A process ended that should be running; the last lines it wrote are part of the text.

    Attributes:
        status: how it ended, as `subprocess` tells it: negative for a signal.
    """

    def __init__(self, name: str, status: int, log: Path) -> None:
        self.status = status
        ended = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        lines = read_last_lines(log)
        shown = f" It last wrote:\n{lines}" if lines else " It wrote nothing."
        super().__init__(f"The process `{name}` {ended}; its log is {log}.{shown}")


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to run and how to stop it. Programs stop in the order of `rank`, the smallest first."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    log: Path
    rank: int
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10.0
    account: ServerAccount | None = None
    inherited: tuple[int, ...] = ()


@dataclass
class _Child:
    program: Program
    process: subprocess.Popen[bytes]
    started_at: float
    delay_s: float = FIRST_DELAY_S
    due_at: float | None = None  # When to start it again, while it is down.


@dataclass
class Supervisor:
    """Starts programs and keeps them running until it is closed. Use it as a context manager.

    `held` are descriptors that the watchdog keeps open until the last child is stopped: the lock of the state folder.
    `say` hears one sentence whenever a child falls or is started again.
    """

    say: Callable[[str], None]
    held: tuple[int, ...] = ()
    _children: dict[str, _Child] = field(default_factory=dict)
    _watchdog: subprocess.Popen[bytes] | None = None
    _throw_away: list[Path] = field(default_factory=list)
    _trim_at: float = 0.0

    def __enter__(self) -> "Supervisor":
        self._start_watchdog()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def watchdog_pid(self) -> int | None:
        """The watchdog's process id, while there is one."""
        return self._watchdog.pid if self._watchdog else None

    def start(self, program: Program) -> int:
        """Start a program and answer its process id."""
        child = _Child(program=program, process=self._launch(program), started_at=time.monotonic())
        self._children[program.name] = child
        return child.process.pid

    def throw_away(self, folder: Path) -> None:
        """Let the watchdog remove this folder, which we made, if we die before we do it ourselves."""
        self._throw_away.append(folder)
        self._tell({"remove": str(folder)})

    def is_running(self, name: str) -> bool:
        """Whether that child lives at this moment."""
        child = self._children.get(name)
        return child is not None and child.due_at is None and child.process.poll() is None

    def check(self) -> None:
        """Start again what fell, after a delay that doubles from half a second to half a minute."""
        now = time.monotonic()
        if self._watchdog is not None and self._watchdog.poll() is not None:
            self._start_watchdog()
        if now >= self._trim_at:
            self._trim_at = now + TRIM_EVERY_S
            for child in self._children.values():
                trim_log(child.program.log)
        for child in self._children.values():
            if child.due_at is not None:
                if now >= child.due_at:
                    child.process = self._launch(child.program)
                    child.started_at, child.due_at = now, None
                    self.say(f"The process `{child.program.name}` is started again.")
                continue
            status = child.process.poll()
            if status is None:
                continue
            self._forget(child)
            child.delay_s = FIRST_DELAY_S if now - child.started_at > STEADY_S else min(child.delay_s * 2, MAX_DELAY_S)
            child.due_at = now + child.delay_s
            self.say(str(ProcessFailedError(child.program.name, status, child.program.log)))

    def wait_until(self, is_done: Callable[[], bool], *, seconds: float, needs: str | None = None) -> bool:
        """Wait for something while the children are looked after; False when the time is over.

        Raises:
            ProcessFailedError: if the child named by `needs` ends meanwhile: at the start it would not get better.
        """
        deadline = time.monotonic() + seconds
        while not is_done():
            if needs is not None and (status := self._children[needs].process.poll()) is not None:
                raise ProcessFailedError(needs, status, self._children[needs].program.log)
            if time.monotonic() > deadline:
                return False
            self.check()
            time.sleep(POLL_S)
        return True

    def stop(self, *names: str) -> None:
        """Stop children for good, at the same time: the grace of each begins now."""
        known = [self._children.pop(name) for name in names if name in self._children]
        running = [child for child in known if child.due_at is None]
        try:
            stop_groups(
                [_describe(each.process.pid, each.program) for each in running if each.process.poll() is None], self.say
            )
        finally:
            for child in running:
                self._forget(child)

    def close(self) -> None:
        """Stop every child in the order of the ranks, then the watchdog."""
        try:
            for child in sorted(self._children.values(), key=lambda one: one.program.rank):
                self.stop(child.program.name)
        finally:
            # Whatever an exception left behind in `_children` is the watchdog's: it acts at the end of its input.
            if self._watchdog is not None and self._watchdog.stdin is not None:
                self._watchdog.stdin.close()
                self._watchdog.wait()
                self._watchdog = None

    def _forget(self, child: _Child) -> None:
        """Kill what is left of the child's group (a pool's processes, say), and stop watching it."""
        _signal(os.killpg, child.process.pid, signal.SIGKILL)
        child.process.wait()
        self._tell({"forget": child.process.pid})

    def _launch(self, program: Program) -> subprocess.Popen[bytes]:
        options = program.account.launch_options() if program.account else {}
        pipe = self._pipe()
        with open_log(program.log) as log:
            return subprocess.Popen(
                program.command,
                cwd=program.folder,
                env=dict(program.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                umask=0o077,
                start_new_session=True,
                pass_fds=program.inherited,
                # The child announces itself, because we may be killed between its birth and any word of ours.
                preexec_fn=lambda: _write(pipe, _describe(os.getpid(), program)),
                **options,
            )

    def _start_watchdog(self) -> None:
        if self._watchdog is not None and self._watchdog.stdin is not None:
            self._watchdog.stdin.close()  # That one is dead: this stands in for it.
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            pass_fds=self.held,
            start_new_session=True,
            bufsize=0,
        )
        for child in self._children.values():
            if child.due_at is None:
                self._tell(_describe(child.process.pid, child.program))
        for folder in self._throw_away:
            self._tell({"remove": str(folder)})

    def _pipe(self) -> int:
        if self._watchdog is None or self._watchdog.stdin is None:
            raise RuntimeError("a supervisor starts programs only inside its `with` block")
        return self._watchdog.stdin.fileno()

    def _tell(self, order: Mapping[str, object]) -> None:
        # If the watchdog was killed, `check` starts another and tells it everything.
        with contextlib.suppress(BrokenPipeError):
            _write(self._pipe(), order)


def _describe(pid: int, program: Program) -> dict[str, Any]:
    order = {"rank": program.rank, "signal": int(program.stop_signal), "grace_s": program.grace_s}
    return {"watch": pid, "name": program.name, **order}


def _write(pipe: int, order: Mapping[str, object]) -> None:
    # One write of less than PIPE_BUF bytes is never mixed with another's.
    os.write(pipe, json.dumps(order).encode() + b"\n")


def stop_groups(orders: Sequence[Mapping[str, Any]], say: Callable[[str], None]) -> None:
    """Signal the leader of each group, wait for it at most its grace, and kill what then lives in the group."""
    asked = time.monotonic()
    for order in orders:
        _signal(os.kill, order["watch"], order["signal"])
    for order in orders:
        while is_alive(order["watch"]) and time.monotonic() < asked + order["grace_s"]:
            time.sleep(POLL_S)
        if is_alive(order["watch"]):
            say(f"The process `{order['name']}` did not stop in {order['grace_s']:.0f} seconds and is killed.")
        _signal(os.killpg, order["watch"], signal.SIGKILL)


def _signal(send: Callable[[int, int], None], target: int, number: int) -> None:
    # Often nothing of the group lives any more.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(target, number)


def watch() -> None:
    """Follow the supervisor until its end, then stop what is left, in the order of the ranks, and remove folders."""
    # The terminal's Ctrl-C and the end of its session are the supervisor's affair.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[int, dict[str, Any]] = {}
    folders: list[str] = []
    for line in sys.stdin.buffer:
        match json.loads(line):
            case {"watch": int(pid)} as order:
                watched[pid] = order
            case {"forget": int(pid)}:
                watched.pop(pid, None)
            case {"remove": str(folder)}:
                folders.append(folder)
    for rank in sorted({order["rank"] for order in watched.values()}):
        stop_groups([order for order in watched.values() if order["rank"] == rank], lambda sentence: None)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def read_last_lines(log: Path, count: int = SHOWN_LINES) -> str:
    """The last lines of a log, or nothing where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 16_384))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-count:])
    except FileNotFoundError:
        return ""


def open_log(path: Path) -> IO[bytes]:
    """The log to append to, private from its first byte on."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab")


def trim_log(path: Path) -> None:
    """Put a large log aside, one at most, and go on with an empty one.

    Its writers keep it open and append, so it is copied and cut rather than renamed: what is written in the moment
    between the two is lost, which a log can bear.
    """
    if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
        shutil.copy2(path, path.with_name(f"{path.name}.1"))
        os.truncate(path, 0)


FRONT = "front"
WEB = "web"
POSTING = "posting"
WORKER = "worker"


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
    bind = f"--bind=fd://{listener.fileno()}"
    memory = Path("/dev/shm")  # noqa: S108  # gunicorn makes its file there with a random name, and private
    pool = (
        *("--worker-class=gthread", "--workers=2", "--threads=4", "--timeout=120"),
        f"--worker-tmp-dir={memory if memory.is_dir() else state.temporary}",
        "--no-control-socket",  # Otherwise every server of this user shares one in the home folder.
        "--limit-request-line=0",  # The front has a limit, and answers in the form that is asked for.
        "--config=python:inspector.server",
    )
    pools = [
        _make(
            name,
            3,
            state,
            environment,
            "gunicorn",
            "inspector.wsgi:behind_front",
            f"--bind=unix:{sockets / name}",
            *pool,
        )
        for name in (WEB, POSTING)
    ]
    handing = [f"--pages={sockets / WEB}", f"--posting={sockets / POSTING}"]
    if limit := environment.get("LIMIT_DELIVERY_BYTES"):
        handing.append(f"--body-bytes={limit}")
    front = _make(FRONT, 2, state, environment, "inspector.front", bind, *handing, inherited=(listener.fileno(),))
    return *pools, front


def make_worker(state: StateFolder, environment: Mapping[str, str]) -> Program:
    """The workers. What they have begun they end; a slice that takes longer is given back by its lease."""
    return _make(WORKER, 1, state, environment, "django", "work", "--wait=2")


def _make(
    name: str,
    rank: int,
    state: StateFolder,
    environment: Mapping[str, str],
    *module: str,
    inherited: tuple[int, ...] = (),
) -> Program:
    return Program(
        name=name,
        command=(sys.executable, "-m", *module),
        environment=environment,
        folder=PROJECT,
        log=state.logs / f"{name}.log",
        rank=rank,
        inherited=inherited,
    )


if __name__ == "__main__":
    watch()
