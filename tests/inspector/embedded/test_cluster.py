"""The embedded PostgreSQL: private, durable, gone with its parent, and back after any kill."""

import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from inspector.embedded import EmbeddedError
from inspector.embedded.binaries import ServerAccount
from inspector.embedded.cluster import choose_home, read_major
from tests.inspector.embedded.conftest import Served, find_processes, launch

pytestmark = pytest.mark.long(seconds=7, waits=True)

Serve = Callable[..., Served]


def write_row(url: str, text: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (text text)")
        connection.execute("INSERT INTO kept VALUES (%s)", [text])


def read_rows(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT text FROM kept ORDER BY text")]


def await_silence(folder: Path, seconds: float = 20.0) -> list[str]:
    deadline = time.monotonic() + seconds
    while (left := find_processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def test_a_second_start_keeps_the_data_and_stopping_leaves_nothing(serve: Serve, private_folder: Path) -> None:
    first = serve()
    write_row(first.url, "one")
    assert first.stop() == (0, "")
    assert await_silence(private_folder, 0) == []
    assert not (private_folder / "postgres" / "sockets").exists()
    second = serve()
    assert read_rows(second.url) == ["one"]
    assert second.stop() == (0, "")


def test_nothing_is_open_to_others(serve: Serve, private_folder: Path) -> None:
    served = serve()
    for path in [private_folder, *private_folder.rglob("*")]:
        facts = path.lstat()
        assert not facts.st_mode & 0o007, f"{path} is open to everybody"
        # As root, PostgreSQL's group may walk through the folders on the way to its data, and through nothing else.
        allowed = 0o010 if path in (private_folder, private_folder / "postgres") and os.geteuid() == 0 else 0
        assert not facts.st_mode & 0o070 & ~allowed or stat.S_ISLNK(facts.st_mode), f"{path} is open to its group"
    served.stop()


def test_the_server_listens_on_no_port_and_trusts_nobody(serve: Serve) -> None:
    served = serve()
    with psycopg.connect(served.url) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert connection.execute("SHOW data_checksums").fetchone() == ("on",)
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        assert connection.execute("SHOW autovacuum").fetchone() == ("on",)
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
        role = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        )
        assert role.fetchone() == (False, False, False)
    password = served.url.split("@")[0].rsplit(":", 1)[1]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(served.url.replace(password, "wrong"))
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(served.url.replace(f":{password}", ""))
    served.stop()


def test_text_is_sorted_and_folded_the_same_on_every_machine(serve: Serve) -> None:
    served = serve()
    with psycopg.connect(served.url) as connection:
        assert connection.execute(
            "SELECT array_agg(w ORDER BY w) FROM unnest(%s::text[]) w", [["b", "B", "a"]]
        ).fetchone() == (["B", "a", "b"],)
        if connection.info.server_version >= 170000:
            assert connection.execute("SELECT lower('ÄPFEL'), to_tsvector('simple', 'ÄPFEL')::text").fetchone() == (
                "äpfel",
                "'äpfel':1",
            )
    served.stop()


def test_a_killed_parent_leaves_no_server_behind(serve: Serve, private_folder: Path) -> None:
    first = serve()
    write_row(first.url, "one")
    first.process.kill()
    first.process.wait()
    # The next start does not have to be told to wait: the watchdog holds the lock until the server is down.
    second = serve()
    assert read_rows(second.url) == ["one"]
    second.process.kill()
    second.process.wait()
    assert await_silence(private_folder) == []
    assert not (private_folder / "postgres" / "data" / "postmaster.pid").exists(), "the server was not stopped in order"


def test_a_killed_server_is_started_again_and_recovers(serve: Serve) -> None:
    served = serve()
    write_row(served.url, "one")
    os.kill(served.pid, signal.SIGKILL)
    assert served.ask("check") == {"running": True}
    assert read_rows(served.url) == ["one"]
    status, told = served.stop()
    assert status == 0
    assert "The process `postgresql` was killed by signal 9" in told
    assert "started again" in told


def test_everything_killed_at_once_recovers_on_the_next_start(serve: Serve, private_folder: Path) -> None:
    first = serve()
    write_row(first.url, "one")
    for pid in (first.watchdog, first.pid, first.process.pid):
        os.kill(pid, signal.SIGKILL)
    first.process.wait()
    second = serve()
    assert read_rows(second.url) == ["one"]
    assert second.stop()[0] == 0
    assert await_silence(private_folder, 0) == []


def test_a_server_that_outlived_its_supervisor_and_watchdog_is_stopped_first(
    serve: Serve, private_folder: Path
) -> None:
    first = serve()
    write_row(first.url, "one")
    for pid in (first.watchdog, first.process.pid):
        os.kill(pid, signal.SIGKILL)
    first.process.wait()
    assert find_processes(private_folder), "the server should have been left behind"
    second = serve()
    assert second.pid != first.pid
    assert read_rows(second.url) == ["one"]
    assert second.stop()[0] == 0
    assert await_silence(private_folder, 0) == []


def test_a_stale_file_that_names_somebody_elses_process_does_not_hinder(serve: Serve, private_folder: Path) -> None:
    serve().stop()
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        file = private_folder / "postgres" / "data" / "postmaster.pid"
        file.write_text(f"{bystander.pid}\n{file.parent}\n")
        owner = file.parent.stat()
        os.chown(file, owner.st_uid, owner.st_gid)
        second = serve()
        assert second.stop()[0] == 0
        assert bystander.poll() is None, "a process that is not ours was ended"
    finally:
        bystander.kill()
        bystander.wait()


def test_a_cut_off_initdb_is_done_again(serve: Serve, private_folder: Path) -> None:
    serve().stop()
    postgres = private_folder / "postgres"
    (postgres / "data").rename(postgres / "data.partial")
    served = serve()
    assert served.stop()[0] == 0
    assert not (postgres / "data.partial").exists()


def test_a_long_path_gets_its_socket_elsewhere(serve: Serve, private_folder: Path, user: dict[str, object]) -> None:
    folder = private_folder / ("long" * 30)
    private_folder.mkdir(exist_ok=True)
    private_folder.chmod(0o711)
    served = serve(folder)
    link = folder / "postgres" / "sockets"
    elsewhere = link.readlink()
    assert elsewhere.stat().st_mode & 0o777 == 0o700
    write_row(served.url, "one")
    assert served.stop()[0] == 0
    assert not elsewhere.exists()
    assert not link.is_symlink()


def test_two_starts_do_not_collide(serve: Serve, user: dict[str, object], private_folder: Path) -> None:
    served = serve()
    second = launch(user, private_folder)
    told = second.communicate(timeout=120)[1]
    assert second.returncode == 1
    assert told.startswith(f"Another inspector (process {served.process.pid}")
    assert "INSPECTOR_STATE_DIR" in told
    write_row(served.url, "still here")
    assert served.stop()[0] == 0


def test_the_version_that_wrote_the_data_is_known(serve: Serve, private_folder: Path) -> None:
    assert read_major(private_folder / "postgres") is None
    serve().stop()
    assert read_major(private_folder / "postgres") == 18


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another account")
def test_a_folder_that_the_account_cannot_reach_is_passed_over(private_folder: Path) -> None:
    nobody = ServerAccount(name="nobody", user_id=65534, group_id=65534)
    closed, open_ = private_folder / "closed" / "state", private_folder / "open" / "state"
    for state in (closed, open_):
        state.mkdir(parents=True)
        state.chmod(0o700)
    private_folder.chmod(0o711)
    closed.parent.chmod(0o700)
    open_.parent.chmod(0o711)
    wanted = [closed / "postgres", open_.parent / "other" / "postgres"]
    assert choose_home(wanted, nobody, closed) == wanted[1]
    assert wanted[1].parent.stat().st_mode & 0o777 == 0o710
    assert closed.stat().st_mode & 0o777 == 0o700, "a folder that is not used is not opened"
    assert choose_home([open_ / "postgres"], nobody, open_) == open_ / "postgres"
    assert open_.stat().st_mode & 0o777 == 0o710
    assert choose_home(wanted, None, closed) == wanted[0]
    with pytest.raises(EmbeddedError, match=r"^The account `nobody`.*can reach none of .*closed.*DATABASE_URL\.$"):
        choose_home(wanted[:1], nobody, closed)
