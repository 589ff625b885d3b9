"""The state folder, the port, the terminal, the binaries: the small parts of `make run`."""

import argparse
import io
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.embedded import (
    EmbeddedError,
    NoPostgresError,
    binaries,
    first_steps,
    run,
    samples,
)
from inspector.embedded.binaries import Binaries, find_binaries
from inspector.embedded.run import Terminal
from inspector.embedded.state import find_state_root, open_state, write_private
from tests.each import for_each


def test_the_folder_is_private_whatever_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        state = open_state(tmp_path / "deep" / "state")
    finally:
        os.umask(before)
    for path in [state.root, *state.root.rglob("*")]:
        assert not path.stat().st_mode & 0o077, path
    write_private(state.database_url, "postgresql://secret")
    assert state.database_url.stat().st_mode & 0o777 == 0o600
    state.release()


def test_a_folder_of_ours_that_was_opened_is_closed_again(tmp_path: Path) -> None:
    open_state(tmp_path / "state").release()
    (tmp_path / "state").chmod(0o755)
    open_state(tmp_path / "state").release()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_a_folder_with_other_things_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    (folder / "letter").touch()
    with pytest.raises(EmbeddedError, match=r"is open to other users: close it with `chmod 700 .*INSPECTOR_STATE_DIR"):
        open_state(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert [path.name for path in folder.iterdir()] == ["letter"]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        EmbeddedError, match=r"^The state folder \S+ cannot be made \(.+\): set INSPECTOR_STATE_DIR to another"
    ):
        open_state(tmp_path / "file" / "state")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    os.chown(tmp_path / "state", 65534, 65534)
    with pytest.raises(EmbeddedError, match="belongs to another user"):
        open_state(tmp_path / "state")


def test_who_holds_the_folder_is_named(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    state.describe_holder(url="http://127.0.0.1:8000/")
    with pytest.raises(
        EmbeddedError, match=rf"process {os.getpid()}, serving http://127\.0\.0\.1:8000/\) is running on"
    ):
        open_state(tmp_path)
    state.release()
    open_state(tmp_path).release()


def test_the_folder_is_named_by_the_environment_or_lies_in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECTOR_STATE_DIR", "/somewhere/else")
    assert find_state_root() == Path("/somewhere/else")
    monkeypatch.delenv("INSPECTOR_STATE_DIR")
    assert find_state_root() == Path(__file__).resolve().parents[3] / ".state"


def test_samples_are_remembered_for_their_workspace_only(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    assert state.read_samples_loaded("w1") is None
    state.write_samples_loaded("w1", {"a.jsonl": "d1"})
    assert state.read_samples_loaded("w1") == {"a.jsonl": "d1"}
    assert state.read_samples_loaded("w2") is None
    state.release()


def test_a_taken_port_names_itself_and_the_way_out() -> None:
    with run.open_listener(0) as other:
        port = other.getsockname()[1]
        with pytest.raises(EmbeddedError, match=rf"^Port {port} on 127\.0\.0\.1 is taken.*PORT={port + 1} make run"):
            run.open_listener(port)


def test_a_port_that_is_not_allowed_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(socket.socket):
        def bind(self, address: object) -> None:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(run.socket, "socket", Refusing)
    with pytest.raises(EmbeddedError, match=r"^Port 80 on 127\.0\.0\.1 cannot be opened \(Permission denied\)"):
        run.open_listener(80)


@for_each(["", "x", "-1", "65536", "80.5", "８０８０８０"])
def test_what_is_no_port_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no port"):
        run.read_port(text)


def test_the_port_comes_from_the_option_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PORT", raising=False)
    assert run.read_options([]).port == 8000
    monkeypatch.setenv("PORT", "8010")
    assert run.read_options([]).port == 8010
    assert run.read_options(["--port", "8020"]).port == 8020


def test_the_newest_postgresql_of_the_wheel_is_taken() -> None:
    found = find_binaries()
    assert found.package is not None
    assert found.major == max(one.major for one in binaries._list_wheel())


def test_the_version_that_wrote_the_data_is_taken_even_if_it_is_older() -> None:
    for one in binaries._list_wheel():
        assert find_binaries(major=one.major).major == one.major


def test_an_installed_postgresql_serves_where_the_wheel_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for major in (14, 15, 17):
        folder = tmp_path / str(major) / "bin"
        folder.mkdir(parents=True)
        for name in ("initdb", "postgres"):
            (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {major}.3 (Some Distribution)'\n")
            (folder / name).chmod(0o755)
    monkeypatch.setattr(binaries, "_list_wheel", lambda: iter(()))
    monkeypatch.setattr(binaries, "INSTALLED", (f"{tmp_path}/*/bin",))
    monkeypatch.setattr(binaries.shutil, "which", lambda name: None)
    assert find_binaries() == Binaries(folder=tmp_path / "17" / "bin", version=(17, 3))
    assert find_binaries(major=15).version == (15, 3)
    with pytest.raises(
        NoPostgresError, match=r"^The data was written by PostgreSQL 14, and here is only PostgreSQL 15, 17"
    ):
        find_binaries(major=14)


def test_a_platform_without_postgresql_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries.platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(binaries, "_list_all", lambda: iter(()))
    with pytest.raises(
        NoPostgresError, match=r"^No PostgreSQL runs here: the wheel .* on riscv64.*15 or newer.*DATABASE_URL\.$"
    ):
        find_binaries()


def test_programs_of_another_processor_count_as_absent(tmp_path: Path) -> None:
    (tmp_path / "postgres").write_bytes(b"\x7fELF\x00\x00")
    (tmp_path / "postgres").chmod(0o755)
    assert binaries.read_version(str(tmp_path / "postgres")) is None


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    assert samples.make_printable("a\x1b[2Jb\nc\u202ed") == "a\ufffd[2Jb\ufffdc\ufffdd"
    assert len(samples.make_printable("x" * 10_000)) == samples.MAX_SHOWN


def test_a_reader_that_goes_away_stops_nothing() -> None:
    code = "from inspector.embedded.run import Terminal\nterminal = Terminal()\n"
    code += "for number in range(50000): terminal.say(str(number))\nterminal.complain('alive')"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as told:
        assert told.stdout is not None
        assert told.stderr is not None
        told.stdout.readline()
        told.stdout.close()
        assert told.stderr.read() == "alive\n"
    assert told.returncode == 0


def test_progress_in_a_file_is_not_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    terminal = Terminal()
    for number in range(100):
        terminal.show_progress(make_progress(read=number, is_read=False))
    terminal.show_progress(make_progress(read=100, is_read=True))
    assert out.getvalue().splitlines() == [
        "  received 100 · read 0 · conversations processed 1 of 2",
        "  received 100 · read 100 · conversations processed 1 of 2",
    ]


def make_progress(*, read: int, is_read: bool) -> samples.Progress:
    return {"received": 100, "read": read, "conversations": 2, "settled": 1, "is_read": is_read}


def test_the_key_of_make_run_does_not_last() -> None:
    assert first_steps.KEY_LASTS.total_seconds() < 24 * 3600
