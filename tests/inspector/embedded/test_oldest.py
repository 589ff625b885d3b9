"""The oldest PostgreSQL that the product promises to run on, where one is installed: what it takes in and tells."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.embedded import NoPostgresError
from inspector.embedded.binaries import OLDEST_MAJOR, find_binaries, find_server_account
from inspector.embedded.cluster import Cluster
from inspector.embedded.processes import Supervisor
from tests.throw_away import KEPT_FROM_TESTS

PROJECT = Path(__file__).resolve().parents[3]
# What depends most on the ways of a server: COPY, locks, arrays, plans, and the words of the search.
TRIED = (
    "tests/inspector/intake",
    "tests/inspector/search",
    "tests/inspector/threads/test_purity.py",
    "tests/inspector/threads/test_traces.py",
    "tests/inspector/trail/test_partitions.py",
)
PATIENCE_S = 3000


@pytest.mark.long(seconds=250)
def test_what_is_taken_in_and_told_is_the_same_there(private_folder: Path) -> None:
    try:
        binaries = find_binaries(major=OLDEST_MAJOR)
    except NoPostgresError:
        pytest.skip(f"no PostgreSQL {OLDEST_MAJOR} is installed here")
    private_folder.mkdir(mode=0o711)
    cluster = Cluster(
        home=private_folder / "postgres",
        binaries=binaries,
        log=private_folder / "postgresql.log",
        account=find_server_account(),
        is_throw_away=True,
    )
    environment = {name: value for name, value in os.environ.items() if name not in KEPT_FROM_TESTS}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not long", *TRIED]
    with Supervisor(say=print) as supervisor:
        cluster.start(supervisor)
        told = subprocess.run(
            command,
            cwd=PROJECT,
            env=environment | {"DATABASE_URL": cluster.url},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        cluster.stop(supervisor)
    assert told.returncode == 0, told.stdout[-8000:] + told.stderr[-2000:]
    assert int(re.findall(r"(\d+) passed", told.stdout)[-1]) > 300
