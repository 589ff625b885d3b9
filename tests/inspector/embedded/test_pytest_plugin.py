"""The PostgreSQL of the tests: there when a test asks for it, never otherwise, and gone even after a kill."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.inspector.embedded.conftest import find_processes

PROJECT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.long(seconds=10, waits=True)
TESTS = """
import os, time
import pytest

@pytest.mark.django_db
def test_asks():
    from django.db import connection
    with connection.cursor() as cursor:
        for setting in ("fsync", "autovacuum"):
            cursor.execute(f"SHOW {setting}")
            assert cursor.fetchone() == ("off",)
    if os.environ.get("WAITS"):
        time.sleep(120)

def test_asks_not():
    assert os.environ["INSPECTOR_STATE_DIR"].startswith(os.environ["TMPDIR"])
"""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """A temporary folder of the inner run's own, which `nobody` can reach."""
    folder = Path(f"/tmp/p{os.getpid()}-{tmp_path.name[-12:]}")
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    (folder / "test_it.py").write_text(TESTS)
    return folder


# Only the server is looked at: plugins that take seconds to import are left out, and so are the product's tables.
QUICK = ("-p", "no:schemathesis", "-p", "no:hypothesispytest", "--ds", "tests.inspector.embedded.small_settings")


def start_pytest(temporary: Path, *arguments: str, **changes: str) -> subprocess.Popen[str]:
    theirs = {"DATABASE_URL", "INSPECTOR_STATE_DIR", "CELERY_BROKER_URL"}
    environment = {name: value for name, value in os.environ.items() if name not in theirs}
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(PROJECT)),
            *("-c", str(PROJECT / "pyproject.toml"), *QUICK, str(temporary / "test_it.py"), *arguments),
        ],
        cwd=PROJECT,
        env=environment | {"TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"} | changes,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run_pytest(temporary: Path, *arguments: str, **changes: str) -> tuple[int, str]:
    """An inner run from its beginning to its end: its exit status, and what it told."""
    with start_pytest(temporary, *arguments, **changes) as inner:
        told = inner.communicate()[0]
    return inner.returncode, told


def check_gone(temporary: Path, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (find_processes(temporary) or list(temporary.glob("inspector-tests-*"))):
        time.sleep(0.1)
    assert find_processes(temporary) == []
    assert list(temporary.glob("inspector-tests-*")) == []
    # Beside the tests there is at most the folder of pytest itself, in which workers meet.
    assert {path.name.partition("-of-")[0] for path in temporary.iterdir()} <= {"test_it.py", "pytest"}
    shutil.rmtree(temporary)


def test_it_is_there_for_who_asks_and_gone_at_the_end(temporary: Path) -> None:
    told = run_pytest(temporary)[1]
    assert "2 passed" in told, told
    check_gone(temporary, 0)


@pytest.mark.parametrize("arguments", [("-k", "asks_not"), ("--collect-only",), ("--help",)], ids=" ".join)
def test_it_is_not_started_for_who_does_not_ask(temporary: Path, arguments: tuple[str, ...]) -> None:
    # A server that cannot be made would be noticed: there are no programs to make it of.
    status, told = run_pytest(temporary, *arguments, "-p", "tests.inspector.embedded.no_server")
    assert status == 0, told
    check_gone(temporary, 0)


def test_that_check_can_fail(temporary: Path) -> None:
    status, told = run_pytest(temporary, "-p", "tests.inspector.embedded.no_server")
    assert status != 0
    assert "a server was started" in told
    check_gone(temporary)


def test_each_worker_has_a_server_of_its_own(temporary: Path) -> None:
    (temporary / "test_it.py").write_text(IN_WORKERS)
    told = run_pytest(temporary, "-n", "2", "--dist", "load")[1]
    assert "2 passed" in told, told
    check_gone(temporary, 0)


IN_WORKERS = """
import os, time
from pathlib import Path
import pytest

@pytest.mark.django_db
@pytest.mark.parametrize("other", [1, 0])
def test_asks(other, worker_id, tmp_path_factory):
    from django.db import connection
    found = connection.settings_dict
    # Each waits for the other, so that there are two.
    folder = tmp_path_factory.getbasetemp().parent
    (folder / f"{other}.part").write_text(found["HOST"])
    (folder / f"{other}.part").rename(folder / f"{other}")
    until = time.monotonic() + 100
    while not (folder / f"{1 - other}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert (folder / f"{1 - other}").read_text() != found["HOST"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == (f"test_inspector_{worker_id}",)
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "with workers"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_run_is_cut_off(
    temporary: Path, number: signal.Signals, workers: tuple[str, ...]
) -> None:
    inner = start_pytest(temporary, *workers, WAITS="1")
    deadline = time.monotonic() + 120
    while not any("postgres" in line and " -D " in line for line in find_processes(temporary)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    inner.send_signal(number)
    inner.communicate()
    check_gone(temporary)


def test_a_database_that_is_named_is_used_as_it_is(temporary: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    told = run_pytest(temporary, "-k", "asks_not", "-p", "tests.inspector.embedded.no_server", DATABASE_URL=url)[1]
    assert "1 passed" in told, told
    check_gone(temporary, 0)


LEAKING = """
import pytest

@pytest.mark.django_db
def test_leaves_a_session():
    import psycopg
    from django.db import connection
    wanted = connection.get_connection_params()
    kept = {name: wanted[name] for name in ("dbname", "user", "password", "host", "port")}
    pytest.kept = psycopg.connect(**kept)
"""


def test_a_session_that_somebody_left_does_not_spoil_the_end(temporary: Path) -> None:
    (temporary / "test_it.py").write_text(LEAKING)
    status, told = run_pytest(temporary, "-W", "ignore::ResourceWarning")
    assert "1 passed" in told, told
    assert status == 0, told
    check_gone(temporary, 0)
