"""`manage.py partition_tables`: the large tables in partitions by workspace, made while others write."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from bench.partitions import list_keys
from inspector import pipeline
from inspector.intake.models import Record
from inspector.ledger.sequencing import enter_new
from inspector.ledger.verifying import verify_ledger
from inspector.management.commands import migrate, partition_tables
from inspector.management.commands.doctor import check_partitions
from inspector.schema import AddIndexOnline, RemoveIndexOnline
from inspector.search.selectors import find_messages
from inspector.threads.models import Conversation, Message
from inspector.trail import partitions
from inspector.trail.partitions import LARGE, ask, count_partitions, widen
from inspector.trail.row_security import enter_workspace, renew_policy, tell_wall
from tests import migrated
from tests.throw_away import KEPT_FROM_TESTS

from ..backups.test_backups import empty_database, restore, spell_url
from ..conftest import Cast, deliver, resolve_all, step_out
from .test_roles import application, manage

__all__ = ["application", "empty_database"]
pytestmark = pytest.mark.django_db(transaction=True)
PROJECT = Path(__file__).parents[3]
# What is run once more on tables in partitions.
CORE = (
    *("trail/test_partitions.py::test_the_tables_are_as_the_run_asked", "trail/test_row_security.py"),
    *("api/test_ingest.py", "threads/test_blocks.py", "threads/test_settling.py", "threads/test_trees.py"),
    *("search/test_search.py", "search/test_newest.py", "audit/test_reviews.py", "audit/test_findings.py"),
    *("retention/test_erasing.py", "ledger/test_ledger.py", "keyring/test_opening.py", "intake/test_withdrawals.py"),
    *("pages/test_deliveries.py", "pages/test_conversations.py", "browsing/test_agents.py", "api/test_lists.py"),
)
# What is to be the same before and after, and what of it is said otherwise.
SHAPE = {
    "columns": "SELECT table_name, column_name, data_type, is_nullable, column_default, is_identity, ordinal_position"
    " FROM information_schema.columns WHERE table_schema = current_schema()",
    "indexes": "SELECT indexname, tablename FROM pg_indexes WHERE schemaname = current_schema()",
    "constraints": "SELECT conrelid::regclass::text, conname, contype, convalidated FROM pg_constraint"
    " WHERE connamespace = current_schema()::regnamespace AND conparentid = 0",
    "triggers": "SELECT tgrelid::regclass::text, tgenabled, pg_get_triggerdef(oid) FROM pg_trigger"
    " WHERE NOT tgisinternal AND tgparentid = 0",
    "rights": "SELECT relname, relrowsecurity, relacl::text FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')",
    "policies": "SELECT tablename, policyname, qual FROM pg_policies",
}


@pytest.fixture
def own_database(transactional_db: None) -> Iterator[None]:
    """Work in a copy of the database that is dropped afterwards: what is changed here is no test's to undo."""
    name, kept = f"parts_{uuid.uuid4().hex[:8]}", connection.settings_dict["NAME"]
    if count_partitions(LARGE[0]):
        pytest.skip("the tables are in partitions already")
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*map(sql.Identifier, (name, kept))))
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = kept
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def partition(count: int = 2) -> str:
    told = StringIO()
    call_command("partition_tables", "--partitions", str(count), stdout=told, stderr=told)
    return told.getvalue()


def test_the_tables_are_as_the_run_asked() -> None:
    assert {count_partitions(table) for table in LARGE} == {int(migrated.PARTITIONS or 0)}


@pytest.mark.parametrize(
    ("key", "wider"),
    [
        ("PRIMARY KEY (id)", "PRIMARY KEY (id, workspace_id)"),
        ("PRIMARY KEY (workspace_id, index)", "PRIMARY KEY (workspace_id, index)"),
        ("UNIQUE NULLS NOT DISTINCT (a, b)", "UNIQUE NULLS NOT DISTINCT (a, b, workspace_id)"),
        ("CREATE UNIQUE INDEX i ON s.t USING btree (a) WHERE (b > 1)",
         "CREATE UNIQUE INDEX i ON s.t USING btree (a, workspace_id) WHERE (b > 1)"),
        ("FOREIGN KEY (x_id) REFERENCES intake_record(id) ON DELETE CASCADE",
         "FOREIGN KEY (x_id, workspace_id) REFERENCES intake_record(id, workspace_id) ON DELETE CASCADE"),
        ("FOREIGN KEY (by_id) REFERENCES accounts_user(id)", "FOREIGN KEY (by_id) REFERENCES accounts_user(id)"),
    ],
)  # fmt: skip
def test_a_key_gets_the_workspace_at_its_end(key: str, wider: str) -> None:
    assert widen(key) == wider


@pytest.mark.usefixtures("own_database")
def test_each_key_holds_the_workspace_then_and_all_else_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: set(ask(statement)) for name, statement in SHAPE.items()}
    wall = tell_wall()
    if before["policies"]:
        # As it was before the table had the workspace of each row.
        whole = "SELECT FROM threads_conversation AS whole WHERE whole.id = conversation_id"
        ask(f"ALTER POLICY within ON threads_exchange USING (EXISTS ({whole}))")
    renew_policy("threads_exchange")
    partitions.make_table(LARGE[0], 2)
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "count_behind", lambda: 1)
        with pytest.raises(CommandError, match="being partitioned"):
            call_command("migrate", stdout=StringIO())
    assert "has begun and not ended" in "".join(check_partitions())
    with pytest.raises(CommandError, match="begun with 2 partitions"):
        partition(3)
    assert "10 tables are in 2 partitions each" in partition()
    assert {name: set(ask(statement)) for name, statement in SHAPE.items()} == before
    told = list_keys(ask)
    assert f"\n{told}\n" in (PROJECT / "docs" / "scaling.md").read_text(), f"docs/scaling.md has other keys:\n{told}"
    assert re.findall(r"`(\w+)` \| (.+) \|", told)[0] == ("intake_sighting", "foreign (delivery_id)")
    assert not {*re.findall(r"`(\w+)` \|", told)} & {*LARGE} - {"intake_sighting"}
    assert not [*check_partitions()]
    assert tell_wall() == wall
    build_and_remove_an_index()
    assert "10 tables are in 2 partitions each" in partition(), "it may be said again"


def build_and_remove_an_index() -> None:
    """As a later migration does."""
    before = MigrationLoader(connection).project_state()
    index = models.Index(fields=["workspace", "created_at"], name="of_a_test")
    adding, removing = AddIndexOnline("record", index), RemoveIndexOnline("record", "of_a_test")
    after = before.clone()
    adding.state_forwards("intake", after)
    for left_over in (False, True):
        if left_over:
            ask("CREATE INDEX of_a_test_1 ON public_partitions.intake_record_1 (id)")
        with connection.schema_editor(atomic=False) as editor:
            adding.database_forwards("intake", editor, before, after)
        valid = ask("SELECT indisvalid FROM pg_index WHERE indexrelid::regclass::text ~ 'of_a_test'")
        assert valid == [(True,)] * 3
        with connection.schema_editor(atomic=False) as editor:
            removing.database_forwards("intake", editor, after, before)
        assert ask("SELECT count(*) FROM pg_class WHERE relname ~ 'of_a_test'") == [(0,)]


def test_later_migrations_build_indexes_of_both_forms() -> None:
    first = {"threads": 46, "intake": 24, "audit": 4, "ledger": 2}
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        if app in first and int(name[:4]) >= first[app]:
            for each in migration.operations:
                assert not isinstance(each, migrations.AddIndex | migrations.RemoveIndex) or isinstance(
                    each, AddIndexOnline | RemoveIndexOnline
                ), f"{app}.{name}"


@pytest.mark.usefixtures("own_database")
def test_what_could_not_come_to_a_good_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (1, 257):
        with pytest.raises(CommandError, match="takes 2 to 256"):
            partition(count)
    with pytest.raises(CommandError, match=r"max_locks_per_transaction is \d+, and 256 partitions need 8192"):
        partition(256)
    with monkeypatch.context() as patch:
        patch.setattr(partition_tables, "count_behind", lambda: 1)
        with pytest.raises(CommandError, match="migrate first"):
            partition()
    with monkeypatch.context() as patch:
        patch.setattr(partitions, "find_differing", lambda: ["threads_task"])
        with pytest.raises(CommandError, match="Rows of threads_task differ"):
            partition()
    assert not count_partitions(LARGE[0])
    ask("DROP SCHEMA public_partitions CASCADE")
    assert ask("SELECT count(*) FROM pg_trigger WHERE tgname = 'mirrored'") == [(0,)], "it is taken back"


def write_lines(name: str, start: int, count: int, conversation: str) -> bytes:
    said = {"clowl": "0.2", "p": "REQ", "from": "oscar", "to": ["radar"], "cid": conversation}
    body = {"t": "search", "d": {"text": name}}
    lines = (
        {**said, "mid": f"{name}-{n}", "ts": 1795251600 + 2 * n, "body": body} for n in range(start, start + count)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def fill_again() -> None:
    """As the migrations do that gave smaller tables the workspace of each row."""
    for app, number in (("threads", "0045_workspace_filled"), ("audit", "0003_workspace_filled")):
        migration = import_module(f"inspector.{app}.migrations.{number}")
        tables = [f"{app}_{model}" for model in migration.FILLED]
        before = [ask(f"SELECT * FROM {table} AS row ORDER BY row") for table in tables]
        for table in tables:
            ask(f"ALTER TABLE {table} ALTER workspace_id DROP NOT NULL")
            ask(f"UPDATE {table} SET workspace_id = NULL")
        migration.fill(None, None)
        assert [ask(f"SELECT * FROM {table} AS row ORDER BY row") for table in tables] == before
        assert any(before) or app == "audit"


@pytest.mark.long(seconds=90)
def test_it_is_done_while_others_write_and_goes_on_where_it_broke_off(
    own_database: None,
    cast: Cast,
    empty_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = Cast(cast.stranger.workspace, cast.stranger, cast.stranger, cast.stranger, cast.owner)
    both = {"acorn": cast, "bramble": others}
    for name, each in both.items():
        deliver(each, write_lines(name, 0, 600, "long"))
    resolve_all()
    written = dict.fromkeys(both, 600)
    fill_again()
    is_over, failures = threading.Event(), list[Exception]()

    def write() -> None:
        try:
            while not is_over.is_set():
                for name, each in both.items():
                    # Most come into the long conversation, whose facts are then written anew.
                    where = "long" if written[name] % 3 else f"c{written[name]}"
                    deliver(each, write_lines(name, written[name], 5, where))
                    written[name] += 5
                    pipeline.run_due(seconds=2)
        except Exception as error:  # noqa: BLE001  # told below
            failures.append(error)
        finally:
            connection.close()

    copy_piece, seen = partitions.copy_piece, list[str]()

    def break_off(table: str, after: tuple[Any, ...]) -> tuple[Any, ...]:
        seen.append(table)
        if seen.count("threads_message") == 4:
            raise KeyboardInterrupt
        return copy_piece(table, after)

    monkeypatch.setattr(partitions, "PIECE", 100)
    thread = threading.Thread(target=write)
    thread.start()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(partitions, "copy_piece", break_off)
            with pytest.raises(KeyboardInterrupt):
                partition()
        assert not count_partitions("threads_message")
        then = dict(written)
        # Written to both tables meanwhile, by who knows nothing of it.
        while not failures and any(written[name] < then[name] + 10 for name in both):
            is_over.wait(0.1)
        assert "are in 2 partitions" in partition()
        then = dict(written)
        while not failures and any(written[name] < then[name] + 10 for name in both):
            is_over.wait(0.1)
    finally:
        is_over.set()
        thread.join()
    assert not failures, failures
    resolve_all()
    enter_new(at_once=True)
    for name, each in both.items():
        assert sorted(Message.objects.filter(workspace=each.workspace).values_list("native_id", flat=True)) == sorted(
            f"{name}-{n}" for n in range(written[name])
        )
        assert Record.objects.filter(workspace=each.workspace).count() == written[name]
        assert verify_ledger(each.workspace.pk).holds
        assert not [one for one in Conversation.objects.filter(workspace=each.workspace) if not one.is_settled]
    is_held = "holds each request" in tell_wall()
    for name, each in both.items():
        found = list(find_messages(workspace=each.workspace, query=name, limit=20))
        assert len(found) == 20
        assert {message.workspace_id for message in found} == {each.workspace.pk}
        # Where policies hold, the database shows a request no row of the other, also to a query that asks for all.
        enter_workspace(each.workspace.pk)
        assert Message.objects.count() == (written[name] if is_held else sum(written.values()))
        step_out()
    call_command("backup", str(tmp_path / "backup"))
    code, told = restore(tmp_path / "backup", empty_database, tmp_path / "state")
    assert code == 0, told
    with psycopg.connect(spell_url(empty_database)) as session:
        counted = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'threads_message'::regclass"
        assert session.execute(counted).fetchone() == (2,)


@pytest.mark.long(seconds=10)
@pytest.mark.usefixtures("own_database")
def test_the_migrations_before_it_may_be_taken_back_and_applied_again() -> None:
    shape = {name: statement for name, statement in SHAPE.items() if name != "columns"}  # These come in another order.
    before = {name: set(ask(statement)) for name, statement in shape.items()}
    call_command("migrate", "audit", "0001", stdout=StringIO())
    call_command("migrate", "threads", "0043", stdout=StringIO())
    call_command("migrate", stdout=StringIO())
    assert {name: set(ask(statement)) for name, statement in shape.items()} == before


@pytest.mark.long(seconds=15)
def test_the_applications_role_may_then_do_what_it_might(
    own_database: None, application: tuple[str, dict[str, str]]
) -> None:
    role, environment = application
    rights = (
        "SELECT table_name, column_name, privilege_type, grantee FROM information_schema.column_privileges"
        f" WHERE grantee ~ '^{role}' AND table_schema = current_schema() UNION ALL"
        " SELECT table_name, NULL, privilege_type, grantee FROM information_schema.table_privileges"
        f" WHERE grantee ~ '^{role}' AND table_schema = current_schema()"
    )
    assert manage(environment, "migrate")[0] == 0
    before = set(ask(rights))
    assert len(before) > 1000
    code, told = manage(environment, "partition_tables", "--partitions", "2")
    assert code == 0, told
    assert set(ask(rights)) == before
    with psycopg.connect(environment["DATABASE_URL"], autocommit=True) as session:
        assert session.execute("SELECT count(*) FROM threads_message").fetchone() == (0,)
        for attack in ("DELETE FROM ledger_ledgerentry", "SELECT FROM public_partitions.threads_message_0"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(attack)


@pytest.mark.long(seconds=400)
def test_the_core_of_the_suite_holds_on_partitions() -> None:
    asked = [str(PROJECT / "tests" / "inspector" / name) for name in CORE]
    kept = {name: value for name, value in os.environ.items() if name not in KEPT_FROM_TESTS}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "not long", *asked],
        cwd=PROJECT,
        env={**kept, "INSPECTOR_TEST_PARTITIONS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
