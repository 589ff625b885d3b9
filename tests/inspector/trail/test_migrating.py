"""`manage.py migrate` beside others: one at a time, and again where somebody holds what it needs."""

from __future__ import annotations

import threading
import time
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from inspector.intake.models import Job
from inspector.threads.models import Message
from inspector.trail.management.commands import migrate

from ..conftest import Cast, deliver
from ..intake.processes import worker
from ..intake.test_recovery import is_done, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def connect() -> psycopg.Connection[tuple[object, ...]]:
    """A session of somebody else."""
    info = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    return psycopg.connect(autocommit=True, **{name: info[name] for name in names if info.get(name)})


def test_one_migrates_while_the_other_waits() -> None:
    other = connect()
    other.execute("SELECT pg_advisory_lock(%s)", [migrate.LOCK])
    done: list[float] = []

    def run() -> None:
        call_command("migrate", "accounts", stdout=StringIO())
        done.append(time.monotonic())
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(1.2)
    assert not done, "it went on without the lock"
    released = time.monotonic()
    other.close()
    thread.join(30)
    assert done
    assert done[0] > released


def test_it_is_tried_again_where_somebody_holds_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []

    def change_table(*_: object, **__: object) -> None:
        tries.append(time.monotonic())
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE accounts_workspace IN ACCESS EXCLUSIVE MODE")

    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "300ms")
    monkeypatch.setattr(migrate.Migrate, "execute", change_table)
    other = connect()
    other.execute("BEGIN")
    other.execute("LOCK TABLE accounts_workspace IN ACCESS EXCLUSIVE MODE")
    threading.Timer(1.5, other.close).start()
    call_command("migrate", "accounts", stdout=StringIO(), stderr=StringIO())
    assert len(tries) > 1
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)


def test_what_is_left_of_an_interrupted_index_is_removed(cast: Cast) -> None:
    # Each workspace has a channel of the same name: building breaks off, and leaves an index that is not valid.
    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute("CREATE UNIQUE INDEX CONCURRENTLY left_over ON accounts_channel (name)")
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('left_over') IS NULL")
        assert cursor.fetchone() == (False,)
    migrate.drop_unfinished_indexes()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('left_over') IS NULL")
        assert cursor.fetchone() == (True,)


@pytest.mark.long(seconds=15)
def test_a_worker_goes_on_while_its_tables_are_changed(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = ("threads_message", "intake_record", "intake_delivery", "intake_job", "threads_conversation")
    found_busy: list[bool] = []

    def change_tables(*_: object, **__: object) -> None:
        found_busy.append(not is_done())
        # Jobs last, messages first: the other way round than a worker, which has its job when it writes messages.
        with transaction.atomic(), connection.cursor() as cursor:
            for table in tables:
                cursor.execute(f"ALTER TABLE {table} ADD COLUMN meanwhile integer NOT NULL DEFAULT 0")
                time.sleep(0.3)
                cursor.execute(f"ALTER TABLE {table} DROP COLUMN meanwhile")

    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "1s")
    monkeypatch.setattr(migrate.Migrate, "execute", change_tables)
    with worker(tmp_path, 2):
        for start in (0, 4_000, 8_000):
            lines = [b'{"raw": "number %d", "conversation": "c%d"}\n' % (start + n, n % 300) for n in range(4_000)]
            for first in range(0, len(lines), 1_000):
                deliver(cast, *lines[first : first + 1_000])
            wait_for(lambda start=start: Message.objects.count() > start, 60, tmp_path / "process.log")
            tries = len(found_busy)
            call_command("migrate", "accounts", stdout=StringIO(), stderr=StringIO())
            assert found_busy[tries], "the worker had nothing to do when the tables were changed"
        wait_for(is_done, 120, tmp_path / "process.log")
    assert Message.objects.count() == 12_000
    assert not Job.objects.exclude(state=Job.State.DONE).exists()
