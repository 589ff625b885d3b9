"""`manage.py import_log`: what it finds, what it says, how it ends, and how it goes on after a kill."""

from __future__ import annotations

import gzip
import io
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.core.management import CommandError, call_command
from django.db import connection
from psycopg.conninfo import make_conninfo

from inspector.accounts.models import Channel, Workspace
from inspector.accounts.services import create_workspace
from inspector.intake import imports
from inspector.intake.framing import WORDS
from inspector.intake.models import Delivery, Door, Record, Sighting
from inspector.intake.selectors import read_source, rebuild_stream
from inspector.management.commands.import_log import Progress, tell_bytes, tell_seconds
from inspector.trail.models import Deed

from ..conftest import Cast, make_user

PROJECT = Path(__file__).resolve().parents[3]


def run(*words: object, **options: Any) -> str:
    """What the command prints on its standard output."""
    out = io.StringIO()
    call_command("import_log", *map(str, words), stdout=out, stderr=options.pop("stderr", io.StringIO()), **options)
    return out.getvalue()


def fail(*words: object, **options: Any) -> tuple[int, str, str]:
    """The exit status, the last sentence, and what was written to standard error before it."""
    err = io.StringIO()
    with pytest.raises(CommandError) as raised:
        run(*words, stderr=err, **options)
    return raised.value.returncode, str(raised.value), err.getvalue()


@pytest.fixture
def only(db: None) -> Workspace:
    return create_workspace(slug="acme", name="Acme", owner=make_user("olivia"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "logs"
    (home / "b").mkdir(parents=True)
    (home / ".hidden").mkdir()
    (home / "c.log").write_bytes(b"three\nfour\n")
    (home / "a.jsonl").write_bytes(b'{"raw": "one", "id": "1"}\n')
    (home / "b" / "two.log.gz").write_bytes(gzip.compress(b"two\n"))
    (home / "b" / "five.log.zst").write_bytes(zstandard.ZstdCompressor().compress(b"five\n"))
    (home / ".hidden" / "x.log").write_bytes(b"hidden\n")
    (home / ".y.log").write_bytes(b"hidden\n")
    return home


def names() -> list[str]:
    return list(Delivery.objects.order_by("received_at", "pk").values_list("file_name", flat=True))


def test_a_folder_is_taken_in_to_its_depth_and_in_order(only: Workspace, folder: Path) -> None:
    said = run(folder)
    assert names() == ["logs/a.jsonl", "logs/c.log", "logs/b/five.log.zst", "logs/b/two.log.gz"]
    assert Record.objects.count() == 5
    assert "4 files: 5 received = 5 stored + 0 duplicate + 0 quarantined" in said


def test_files_patterns_and_folders_may_be_mixed_and_each_file_is_taken_once(only: Workspace, folder: Path) -> None:
    run(folder / "c.log", f"{folder}/**/*.log*", folder)
    assert names() == ["c.log", "five.log.zst", "two.log.gz", "logs/a.jsonl"]


def test_an_archive_becomes_a_delivery_for_each_file(only: Workspace, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "night.zip", "w") as archive:
        archive.writestr("a.log", b"one\n")
        archive.writestr("b/c.log", b"two\nthree\n")
    said = run(tmp_path / "night.zip")
    assert names() == ["night.zip/a.log", "night.zip/b/c.log"]
    assert "night.zip/b/c.log: 2 received = 2 stored" in said
    assert {one.options["archive"]["name"] for one in Delivery.objects.all()} == {"night.zip"}


def test_running_it_again_adds_nothing_and_says_what_was_there(only: Workspace, folder: Path) -> None:
    run(folder)
    assert "4 files: 5 received = 0 stored + 5 duplicate + 0 quarantined" in run(folder)
    with (folder / "c.log").open("ab") as file:
        file.write(b"six\n")
    assert "c.log: 3 received = 1 stored + 2 duplicate + 0 quarantined" in run(folder / "c.log")


def test_a_packed_file_is_named_sized_and_digested_as_it_is(only: Workspace, tmp_path: Path) -> None:
    packed = gzip.compress(b"one\ntwo\n")
    (tmp_path / "a.log.gz").write_bytes(packed)
    run(tmp_path / "a.log.gz")
    delivery = Delivery.objects.get()
    assert (delivery.size_bytes, delivery.framed_bytes, delivery.state) == (len(packed), len(packed), "framed")
    assert b"".join(rebuild_stream(delivery=delivery)) == b"one\ntwo\n"
    deed = Deed.objects.get(code="delivery.imported")
    assert (deed.actor_name, deed.object_id) == ("The operator", str(delivery.pk))
    assert (deed.details["sha256"], deed.details["bytes"]) == (sha256(packed).hexdigest(), len(packed))


def test_a_cut_file_is_reported_and_the_others_are_taken_in(only: Workspace, folder: Path) -> None:
    log = b"".join(os.urandom(20).hex().encode() + b"\n" for _ in range(9000))
    packed = gzip.compress(log)[:-5000]
    (folder / "b" / "cut.gz").write_bytes(packed)
    status, sentence, err = fail(folder)
    assert (status, sentence) == (1, "not everything could be read: 1 failed")
    assert "logs/b/cut.gz: the stream broke off: the gzip is cut short" in err
    delivery = Delivery.objects.get(state=Delivery.State.BROKEN)
    assert delivery.stored > 5000
    assert Delivery.objects.filter(state=Delivery.State.FRAMED).count() == 4
    last = Sighting.objects.filter(delivery=delivery).order_by("-index")[0]
    assert b"".join(read_source(record=last.record)) == packed


def test_a_hostile_archive_is_refused_and_the_others_are_taken_in(only: Workspace, folder: Path) -> None:
    with zipfile.ZipFile(folder / "b.zip", "w") as archive:
        archive.writestr("fine.log", b"fine\n")
        archive.writestr("../evil.log", b"evil\n")
    with zipfile.ZipFile(folder / "d.zip", "w") as archive:
        archive.writestr("inner.gz", gzip.compress(b"x\n"))
    (folder / "e.zip").write_bytes((folder / "d.zip").read_bytes()[:-10])
    status, sentence, err = fail(folder)
    assert (status, sentence) == (1, "not everything could be read: 3 failed")
    assert "logs/b.zip: the zip's entry '../evil.log' has a path that leads out of the archive" in err
    assert "logs/d.zip/inner.gz: the stream broke off: the file is a gzip within a zip" in err
    assert "logs/e.zip: the stream broke off: the zip has no readable directory" in err
    assert not [name for name in names() if name.startswith("logs/b.zip")]
    assert Record.objects.filter(is_quarantined=False).count() == 5


def test_a_file_over_the_limit_is_refused(only: Workspace, folder: Path, settings: Any) -> None:
    settings.LIMITS = {**settings.LIMITS, "delivery_bytes": 10}
    status, _, err = fail(folder / "c.log")
    assert (status, "it has 11 bytes; a delivery has at most 10" in err) == (1, True)
    assert not Delivery.objects.exists()


def test_what_is_not_there_is_named_and_nothing_is_done(only: Workspace, folder: Path) -> None:
    status, sentence, _ = fail(folder / "c.log", folder / "no.log", f"{folder}/*.xyz")
    assert status == 2
    assert sentence == f"no such file: {folder}/no.log, {folder}/*.xyz"
    assert not Delivery.objects.exists()


def test_a_choice_of_workspace_is_asked_for(cast: Cast, folder: Path) -> None:
    assert fail(folder)[:2] == (2, "there are several workspaces: name one with --workspace (acme, other)")
    assert fail(folder, workspace="nope")[:2] == (2, "there is no workspace 'nope'")
    run(folder, workspace="other", channel="lab")
    assert {(one.workspace.slug, one.channel.name) for one in Delivery.objects.all()} == {("other", "lab")}


def test_an_odd_channel_is_explained(only: Workspace, folder: Path) -> None:
    status, sentence, _ = fail(folder, channel="x" * 65)
    assert (status, "printable characters" in sentence) == (2, True)


def test_prefixes_can_be_left_alone(only: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"2026-11-21T09:00:00Z ada: hello there\n")
    run(tmp_path / "a.log", no_prefixes=True)
    run(tmp_path / "a.log")
    assert sorted(record.wire_text for record in Record.objects.all()) == [
        "2026-11-21T09:00:00Z ada: hello there",
        "hello there",
    ]


def test_a_dry_run_tells_and_stores_nothing(only: Workspace, folder: Path) -> None:
    (folder / "bad.log").write_bytes(b"fine\n\xff\xfe\n" + b"2026-11-21T09:00:00Z again\n" * 2)
    run(folder / "c.log")
    before = (Delivery.objects.count(), Record.objects.count(), Channel.objects.count())
    said = run(folder, dry_run=True)
    assert "logs/c.log: would take in 2 records: 0 new, 2 there already, 0 quarantined" in said
    assert "logs/bad.log: would take in 4 records: 3 new, 0 there already, 1 quarantined" in said
    assert "logs/b/two.log.gz: would take in 1 records: 1 new" in said
    run(folder, channel="another", dry_run=True)
    assert (Delivery.objects.count(), Record.objects.count(), Channel.objects.count()) == before
    run(folder)
    assert "logs/bad.log: would take in 4 records: 0 new, 3 there already, 1 quarantined" in run(folder, dry_run=True)


def test_a_dry_run_on_an_empty_installation_makes_no_workspace(db: None, folder: Path) -> None:
    assert "would take in 2 records: 2 new" in run(folder / "c.log", dry_run=True)
    assert not Workspace.objects.exists()


def test_quiet_means_quiet(only: Workspace, folder: Path) -> None:
    err = io.StringIO()
    assert run(folder, verbosity=0, stderr=err) == err.getvalue() == ""


# ---------------------------------------------------------------- progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_terminal_gets_a_bar_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    screen, clock = io.StringIO(), Clock()
    progress = Progress(screen, total_bytes=4_000_000, is_terminal=True, clock=clock)
    progress.show("a.log", 1, 1)
    assert screen.getvalue() == ""
    clock.now += 10
    progress.show("a.log", 1_000_000, 20_000)
    bar = "\r[#####...............] 25%  1.0 MB of 4.0 MB  20,000 records  2,000 records/s  0:30 left  a.log"
    assert screen.getvalue() == bar
    progress.end_file(2_000_000, 40_000)
    assert screen.getvalue() == bar + "\r" + " " * (len(bar) - 1) + "\r"
    clock.now += 10
    progress.show("b.log", 1_000_000, 20_000)
    assert "75%  3.0 MB of 4.0 MB  60,000 records  3,000 records/s  0:07 left  b.log" in screen.getvalue()
    assert "\n" not in screen.getvalue()


def test_elsewhere_a_line_comes_now_and_then() -> None:
    screen, clock = io.StringIO(), Clock()
    progress = Progress(screen, total_bytes=100, clock=clock)
    for _ in range(25):
        clock.now += 1
        progress.show("a.log", 50, 10)
    progress.end_file(100, 20)
    assert screen.getvalue().count("\n") == 2
    assert re.fullmatch(
        r"(50%  50 bytes of 100 bytes  10 records  \d records/s  0:\d\d left  a.log\n){2}", screen.getvalue()
    )


def test_sizes_and_times_are_told_in_words() -> None:
    assert [tell_bytes(size) for size in (0, 999, 1000, 2_500_000, 3e9)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "2.5 MB",
        "3.00 GB",
    ]
    assert [tell_seconds(time) for time in (0, 59.6, 3599, 3661)] == ["0:00", "1:00", "59:59", "1:01:01"]


def test_the_command_shows_its_progress(only: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.management.commands.import_log.LINE_SECONDS", -1.0)
    err = io.StringIO()
    run(folder / "c.log", stderr=err)
    assert "100%  11 bytes of 11 bytes" in err.getvalue()


# ---------------------------------------------------------------- stopped


def test_an_interrupt_says_how_to_go_on(only: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take = imports.take_stream

    def interrupt(*, delivery: Delivery, **rest: Any) -> Delivery:
        if delivery.file_name == "logs/c.log":
            raise KeyboardInterrupt
        return take(delivery=delivery, **rest)

    monkeypatch.setattr(imports, "take_stream", interrupt)
    status, sentence, _ = fail(folder)
    assert (status, "run the same command again" in sentence) == (130, True)
    monkeypatch.undo()
    said = run(folder)
    assert re.search(r"logs/c\.log: the import of \S+ \S+ was stopped after 0 records", said)
    assert "5 received = 4 stored + 1 duplicate + 0 quarantined" in said
    stopped = Delivery.objects.get(state=Delivery.State.BROKEN)
    assert stopped.failure == WORDS[Door.IMPORT]


@pytest.mark.long(seconds=16, waits=True)
@pytest.mark.django_db(transaction=True)
def test_killed_and_run_again_it_adds_only_what_is_missing(cast: Cast, tmp_path: Path) -> None:
    lines = 60_000
    path = tmp_path / "large.log.gz"
    path.write_bytes(gzip.compress(b"".join(f"line {number} of a long night\n".encode() for number in range(lines))))
    info = connection.get_connection_params()
    parts = {name: info[name] for name in ("dbname", "user", "password", "host", "port") if info.get(name)}
    command = [sys.executable, "manage.py", "import_log", str(path), "--workspace", "acme"]
    environment = os.environ | {"DATABASE_URL": make_conninfo(**parts), "INSPECTOR_STATE_DIR": str(tmp_path)}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    with start() as process:
        deadline = time.monotonic() + 60
        while Record.objects.count() < 3000:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    killed = Delivery.objects.get()
    assert killed.state == Delivery.State.RECEIVING
    assert 3000 <= killed.received == Record.objects.count() < lines
    with start() as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert f"was stopped after {killed.received:,} records, which are there already" in out
    missing = lines - killed.received
    assert f"60,000 received = {missing:,} stored + {killed.received:,} duplicate + 0 quarantined" in out
    assert Record.objects.count() == lines
    killed.refresh_from_db()
    assert (killed.state, killed.failure) == (Delivery.State.BROKEN, WORDS[Door.IMPORT])


@pytest.mark.django_db(transaction=True)
def test_an_import_that_is_still_running_is_left_alone(cast: Cast, folder: Path) -> None:
    from inspector.intake.imports import end_stopped, import_part, open_source
    from inspector.intake.liveness import key_of

    seen: list[list[Delivery]] = []
    other = connection.copy()

    def look(delivery: Delivery, taken: int) -> None:
        # Another process has a connection of its own.
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [key_of(delivery.pk)])
            seen.append(cursor.fetchone())

    with open_source(imports.Source(folder / "c.log", "c.log")) as (part,):
        import_part(part=part, workspace=cast.workspace, channel=cast.channel, watch=look)
    other.close()
    assert seen == [(False,)]
    assert end_stopped(workspace=cast.workspace) == []


def test_it_says_what_is_likely_not_as_it_was_meant(only: Workspace, tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text('{"raw": "a", "sender": "x"}\n' * 3 + '{"raw": "b", "at": "soon"}\n' + "{'raw': 'c'}\n")
    told = (
        "5 warnings, of these kinds:",
        "line 1: `sender` is no name of the envelope: it is kept, and not read; write `from` instead of `sender`",
        "line 4: `at` is not understood as a time",
        "line 5: the object has single quotes",
    )
    for words in (run(log, "--dry-run"), run(log)):
        assert [words.count(line) for line in told] == [1, 1, 1, 1]
    assert "warning" not in run(log.rename(tmp_path / "b.jsonl"), "--verbosity", "0")
