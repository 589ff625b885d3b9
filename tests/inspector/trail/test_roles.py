"""The trail is held against the application's own role, and the product says so because the database does."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from inspector.accounts.models import Membership, Workspace
from inspector.accounts.services import create_workspace
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.audit.reviews.verdicts import claim, judge_item
from inspector.erasing import Target, ask_to_erase
from inspector.threads.models import Conversation, Message
from inspector.trail.guard import ask_guard
from inspector.trail.roles import RolesError, admit_application
from inspector.trail.row_security import raise_wall

from ..conftest import Cast, deliver, make_user, resolve_all

PROJECT = Path(__file__).parents[3]


def test_where_the_application_owns_its_tables_it_is_told(db: None) -> None:
    guard = ask_guard()
    assert not guard.missing
    assert not guard.is_held
    assert "the application could switch them off" in guard.sentence
    assert any("switch the triggers off" in way for way in guard.ways)


@pytest.mark.parametrize(
    "spoil",
    [
        "ALTER TABLE trail_deed DISABLE TRIGGER deed_kept",
        "ALTER TABLE trail_deed ENABLE TRIGGER deed_kept",
        "DROP TRIGGER deed_kept ON trail_deed",
        "CREATE OR REPLACE TRIGGER deed_kept BEFORE DELETE ON trail_deed FOR EACH ROW EXECUTE FUNCTION number_deed()",
    ],
)
def test_a_trigger_that_does_not_stand_is_told_first(db: None, spoil: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(spoil)
    guard = ask_guard()
    assert guard.missing == ("deed_kept",)
    assert "could be changed" in guard.sentence


def test_the_owner_does_not_admit_itself(db: None) -> None:
    with pytest.raises(RolesError, match="same role"):
        admit_application(role=connection.settings_dict["USER"], password="x")


def spell_url(user: str, password: str) -> str:
    at = connection.settings_dict
    query = urlencode(
        {"host": at["HOST"], "port": at["PORT"] or "5432", "user": user, "password": password}, quote_via=quote
    )
    return f"postgresql:///{at['NAME']}?{query}"


@pytest.fixture
def application(transactional_db: None) -> Iterator[tuple[str, dict[str, str]]]:
    """The name of a role that does not exist yet, and the environment of a process that works as it."""
    role, at = f"app_{uuid.uuid4().hex[:8]}", connection.settings_dict
    environment = {**os.environ, "DATABASE_URL": spell_url(role, "pass word"), "PYTHONPATH": str(PROJECT / "codecs")}
    environment["DATABASE_OWNER_URL"] = spell_url(at["USER"], at["PASSWORD"])
    yield role, environment
    with connection.cursor() as cursor:
        # An owner that is no superuser may end the role's processes only as a member of it.
        cursor.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role])
        cursor.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))
    # Migrating for that role may have taken the policies away, which other tests of this database look for.
    raise_wall(at["USER"])


def manage(environment: dict[str, str], *words: str) -> tuple[int, str]:
    told = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return told.returncode, told.stdout + told.stderr


ATTACKS = {
    "change": "UPDATE trail_deed SET told = 'nothing'",
    "change one column": "UPDATE trail_deed SET about = NULL WHERE sequence = 1",
    "delete": "DELETE FROM trail_deed",
    "empty": "TRUNCATE trail_deed",
    "empty by what it belongs to": "TRUNCATE accounts_workspace CASCADE",
    "switch the triggers off": "ALTER TABLE trail_deed DISABLE TRIGGER ALL",
    "drop a trigger": "DROP TRIGGER deed_kept ON trail_deed",
    "add a trigger": "CREATE TRIGGER aaa BEFORE INSERT ON trail_deed FOR EACH ROW EXECUTE FUNCTION keep_deeds()",
    "turn the function": "CREATE OR REPLACE FUNCTION keep_deeds() RETURNS trigger LANGUAGE sql AS 'SELECT 1'",
    "add a rule": "CREATE RULE deaf AS ON INSERT TO trail_deed DO INSTEAD NOTHING",
    "drop the table": "DROP TABLE trail_deed",
    "rename the table": "ALTER TABLE trail_deed RENAME TO other",
    "play the replica": "SET session_replication_role = replica",
    "become the owner": "SET ROLE {owner}",
    # All else that is evidence.
    "change what was done": "UPDATE audit_findingact SET reason = ''",
    "delete a verdict": "DELETE FROM audit_review",
    "swap a verdict": "UPDATE audit_review SET verdict = 'fine'",
    "change bytes": "UPDATE intake_record SET source = ''",
    "delete a record": "DELETE FROM intake_record",
    "delete a withdrawal": "DELETE FROM intake_withdrawal",
    "delete a tombstone": "DELETE FROM retention_tombstone",
    "change a tombstone": "UPDATE retention_tombstone SET sha256 = ''",
    "change why it was erased": "UPDATE retention_erasure SET reason = ''",
    "delete a hold": "DELETE FROM retention_legalhold",
    "change how long is kept": "UPDATE retention_retentionrule SET days = 1",
    "clear what was said": "UPDATE audit_commentturn SET words = ''",
    "delete the key of a period": "DELETE FROM keyring_periodkey",
    "give its key another month": "UPDATE keyring_periodkey SET period = '2020-01'",
    "say that bytes are clear": "UPDATE intake_record SET sealed_with_id = NULL",
    "empty the ledger": "TRUNCATE ledger_ledgerentry",
    "change the ledger": "UPDATE ledger_ledgerentry SET leaf_hash = ''",
    "forge a checkpoint": "UPDATE ledger_ledgercheckpoint SET note = ''",
    # Where nobody may give it, a grant is a warning and no error; what it would have given is tried after it.
    "give itself rights": "GRANT ALL ON trail_deed TO {role}",
    "change with these": "UPDATE trail_deed SET told = 'nothing'",
}


@pytest.mark.django_db(transaction=True)
def test_the_application_cannot_change_delete_or_empty_the_trail(
    cast: Cast, application: tuple[str, dict[str, str]], record_property: Callable[[str, object], None]
) -> None:
    """R16, with two real roles: the command makes the second, and each attack is tried in a session of its own."""
    role, environment = application
    code, told = manage(environment, "migrate", "--no-input")
    assert code == 0, told
    assert f"The role {role} was made. Another role" in told

    owner = connection.settings_dict["USER"]
    with psycopg.connect(environment["DATABASE_URL"], autocommit=True) as session:
        added = session.execute(
            "INSERT INTO trail_deed (workspace_id, actor_kind, actor_id, actor_name, address, code, object_kind, "
            "object_id, object_label, about, told, details) VALUES "
            "(%s, 'operator', '', 'The operator', '', 'channel.made', '', '', '', '{}', 'it stays', '{}') "
            "RETURNING sequence",
            [cast.workspace.pk],
        ).fetchone()
        assert added
        succeeded = []
        for name, attack in ATTACKS.items():
            words = sql.SQL(attack).format(owner=sql.Identifier(owner), role=sql.Identifier(role))
            try:
                session.execute(words)
            except psycopg.errors.InsufficientPrivilege:
                continue
            except psycopg.Error as error:
                succeeded.append(f"{name}: {error}")
            else:
                succeeded += [name] if name != "give itself rights" else []
        # `bench.proofs` prints these.
        record_property("ways as the application's role", len(ATTACKS))
        record_property("failures", len(succeeded))
        assert succeeded == []
        kept = session.execute("SELECT told FROM trail_deed WHERE sequence = %s", added).fetchone()
        assert kept == ("it stays",)
    assert not ask_guard().missing


def test_the_application_works_with_the_rights_that_it_has(cast: Cast) -> None:
    """Everything but the trail is the application's to write, and a deed is added in its name."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        owner = cursor.fetchone()[0]
        admit_application(role="app_of_a_test", password="x")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # No table can be altered before these are looked at.
        assert not raise_wall("app_of_a_test"), "it does not bypass policies, and so there may be none"
        cursor.execute(sql.SQL("GRANT app_of_a_test TO {}").format(sql.Identifier(owner)))
        cursor.execute("SET ROLE app_of_a_test")
        try:
            create_workspace(slug="held", name="Held", owner=make_user("holly"))
            Workspace.objects.filter(slug="held").update(name="Renamed")
            deliver(cast, b'{"from":"a","to":["b"],"p":"REQ","mid":"m1","cid":"c1","body":{"t":"task"}}')
            resolve_all()
            assert Message.objects.filter(workspace=cast.workspace).count() == 1
            guard = ask_guard()
            # Bytes go only by the database's own function, which finds a tombstone.
            record = Message.objects.get(workspace=cast.workspace).record
            cursor.execute("SELECT erase_buried(%s)", [[record.pk]])
            assert cursor.fetchone() == (0,)
            ask_to_erase(membership=cast.owner, target=Target(kind="record", subject=record.pk), reason="asked")
            resolve_all()
            record.refresh_from_db()
            assert (bytes(record.source), Message.objects.exists()) == (b"", False)
            assert settle_a_dispute(cast) == "violation"
        finally:
            cursor.execute("RESET ROLE")
    assert guard.is_held
    assert (guard.role, guard.owner) == ("app_of_a_test", owner)


def settle_a_dispute(cast: Cast) -> str:
    """The verdict of a third person on what two see differently."""
    deliver(cast, b'{"from":"a","to":["b"],"p":"REQ","mid":"m2","cid":"c2","body":{"t":"task"}}')
    resolve_all()
    conversation = Conversation.objects.get(workspace=cast.workspace, native_id="c2")
    queue = create_queue(membership=cast.owner, name="two", reviewers=2)
    fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=cast.owner)
    third = Membership.objects.create(workspace=cast.workspace, user=make_user("tara"), role="auditor")
    for membership, verdict in ((cast.auditor, "fine"), (cast.owner, "violation"), (third, "violation")):
        item = claim(membership=membership, item=queue.items.get())
        seen = bytes(conversation.settled_digest or b"")
        judge_item(membership=membership, item=item, verdict=verdict, comment="", seen=seen, answers=[])
    return str(queue.items.get().verdict)
