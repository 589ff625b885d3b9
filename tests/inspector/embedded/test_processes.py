"""The supervisor: in order, in groups, with patience; and nothing outlives it."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector.embedded.processes import (
    MAX_LOG_BYTES,
    ProcessFailedError,
    Program,
    Supervisor,
    make_web,
    open_log,
    read_last_lines,
    trim_log,
)
from inspector.embedded.state import StateFolder, is_alive
from inspector.front.__main__ import read_options
from tests.inspector.embedded.conftest import find_processes

PROJECT = Path(__file__).resolve().parents[3]
# Writes its id and when it was told to stop, and keeps a child of its own.
WORKER = """
import os, signal, subprocess, sys, time
name, folder, obeys = sys.argv[1], sys.argv[2], sys.argv[3] == "obeys"
def stop(number, frame):
    with open(f"{folder}/stopped", "a") as file:
        file.write(f"{name}\\n")
    if obeys:
        sys.exit(0)
signal.signal(signal.SIGTERM, stop)
child = subprocess.Popen(["sleep", "300"])
with open(f"{folder}/{name}", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
while True:
    time.sleep(0.05)
"""


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(said: list[str]) -> Iterator[Supervisor]:
    with Supervisor(say=said.append) as supervisor:
        yield supervisor


@pytest.fixture
def make_program(tmp_path: Path) -> Callable[..., Program]:
    def make(name: str, *command: str, rank: int = 1, obeys: bool = True, grace_s: float = 10.0) -> Program:
        usual = (sys.executable, "-c", WORKER, name, str(tmp_path), "obeys" if obeys else "ignores")
        return Program(
            name=name,
            command=command or usual,
            environment=dict(os.environ),
            folder=tmp_path,
            log=tmp_path / f"{name}.log",
            rank=rank,
            grace_s=grace_s,
        )

    return make


def read_pids(path: Path, seconds: float = 20.0) -> list[int]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.exists() and len(path.read_text().split()) == 2:
            return [int(pid) for pid in path.read_text().split()]
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def await_end(pids: list[int], seconds: float = 20.0) -> list[int]:
    deadline = time.monotonic() + seconds
    while (living := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return living


@pytest.mark.parametrize(("set_to", "bytes_"), [("1000000", 1_000_000), ("", 2 * 1024**3), (None, 2 * 1024**3)])
def test_the_front_is_told_how_long_a_delivery_may_be(tmp_path: Path, set_to: str | None, bytes_: int) -> None:
    environment = {} if set_to is None else {"LIMIT_DELIVERY_BYTES": set_to}
    with socket.socket() as listener:
        *_, front = make_web(StateFolder(tmp_path, 0), environment, listener, tmp_path)
    assert read_options(front.command[3:]).body_bytes == bytes_


def test_children_stop_in_the_order_of_their_ranks_with_all_their_processes(
    supervisor: Supervisor, make_program: Callable[..., Program], tmp_path: Path
) -> None:
    for name, rank in (("database", 9), ("web", 2), ("worker", 1)):
        supervisor.start(make_program(name, rank=rank))
    pids = [pid for name in ("database", "web", "worker") for pid in read_pids(tmp_path / name)]
    supervisor.close()
    assert (tmp_path / "stopped").read_text().split() == ["worker", "web", "database"]
    assert await_end(pids, 5) == []


def test_who_does_not_stop_in_its_grace_is_killed(
    supervisor: Supervisor, make_program: Callable[..., Program], tmp_path: Path, said: list[str]
) -> None:
    supervisor.start(make_program("stubborn", obeys=False, grace_s=0.3))
    pids = read_pids(tmp_path / "stubborn")
    supervisor.stop("stubborn")
    assert await_end(pids, 5) == []
    assert said == ["The process `stubborn` did not stop in 0 seconds and is killed."]


def test_who_falls_is_started_again_and_its_last_lines_are_shown(
    supervisor: Supervisor, make_program: Callable[..., Program], tmp_path: Path, said: list[str]
) -> None:
    code = "import os, time; print('I am', os.getpid(), flush=True); time.sleep(0.1); raise SystemExit(3)"
    supervisor.start(make_program("weak", sys.executable, "-c", code))
    assert supervisor.wait_until(lambda: (tmp_path / "weak.log").read_text().count("I am") == 2, seconds=20)
    assert said[0].startswith("The process `weak` ended with status 3; its log is ")
    assert "I am " in said[0]
    assert said[1] == "The process `weak` is started again."


def test_the_pauses_between_starts_grow(
    supervisor: Supervisor, make_program: Callable[..., Program], tmp_path: Path, said: list[str]
) -> None:
    supervisor.start(make_program("weak", "/bin/false"))
    started = time.monotonic()
    assert supervisor.wait_until(lambda: said.count("The process `weak` is started again.") == 2, seconds=20)
    assert time.monotonic() - started >= 1 + 2


def test_who_is_needed_for_the_start_and_ends_stops_the_wait(
    supervisor: Supervisor, make_program: Callable[..., Program]
) -> None:
    supervisor.start(make_program("weak", "/bin/sh", "-c", "echo the reason; exit 4"))
    with pytest.raises(ProcessFailedError, match=r"(?s)`weak` ended with status 4.*the reason") as failed:
        supervisor.wait_until(lambda: False, seconds=20, needs="weak")
    assert failed.value.status == 4


def test_each_child_leads_a_group_that_the_terminal_does_not_interrupt(
    supervisor: Supervisor, make_program: Callable[..., Program]
) -> None:
    pid = supervisor.start(make_program("child", "sleep", "300"))
    assert os.getpgid(pid) == pid
    assert os.getsid(pid) == pid != os.getsid(0)


def test_a_supervisor_out_of_its_block_starts_nothing(make_program: Callable[..., Program]) -> None:
    with pytest.raises(RuntimeError, match="inside its `with` block"):
        Supervisor(say=print).start(make_program("child", "sleep", "300"))


def test_a_killed_watchdog_is_replaced_and_told_everything(
    supervisor: Supervisor, make_program: Callable[..., Program], tmp_path: Path
) -> None:
    supervisor.start(make_program("child"))
    read_pids(tmp_path / "child")
    first = supervisor.watchdog_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert supervisor.wait_until(lambda: supervisor.watchdog_pid != first, seconds=10)
    supervisor.close()
    assert (tmp_path / "stopped").read_text() == "child\n"


PARENT = """
import json, signal, sys, time
from pathlib import Path
from inspector.embedded.processes import Program, Supervisor
# As a terminal starts it: a test run behind `nohup` hands on that these are ignored.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
folder, worker, wait = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "wait"
with Supervisor(say=print) as supervisor:
    (folder / "away").mkdir()
    supervisor.throw_away(folder / "away")
    for name, rank in (("database", 9), ("worker", 1)):
        supervisor.start(Program(
            name=name, command=(sys.executable, "-c", worker, name, str(folder), "obeys"), environment={},
            folder=folder, log=folder / f"{name}.log", rank=rank,
        ))
    print(json.dumps({"watchdog": supervisor.watchdog_pid}), flush=True)
    if wait:
        time.sleep(300)
    raise ValueError("a bug")
"""


def start_parent(tmp_path: Path, *, waits: bool) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path), WORKER, "wait" if waits else "raise"],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_parent_that_dies_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    with start_parent(tmp_path, waits=True) as parent:
        assert parent.stdout is not None
        watchdog = json.loads(parent.stdout.readline())["watchdog"]
        pids = [pid for name in ("database", "worker") for pid in read_pids(tmp_path / name)]
        parent.send_signal(number)
        parent.wait()
    assert await_end([*pids, watchdog]) == []
    assert (tmp_path / "stopped").read_text().split() == ["worker", "database"], "the order holds even then"
    assert not (tmp_path / "away").exists()


def test_a_parent_that_fails_stops_what_it_started(tmp_path: Path) -> None:
    with start_parent(tmp_path, waits=False) as parent:
        told = parent.communicate()[1]
    assert "ValueError: a bug" in told
    assert find_processes(tmp_path) == []


def test_ctrl_c_in_the_terminal_reaches_only_the_parent(tmp_path: Path) -> None:
    with start_parent(tmp_path, waits=True) as parent:
        pids = [pid for name in ("database", "worker") for pid in read_pids(tmp_path / name)]
        os.killpg(parent.pid, signal.SIGINT)
        parent.wait()
    assert await_end(pids) == []
    assert (tmp_path / "stopped").read_text().split() == ["worker", "database"]


def test_a_process_that_only_waits_to_be_noticed_is_not_alive() -> None:
    with subprocess.Popen(["true"]) as ended:
        deadline = time.monotonic() + 10
        while is_alive(ended.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not is_alive(ended.pid)
        os.kill(ended.pid, 0)  # it is still there: nobody waited for it yet
    assert is_alive(os.getpid())


def test_a_log_that_grows_too_large_is_put_aside_while_it_is_written(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    with open_log(log) as file:
        file.truncate(MAX_LOG_BYTES + 1)
        trim_log(log)
        file.write(b"new\n")
    assert log.read_text() == "new\n"
    assert log.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "child.log.1").stat().st_size == MAX_LOG_BYTES + 1
    assert (tmp_path / "child.log.1").stat().st_mode & 0o777 == 0o600
    trim_log(log)
    assert log.read_text() == "new\n", "a small log stays as it is"


def test_the_last_lines_of_a_log_are_few_and_readable(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    assert read_last_lines(log) == ""
    log.write_bytes(b"\xff\n" + b"".join(b"line %d\n" % number for number in range(100_000)))
    assert read_last_lines(log, 2) == "line 99998\nline 99999"
