"""`manage.py doctor`: what is wrong is said in sentences, each with what to do; where nothing is, it ends with 0."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from inspector.intake.models import Delivery, Job
from inspector.management.commands import doctor
from inspector.trail.guard import ask_guard

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db
PROJECT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, settings: Any) -> Path:
    """A state folder that is well."""
    settings.STATE_DIR = tmp_path / "state"
    settings.KEYRING_KEY_FILE = settings.STATE_DIR / "keyring_key"
    settings.STATE_DIR.mkdir(mode=0o700)
    settings.CELERY_BROKER_URL = ""
    return settings.STATE_DIR  # type: ignore[no-any-return]


def ask(*options: str) -> tuple[str, list[str]]:
    """How it ends, and what is wrong."""
    told, ended = StringIO(), ""
    try:
        call_command("doctor", *options, stdout=told)
    except CommandError as error:
        ended = str(error)
    return ended, [line.removeprefix("WRONG: ") for line in told.getvalue().splitlines() if line.startswith("WRONG")]


def test_where_nothing_is_wrong_it_says_what_it_looked_at(cast: Cast) -> None:
    deliver(cast, b"hello\n")
    resolve_all()
    told = StringIO()
    call_command("doctor", stdout=told)
    assert told.getvalue().splitlines() == [
        ask_guard().sentence,
        "Row-level security holds each request to its workspace.",
        "Nothing is wrong: state folder, broker, database, schema, clock, work and sessions.",
    ]


def test_through_the_state_folder_the_account_of_the_database_may_go(state: Path) -> None:
    state.chmod(0o710)
    assert ask() == ("", [])


def test_a_state_folder_that_others_can_read_or_that_is_not_ours(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "secret_key").touch(mode=0o644)
    state.chmod(0o755)
    ended, wrong = ask()
    assert ended == "2 things are wrong."
    assert wrong == [f"{path} can be read by others: chmod go-rwx {path}." for path in (state, state / "secret_key")]
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert all("and this is user 12345: chown it." in each for each in ask()[1])


def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MIN_FREE_BYTES", 1 << 60)
    (said,) = ask()[1]
    assert "MB left: make room" in said


@pytest.mark.parametrize(("content", "part"), [(b"short", "too short"), (b"\xff" * 40, "cannot be used")])
def test_a_garbled_key_of_the_keyring(state: Path, content: bytes, part: str) -> None:
    (state / "keyring_key").touch(mode=0o600)
    (state / "keyring_key").write_bytes(content)
    (said,) = ask()[1]
    assert part in said
    assert "short" not in said.replace("too short", "")


def test_a_broker_that_is_away(settings: Any) -> None:
    from celery import current_app

    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    before = current_app.conf.broker_write_url
    current_app.conf.broker_write_url = settings.CELERY_BROKER_URL
    try:
        (said,) = ask()[1]
    finally:
        current_app.conf.broker_write_url = before
    assert said.startswith("The broker does not answer (")
    assert "Nothing is lost meanwhile" in said


def test_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OperationalError("connection\nrefused")

    monkeypatch.setattr(connection, "ensure_connection", fail)
    assert ask()[1] == ["The database does not answer: connection refused. Start it, or correct DATABASE_URL."]


def test_a_schema_that_is_newer_or_behind() -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("trail", "9999_of_tomorrow")
    (said,) = ask()[1]
    assert said.startswith("The schema is newer than this code (trail.9999_of_tomorrow)")
    recorder.record_unapplied("trail", "9999_of_tomorrow")
    last = max(name for app, name in recorder.applied_migrations() if app == "api" or app == "axes")
    app = next(app for app, name in recorder.applied_migrations() if name == last and app in ("api", "axes"))
    recorder.record_unapplied(app, last)
    assert ask()[1] == ["1 migrations are not applied: run manage.py migrate."]


def test_a_clock_that_jumped(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(cast, b"hello\n")
    resolve_all()
    Delivery.objects.update(received_at=timezone.now() + timedelta(hours=3))
    (said,) = ask()[1]
    assert said.startswith("The clock was ahead: a delivery was received at ")
    Delivery.objects.update(received_at=timezone.now())
    Job.objects.update(state=Job.State.QUEUED, lease_token=None, due_at=timezone.now() + timedelta(days=9))
    (said,) = ask()[1]
    assert said.startswith("The clock was ahead: a job is due at ")
    Job.objects.all().delete()
    now = timezone.now()
    monkeypatch.setattr(doctor.timezone, "now", lambda: now - timedelta(minutes=2))
    (said,) = ask()[1]
    assert said.endswith("s behind of the database's: let both keep time by NTP.")


def test_work_that_nobody_does_and_work_that_was_given_up(cast: Cast) -> None:
    deliver(cast, b"hello\n")
    Job.objects.update(due_at=timezone.now() - timedelta(minutes=5))
    (said,) = ask()[1]
    assert said.endswith("s: start a worker, or more of them where some run.")
    Job.objects.update(state=Job.State.DEAD)
    (said,) = ask()[1]
    assert said == "1 jobs and records were given up: the page Dead letters says why, and tries them again."


def test_a_database_without_sessions_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MAX_SESSIONS_SHARE", 0.0)
    (said,) = ask()[1]
    assert "sessions of the database are in use" in said


def test_triggers_alone_are_enough_unless_it_is_asked_otherwise() -> None:
    assert ask() == ("", [])
    assert ask("--held") == ("One thing is wrong.", [ask_guard().sentence])
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE trail_deed DISABLE TRIGGER deed_kept")
    assert ask()[1] == [ask_guard().sentence]


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("secret_key", b"\xff\xfe", "a file in it is garbled"),
        ("database_url", b"\xff\xfe", "a file in it is garbled"),
        ("secret_key/", b"", "Is a directory"),
    ],
)
def test_a_start_with_a_garbled_state_is_refused_in_one_sentence(
    state: Path, name: str, content: bytes, part: str
) -> None:
    if name.endswith("/"):
        (state / name).mkdir()
    else:
        (state / name).write_bytes(content)
    inherited = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "SECRET_KEY")}
    done = subprocess.run(
        [sys.executable, "-c", "import inspector.settings"],
        env=inherited | {"INSPECTOR_STATE_DIR": str(state)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert part in done.stderr
