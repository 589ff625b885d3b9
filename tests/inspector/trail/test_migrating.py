"""`manage.py migrate` beside others: one at a time, and again where somebody holds what it needs."""

from __future__ import annotations

import re
import threading
import time
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.migrations import RunPython
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from inspector.intake.models import Job
from inspector.management.commands import migrate
from inspector.threads.models import Message

from ..conftest import Cast, deliver
from ..intake.processes import worker
from ..intake.test_recovery import is_done, wait_for

pytestmark = pytest.mark.django_db(transaction=True)
# What rewrites a table that was there before, or keeps its writers waiting while it reads all of it: by the name of the
# table. What is valid at once (NOT VALID, USING INDEX), or builds beside others (CONCURRENTLY), does neither.
HEAVY = {
    "builds an index": r"CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY)(?:\S+ )*?ON \"?(\w+)",
    "rewrites": r"ALTER TABLE \"?(\w+)\"? .*ALTER COLUMN \S+ (?:SET DATA )?TYPE ",
    "looks at every row": r"ALTER TABLE \"?(\w+)\"? (?!.*(?:NOT VALID|USING INDEX)).*(?:ADD CONSTRAINT|SET NOT NULL)",
    "changes rows": r"(?:^|; ?)(?:UPDATE|DELETE FROM) \"?(\w+)",
}


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
    thread.join(120)
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


def find_heavy(statements: list[str]) -> set[str]:
    """What these statements of a migration do to tables that it does not make itself."""
    # What stands in a function is not run.
    flat = [re.sub(r"AS \$\$.*?\$\$", "", " ".join(each.split())) for each in statements if not each.startswith("--")]
    made = {name for each in flat for name in re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?\"?(\w+)", each)}
    found = ((word, match[1]) for word, rule in HEAVY.items() for each in flat for match in re.finditer(rule, each))
    return {f"{word}: {table}" for word, table in found if table not in made}


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ('CREATE INDEX "a" ON "t" ("b")', {"builds an index: t"}),
        ('CREATE INDEX CONCURRENTLY "a" ON "t" ("b")', set()),
        ('ALTER TABLE "t" ADD COLUMN "b" boolean DEFAULT false NOT NULL', set()),
        ('ALTER TABLE "t" ALTER COLUMN "b" TYPE integer', {"rewrites: t"}),
        ('ALTER TABLE "t" ALTER COLUMN "b" SET NOT NULL', {"looks at every row: t"}),
        ('ALTER TABLE "t" ADD CONSTRAINT "c" CHECK (b > 0)', {"looks at every row: t"}),
        ('ALTER TABLE "t" ADD CONSTRAINT "c" CHECK (b > 0) NOT VALID', set()),
        ("UPDATE t SET b = 1", {"changes rows: t"}),
        ("CREATE FUNCTION f() RETURNS trigger AS $$ BEGIN UPDATE t SET b = 1; END $$", set()),
    ],
)
def test_what_a_table_of_a_million_rows_cannot_take_is_seen(statement: str, found: set[str]) -> None:
    assert find_heavy([statement]) == found
    assert find_heavy(['CREATE TABLE "t" ("b" integer)', statement]) == set()


@pytest.mark.long(seconds=10)
def test_no_migration_holds_up_a_table_of_a_million_rows() -> None:
    graph = MigrationLoader(connection).graph
    nodes = dict.fromkeys(node for leaf in sorted(graph.leaf_nodes()) for node in graph.forwards_plan(leaf))
    state, heavy, code = ProjectState(), {}, set()
    for app, name in nodes:
        with connection.schema_editor(collect_sql=True, atomic=False) as editor:
            migration = graph.nodes[app, name]
            state = migration.apply(state, editor, collect_sql=True)
            # Else what a baseline replaces is recorded behind its transaction, and a kill in between leaves a half.
            is_own = migration.__module__.startswith("inspector.")
            assert not (is_own and migration.replaces and editor.deferred_sql), name
        if is_own:
            heavy[f"{app}.{name}"] = find_heavy(editor.collected_sql)
            # Code that goes over rows goes over them piece by piece, each in a transaction of its own.
            if migration.atomic and any(isinstance(each, RunPython) for each in migration.operations):
                code.add(f"{app}.{name}")
    assert {name: found for name, found in heavy.items() if found} == {}
    assert code == set()
