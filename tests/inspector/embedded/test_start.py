"""What keeps `make run` from starting is one sentence, and nothing was started for it."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import psycopg.errors
import pytest

from inspector.embedded.cluster import Cluster, make_cluster
from inspector.embedded.processes import Supervisor
from inspector.embedded.state import open_state
from tests.inspector.embedded.conftest import find_processes
from tests.migrated import find_kept

PROJECT = Path(__file__).resolve().parents[3]


def start(folder: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PORT", "CELERY_BROKER_URL")}
    return subprocess.run(
        [sys.executable, "-m", "inspector.embedded.run", *arguments],
        cwd=PROJECT,
        env=environment | {"INSPECTOR_STATE_DIR": str(folder)} | changes,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@contextmanager
def run_cluster(folder: Path) -> Iterator[Cluster]:
    """The database of a stopped installation, for as long as the block lasts."""
    state = open_state(folder)
    with Supervisor(say=print) as supervisor:
        cluster = make_cluster(state)
        cluster.start(supervisor)
        yield cluster
        cluster.stop(supervisor)
    state.release()


def prove(folder: Path) -> str:
    """What `make run ARGS=--once` tells, by the environment that is here."""
    told = start(folder, "--once", "--port", "0", DATABASE_URL="")
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


def test_once_starts_every_process_and_proves_that_they_work(private_folder: Path) -> None:
    """What `make run ARGS=--once` does, by the environment that is here: the sample goes from the door to a page.

    It finds a migrated database, as any but the first start does; from nothing it begins in tests/test_run.py.
    """
    state = open_state(private_folder)
    cluster = make_cluster(state, is_throw_away=True)
    cluster.prepare()
    with Supervisor(say=print) as supervisor:
        find_kept(cluster).give(cluster, supervisor)
    state.release()
    told = prove(private_folder)
    assert "agree with samples/README.md" in told
    assert told.rstrip().endswith("Everything works.")
    assert find_processes(private_folder) == [], "something was left running"
    with run_cluster(private_folder) as cluster:
        with psycopg.connect(cluster.application_url, autocommit=True) as connection:
            assert connection.execute("SELECT count(*) > 0 FROM intake_record").fetchone() == (True,)
            # What the front says of a request reaches those behind it.
            addresses = connection.execute("SELECT DISTINCT remote_address FROM intake_delivery").fetchall()
            assert addresses == [("127.0.0.1",)]
            for change in ("UPDATE trail_deed SET code = ''", "DELETE FROM intake_record", "TRUNCATE audit_review"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(change)
        # As after a kill between migrating and admitting.
        with psycopg.connect(cluster.url, autocommit=True) as connection:
            connection.execute("REVOKE ALL ON keyring_periodkey FROM inspector_application")
    prove(private_folder)
    with run_cluster(private_folder) as cluster, psycopg.connect(cluster.application_url) as connection:
        assert connection.execute("SELECT count(*) FROM keyring_periodkey").fetchone() == (0,)


def test_a_database_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        port = nobody_listens.getsockname()[1]
        told = start(tmp_path, "--port", "0", DATABASE_URL=f"postgresql://a:secret@127.0.0.1:{port}/b")
    assert told.returncode == 1
    assert told.stderr.startswith("The database cannot be reached, check DATABASE_URL: ")
    assert told.stderr.count("\n") == 1
    assert "secret" not in told.stdout + told.stderr
    assert find_processes(tmp_path) == []


def test_a_taken_port_is_said_before_the_state_folder_is_touched(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        told = start(tmp_path / "state", "--port", str(other.getsockname()[1]))
    assert told.returncode == 1
    assert "is taken by another program: stop that one, or choose another port with" in told.stderr
    assert told.stderr.count("\n") == 1
    assert not (tmp_path / "state").exists()


def test_a_folder_in_use_is_said(tmp_path: Path) -> None:
    state = open_state(tmp_path / "state")
    told = start(tmp_path / "state", "--port", "0")
    state.release()
    assert told.returncode == 1
    assert told.stderr.startswith(f"Another inspector (process {os.getpid()}) is running on ")
    assert told.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("--port", "x"), ("--port", "70000"), ("--sideways",), ("extra",)])
def test_wrong_usage_is_told_with_the_right_one(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    told = start(tmp_path / "state", *arguments)
    assert told.returncode == 2
    assert "usage: make run ARGS='…'" in told.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root can mount a disk that is too small"
)
def test_a_full_disk_is_one_sentence(private_folder: Path) -> None:
    private_folder.mkdir()
    mount = 'mount -t tmpfs -o size=24m,mode=0711 none "$1" && shift && exec "$@"'
    told = subprocess.run(
        [
            *("unshare", "--mount", "/bin/sh", "-c", mount, "sh", str(private_folder), sys.executable),
            *("-m", "tests.inspector.embedded.server", str(private_folder / "state")),
        ],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "mount:" in told.stderr or "unshare:" in told.stderr:
        pytest.skip(f"nothing can be mounted here: {told.stderr.strip()}")
    assert told.returncode == 1
    assert told.stderr.startswith("There is no space left on the disk that holds ")
    assert told.stderr.count("\n") == 1
    assert find_processes(private_folder) == []
