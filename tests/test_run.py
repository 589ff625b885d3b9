"""`make run` and `make test` from a clean clone in an empty folder, as a newcomer has them: slow, and worth it."""

import http.client
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.visitor import Visitor, VisitorError
from tests.inspector.api.test_server import find_port
from tests.inspector.embedded.conftest import AS_NOBODY, find_processes, find_python_for_all

PROJECT = Path(__file__).resolve().parents[1]
PATIENCE_S = 600
pytestmark = pytest.mark.long(seconds=40, waits=True)


# What the tests set for themselves, and what an outer make tells an inner one.
NOT_HANDED_ON = {
    *("DATABASE_URL", "CELERY_BROKER_URL", "INSPECTOR_STATE_DIR", "PORT", "DJANGO_SETTINGS_MODULE", "SECRET_KEY"),
    *("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MAKEFILES", "ARGS", "PYTHON"),
}


def make_environment(**changes: str) -> dict[str, str]:
    """Ours, as a newcomer's shell would have it."""
    return {name: value for name, value in os.environ.items() if name not in NOT_HANDED_ON} | changes


@contextmanager
def clone_project() -> Iterator[Path]:
    """A clone of what is committed, in an empty folder that every user can walk to."""
    parent = Path(tempfile.mkdtemp(prefix="clone-", dir="/tmp"))
    try:
        parent.chmod(0o711)
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(parent / "project")], check=True)
        yield parent / "project"
    finally:
        shutil.rmtree(parent)


@pytest.fixture(scope="module")
def clone() -> Iterator[dict[str, Any]]:
    """How to run a program in a clone, as the user of the tests."""
    with clone_project() as folder:
        yield {"cwd": folder, "env": make_environment()}


@pytest.fixture
def clone_of_nobody() -> Iterator[dict[str, Any]]:
    """How to run a program in a clone as a normal user, where the tests run as root."""
    if os.geteuid() != 0:
        pytest.skip("the tests already run as a normal user")
    python = find_python_for_all("import sys, ensurepip; sys.exit(sys.version_info < (3, 11))", "/usr/bin/python3")
    if python is None:
        pytest.skip("`nobody` can run no Python 3.11 on this machine")
    with clone_project() as folder:
        home = folder.parent / "home"
        home.mkdir()
        for path in (home, folder, *folder.rglob("*")):
            os.chown(path, pwd.getpwnam("nobody").pw_uid, AS_NOBODY["group"], follow_symlinks=False)
        yield {
            "cwd": folder,
            "env": make_environment(HOME=str(home), PYTHON=python, PATH="/usr/local/bin:/usr/bin:/bin"),
            **AS_NOBODY,
        }


def make_run(clone: dict[str, Any], arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "run", f"ARGS={arguments}"],
        **clone,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def check_proof(clone: dict[str, Any]) -> None:
    told = make_run(clone, f"--once --port {find_port()}")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "Installing" in told.stdout
    assert " · read " in told.stdout
    assert "One of the conversations, in English:" in told.stdout
    assert re.search(r"^\d+ messages in \d+ conversations of \d+ agents, in \d+ dialects\.$", told.stdout, re.MULTILINE)
    assert "agree with samples/README.md" in told.stdout
    assert told.stdout.rstrip().endswith("Everything works.")
    assert find_processes(clone["cwd"]) == [], "something was left running"
    assert not (clone["cwd"] / ".state").stat().st_mode & 0o067
    changed = subprocess.run(["git", "status", "--short"], **clone, capture_output=True, text=True, check=True).stdout
    assert changed == "", "what is made is not ignored by git"


def test_once_proves_that_a_clean_clone_works(clone: dict[str, Any]) -> None:
    check_proof(clone)


def test_once_proves_it_to_a_normal_user_too(clone_of_nobody: dict[str, Any]) -> None:
    check_proof(clone_of_nobody)


def test_a_second_start_keeps_the_data_and_takes_seconds(clone: dict[str, Any]) -> None:
    started = time.monotonic()
    told = make_run(clone, f"--once --port {find_port()}")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "The data of the last start is here: " in told.stdout
    assert "Installing" not in told.stdout
    assert "Applying" not in told.stdout
    assert time.monotonic() - started < 60, "generous, because the machine may be busy: alone it takes about five"


def test_it_serves_until_ctrl_c_starts_again_what_falls_and_leaves_nothing(clone: dict[str, Any]) -> None:
    port = find_port()
    process, link = start_serving(clone, port)
    assert process.stdout is not None
    try:
        assert ask(port, link.partition("#")[0])[0] == 200, "opening the link spends it"
        assert Visitor(host="127.0.0.1", port=port, link=link).workspace == "/w/default"
        with pytest.raises(VisitorError, match="does not sign in any more"):
            Visitor(host="127.0.0.1", port=port, link=link)
        for name in ("web", "posting", "front", "worker"):
            os.kill(find_leader(name, clone["cwd"]), signal.SIGKILL)
        awaited = {f"The process `{name}` is started again." for name in ("web", "posting", "front", "worker")}
        told = ""
        while awaited:
            line = process.stdout.readline()
            assert line, told
            told += line
            awaited.discard(line.strip())
            if line.startswith("The process `web` was killed by signal 9"):
                # A visitor waits for the new server instead of being refused: the socket was never closed.
                assert ask(port, "/sign-in/")[0] == 200
        assert "The process `web` was killed by signal 9" in told
    finally:
        os.kill(json.loads((clone["cwd"] / ".state" / "lock").read_text())["pid"], signal.SIGINT)
        output, errors = process.communicate(timeout=90)
    assert "Stopped." in output, errors
    assert find_processes(clone["cwd"]) == []
    assert not (clone["cwd"] / ".state" / "database_url").exists()


def test_killed_in_the_middle_it_leaves_nothing_and_starts_again(clone: dict[str, Any]) -> None:
    process, _ = start_serving(clone, find_port())
    holder = json.loads((clone["cwd"] / ".state" / "lock").read_text())
    os.kill(holder["pid"], signal.SIGKILL)
    process.communicate(timeout=90)
    told = make_run(clone, f"--once --port {find_port()}")
    assert told.returncode == 0, told.stdout + told.stderr
    assert find_processes(clone["cwd"]) == []


def test_a_taken_port_is_one_sentence_before_anything_is_started(clone: dict[str, Any]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        told = make_run(clone, f"--port {port}")
    assert told.returncode != 0
    sentence = told.stderr.splitlines()[0]
    assert sentence.startswith(f"Port {port} on 127.0.0.1 is taken by another program: ")
    assert f"PORT={port + 1} make run" in sentence
    assert told.stdout == ""


def start_serving(clone: dict[str, Any], port: int) -> tuple[subprocess.Popen[str], str]:
    """Start in the background; answers the process and the path of the sign-in link, once that is printed."""
    process = subprocess.Popen(
        # As a script starts it in the background: with an interrupt that is ignored, until it is asked for again.
        ["/bin/sh", "-c", "trap '' INT; exec make run"],
        **{**clone, "env": clone["env"] | {"PORT": str(port)}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if found := re.match(rf"Open +http://127\.0\.0\.1:{port}(/\S+)$", line):
            return process, found[1]
    raise AssertionError("".join(seen) + process.communicate()[1])


def ask(port: int, path: str) -> tuple[int, str]:
    """One request: its status and the cookies it sets."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, " ".join(response.headers.get_all("Set-Cookie") or [])


def find_leader(name: str, folder: Path) -> int:
    """The process that the supervisor started: the one of its kind that leads its session."""
    words = {"web": "/web --worker-class", "posting": "/posting --worker-class", "front": "inspector.front"}
    word = {**words, "worker": "django work"}[name]
    for process in psutil.process_iter(["pid", "cmdline", "environ"]):
        is_leader = os.getsid(process.pid) == process.pid
        is_ours = (process.info["environ"] or {}).get("INSPECTOR_STATE_DIR", "").startswith(str(folder))
        if is_leader and is_ours and word in " ".join(process.info["cmdline"]):
            return process.pid
    raise AssertionError(f"there is no {name} process")
