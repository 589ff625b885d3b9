"""A backup holds everything, proves it, and is restored whole or not at all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from psycopg import sql

from inspector import backups
from inspector.intake.models import Record
from inspector.ledger.proofs import IncompleteError, get_checkpoint
from inspector.ledger.sequencing import enter_new
from inspector.schema import BEFORE_BASELINES, find_fault, list_applied, refuse_other_schema
from inspector.starting import RefusedStartError
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, resolve_all

PROJECT = Path(__file__).parents[3]
LOG = b"\n".join(
    b'{"clowl":"0.2","from":"a","to":["b"],"p":"REQ","mid":"m%d","cid":"c1","body":{"t":"task"}}' % n for n in range(9)
)
pytestmark = pytest.mark.django_db(transaction=True)


def spell_url(database: str, **other: str) -> str:
    at = connection.settings_dict
    query = urlencode(
        {"host": at["HOST"], "port": at["PORT"] or "5432", "user": at["USER"], "password": at["PASSWORD"], **other},
        quote_via=quote,
    )
    return f"postgresql:///{database}?{query}"


@pytest.fixture
def empty_database() -> Iterator[str]:
    """The name of a database of nothing."""
    name = f"restored_{uuid.uuid4().hex[:8]}"
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    yield name
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def restore(folder: Path, database: str, state: Path, *more: str, **changes: str) -> tuple[int, str]:
    state.mkdir(mode=0o700, exist_ok=True)
    told = subprocess.run(
        [sys.executable, "manage.py", "restore", str(folder), *more],
        cwd=PROJECT,
        env={**os.environ, "DATABASE_URL": spell_url(database), "INSPECTOR_STATE_DIR": str(state), **changes},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return told.returncode, told.stdout + told.stderr


@pytest.fixture
def backup(cast: Cast, tmp_path: Path) -> Path:
    deliver(cast, LOG)
    resolve_all()
    folder = tmp_path / "backup"
    call_command("backup", str(folder))
    return folder


def test_what_is_restored_is_what_was_there(backup: Path, empty_database: str, tmp_path: Path) -> None:
    code, told = restore(backup, empty_database, tmp_path / "state")
    assert code == 0, told
    assert "Every table has the rows that the backup counted" in told
    with psycopg.connect(spell_url(empty_database)) as session:
        records = session.execute("SELECT id, source FROM intake_record ORDER BY id").fetchall()
        english = session.execute("SELECT id, english FROM threads_message ORDER BY id").fetchall()
        # Neither numbered nor dated anew by the triggers of the audit log.
        deeds = session.execute("SELECT workspace_id, sequence, at FROM trail_deed ORDER BY id").fetchall()
        triggers = session.execute("SELECT tgname FROM pg_trigger WHERE tgname LIKE 'deed%'").fetchall()
    assert records == [(one.pk, bytes(one.source)) for one in Record.objects.order_by("pk")]
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, english FROM threads_message ORDER BY id")
        assert english == cursor.fetchall()
    assert len(english) == 9
    assert deeds == list(Deed.objects.order_by("pk").values_list("workspace_id", "sequence", "at"))
    assert {name for (name,) in triggers} == {"deed_numbered", "deed_kept", "deeds_kept"}


def test_it_is_restored_as_the_owner_and_the_role_of_the_application_is_made(
    backup: Path, empty_database: str, tmp_path: Path
) -> None:
    """As in the containers, where the first thing that an empty server sees is the backup."""
    role = f"app_of_{empty_database}"
    application = spell_url(empty_database, user=role, password="of-the-application")
    try:
        code, told = restore(
            *(backup, empty_database, tmp_path / "state"),
            DATABASE_URL=application,
            DATABASE_OWNER_URL=spell_url(empty_database),
        )
        assert (code, "Every ledger has the root" in told) == (0, True), told
        with psycopg.connect(application) as session:
            assert session.execute("SELECT count(*) FROM intake_record").fetchone() == (9,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute("TRUNCATE intake_record")
    finally:
        with psycopg.connect(spell_url(empty_database), autocommit=True) as session:
            # An owner that is no superuser may end the role's rights only as a member of it.
            session.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))
            session.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(role)))
            session.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def test_a_database_with_tables_is_left_alone(backup: Path, tmp_path: Path) -> None:
    before = Record.objects.count()
    code, told = restore(backup, connection.settings_dict["NAME"], tmp_path / "state")
    assert code == 1
    assert "is restored into an empty database" in told
    assert Record.objects.count() == before


@pytest.mark.long(seconds=20)
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("dump", "is not the file that was written"),
        ("cut", "is not the file that was written"),
        ("newer", "trail.9999_from_tomorrow"),
        ("older", BEFORE_BASELINES),
        ("unfinished", "not finished"),
        ("garbled", "cannot be read"),
        ("other", "cannot be read"),
    ],
)
def test_a_backup_that_is_not_what_was_written_is_refused(backup: Path, spoil: str, reason: str) -> None:
    dump, manifest = backup / "database.dump", backup / "manifest.json"
    told = json.loads(manifest.read_text())
    content = bytearray(dump.read_bytes())
    if spoil == "dump":
        content[len(content) // 2] ^= 1
    dump.write_bytes(content[:-1] if spoil == "cut" else content)
    if spoil == "newer":
        told["migrations"].append("trail.9999_from_tomorrow")
    if spoil == "older":
        told["migrations"].remove("threads.0042_carriers")
    texts = {"garbled": "[1", "other": "[]", "newer": json.dumps(told), "older": json.dumps(told)}
    if spoil == "unfinished":
        manifest.unlink()
    elif spoil in texts:
        manifest.write_text(texts[spoil])
    with pytest.raises(CommandError, match=re.escape(reason)):
        call_command("restore", str(backup))


@pytest.mark.long(seconds=15)
def test_a_backup_that_is_older_than_a_kept_checkpoint_is_refused(
    cast: Cast, empty_database: str, tmp_path: Path
) -> None:
    deliver(cast, LOG)
    enter_new(at_once=True)
    call_command("backup", str(tmp_path / "backup"))
    deliver(cast, LOG.replace(b'"m', b'"n'))
    enter_new(at_once=True)
    checkpoint = get_checkpoint(cast.workspace.pk)
    assert checkpoint
    kept = tmp_path / "kept.txt"
    kept.write_text(checkpoint.note)
    with pytest.raises(CommandError, match="the backup is older"):
        call_command("restore", str(tmp_path / "backup"), "--checkpoint", str(kept))
    code, told = restore(
        tmp_path / "backup", empty_database, tmp_path / "state", "--checkpoint", str(kept), "--accept-older"
    )
    assert code == 0, told
    assert "what came between is lost" in told
    assert "Every ledger has the root that the backup noted" in told
    kept.write_text("no note")
    with pytest.raises(CommandError, match="cannot be used"):
        call_command("restore", str(tmp_path / "backup"), "--checkpoint", str(kept))


@pytest.mark.long(seconds=20)
def test_rows_that_are_not_those_that_were_counted_are_told(backup: Path, empty_database: str, tmp_path: Path) -> None:
    told = json.loads((backup / "manifest.json").read_text())
    told["rows"]["intake_record"] += 1
    (backup / "manifest.json").write_text(json.dumps(told))
    code, said = restore(backup, empty_database, tmp_path / "state")
    assert code == 1
    assert "intake_record has 9, not 10" in said


@pytest.mark.long(seconds=20)
def test_secrets_go_to_a_file_of_their_own_and_back(cast: Cast, empty_database: str, tmp_path: Path) -> None:
    state = tmp_path / "old"
    state.mkdir()
    (state / "secret_key").write_text("s" * 40)
    (state / "keyring_key").write_text("k" * 40)
    folder, secrets, fresh = tmp_path / "backup", tmp_path / "secrets", tmp_path / "state"
    with override_settings(STATE_DIR=state, KEYRING_KEY_FILE=state / "keyring_key", KEYRING_KEY=""):
        call_command("backup", str(folder), "--secrets", str(secrets))
    assert {path.stat().st_mode & 0o777 for path in (secrets, *folder.iterdir())} == {0o600}
    assert not any(b"k" * 40 in path.read_bytes() or b"s" * 40 in path.read_bytes() for path in folder.iterdir())
    fresh.mkdir(mode=0o700)
    (fresh / "keyring_key").write_text("another key, that seals something here already")
    code, told = restore(folder, empty_database, fresh, "--secrets", str(secrets))
    assert (code, "holds another key" in told) == (1, True), told
    (fresh / "keyring_key").unlink()
    code, told = restore(folder, empty_database, fresh)
    assert code == 0
    assert "sealed with another key-encryption key" in told
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(empty_database)))
        cursor.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(empty_database)))
    code, told = restore(folder, empty_database, fresh, "--secrets", str(secrets))
    assert code == 0, told
    assert "sealed with another" not in told
    assert (fresh / "keyring_key").read_text() == "k" * 40
    assert (fresh / "keyring_key").stat().st_mode & 0o777 == 0o600


def test_secrets_of_the_environment_leave_no_empty_file(
    cast: Cast, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with override_settings(STATE_DIR=tmp_path / "nothing"):
        call_command("backup", str(tmp_path / "backup"), "--secrets", str(tmp_path / "secrets"))
    assert f"No secrets are in {tmp_path / 'nothing'}" in capsys.readouterr().out
    assert not (tmp_path / "secrets").exists()


def test_a_folder_that_may_not_be_entered_is_one_sentence(
    cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = Path.exists

    def refuse(path: Path, **given: bool) -> bool:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path, **given)

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(CommandError, match=r"could not be written \(Permission denied\)"):
        call_command("backup", str(tmp_path / "closed"))


def test_a_folder_in_use_is_left_alone(cast: Cast, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(CommandError, match="name a new folder"):
        call_command("backup", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_failed_dump_leaves_no_backup(cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.management.commands.backup.find_program", lambda *_: "/bin/false")
    with pytest.raises(CommandError, match="failed"):
        call_command("backup", str(tmp_path / "backup"))
    assert not (tmp_path / "backup").exists()


ADD = "INSERT INTO django_migrations (app, name, applied) VALUES ('{}', '{}', now())"
REMOVE = "DELETE FROM django_migrations WHERE app = '{}' AND name = '{}'"


@pytest.mark.parametrize(
    ("change", "undo", "name", "said"),
    [(ADD, REMOVE, ("intake", "9999_tomorrow"), "9999_tomorrow"), (REMOVE, ADD, ("threads", "0042_carriers"), "older")],
    ids=["newer", "older"],
)
def test_code_does_not_start_on_a_database_that_it_cannot_migrate(
    change: str, undo: str, name: tuple[str, str], said: str
) -> None:
    refuse_other_schema()
    with connection.cursor() as cursor:
        cursor.execute(change.format(*name))
    try:
        for command in (["work", "--seconds=0"], ["migrate"]):
            with pytest.raises(RefusedStartError, match=said):
                call_command(*command)
    finally:
        with connection.cursor() as cursor:
            cursor.execute(undo.format(*name))
    # What was squashed before, and what another app left, is neither; all of an app may be from before its baseline.
    assert find_fault([*list_applied(), "intake.0003_long_squashed", "somebody.0001_initial"]) == ""
    assert BEFORE_BASELINES in find_fault(["threads.0001_initial"])


def test_a_damaged_ledger_stops_no_backup(cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(cast, LOG)
    resolve_all()
    enter_new(at_once=True)

    def miss(*_: object) -> bytes:
        raise IncompleteError("entry 3 is missing")

    monkeypatch.setattr(backups, "compute_root", miss)
    call_command("backup", str(tmp_path / "backup"))
    manifest = json.loads((tmp_path / "backup" / "manifest.json").read_text())
    roots = [root for _, root in manifest["ledgers"].values()]
    assert roots
    assert set(roots) == {"damaged: entry 3 is missing"}
