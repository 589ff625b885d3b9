"""`manage.py migrate` beside others: one at a time, and again where somebody holds what it needs."""

from __future__ import annotations

import threading
import time
from io import StringIO

import psycopg
import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from inspector.trail.management.commands import migrate

from ..conftest import Cast

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
