"""What is evidence is entered once, in one order, and signed; and whoever tampers with it is named by the entry."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import DatabaseError
from django.utils import timezone

from inspector import worker
from inspector.audit.models import Review
from inspector.audit.reviews.verdicts import give_verdict
from inspector.intake.models import Record
from inspector.ledger import sequencing
from inspector.ledger.kinds import KINDS
from inspector.ledger.merkle import compute_root, prove_inclusion, verify_inclusion
from inspector.ledger.models import LedgerEntry, LedgerHash
from inspector.ledger.notes import NoteError, read_note
from inspector.ledger.proofs import get_checkpoint, get_key, get_note, get_verifier, make_reader
from inspector.ledger.sequencing import enter_new
from inspector.ledger.verifying import verify_ledger
from inspector.threads.models import Conversation
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, resolve_all


def write_log(count: int, *, first: int = 0) -> bytes:
    return b"\n".join(
        b'{"clowl":"0.2","from":"a","to":["b"],"p":"INF","mid":"m%d","cid":"c1","body":{"t":"task"}}' % number
        for number in range(first, first + count)
    )


@pytest.fixture
def filled(cast: Cast) -> Cast:
    """Twelve records, a delivery, and what the audit log says of the workspace; all of it entered and signed."""
    deliver(cast, write_log(12))
    resolve_all()
    enter_new(at_once=True)
    return cast


def find_index(kind: str, subject: uuid.UUID) -> int:
    return LedgerEntry.objects.get(kind=kind, subject=subject).index


def get_exported(cast: Cast) -> str:
    checkpoint = get_checkpoint(cast.workspace.pk)
    assert checkpoint
    return checkpoint.note


@contextmanager
def as_superuser() -> Iterator[Any]:
    """Somebody whom no trigger holds, as it is with a superuser of the database; undone with the test."""
    tables = ["trail_deed", *(f"ledger_ledger{name}" for name in ("entry", "hash", "checkpoint"))]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield cursor


def test_everything_is_entered_once_without_a_gap(filled: Cast) -> None:
    own = LedgerEntry.objects.filter(workspace=filled.workspace).order_by("index")
    assert [entry.index for entry in own] == list(range(len(own)))
    kinds = [entry.kind for entry in own]
    assert kinds.count("record") == 12
    assert kinds.count("delivery") == 1
    assert kinds.count("action") == Deed.objects.filter(workspace=filled.workspace).count()
    assert enter_new(at_once=True) == 0
    found = verify_ledger(filled.workspace.pk)
    assert found.holds
    assert (found.size, found.checkpoints, found.waiting) == (len(own), 1, 0)


def test_a_checkpoint_is_signed_and_proves_each_entry(filled: Cast) -> None:
    checkpoint, key = get_checkpoint(filled.workspace.pk), get_key()
    assert checkpoint
    assert key
    note = get_note(checkpoint)
    assert get_verifier(key, filled.workspace.pk).find(note)
    assert get_verifier(key, filled.stranger.workspace_id).find(note) is None
    read = make_reader(filled.workspace.pk)
    assert compute_root(read, checkpoint.size) == note.checkpoint.root
    for entry in LedgerEntry.objects.filter(workspace=filled.workspace):
        path = prove_inclusion(read, entry.index, checkpoint.size)
        assert verify_inclusion(bytes(entry.leaf_hash), entry.index, checkpoint.size, path, note.checkpoint.root)


def test_what_comes_later_is_appended_and_what_is_there_stays(filled: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [*LedgerEntry.objects.filter(workspace=filled.workspace).order_by("index").values_list()]
    monkeypatch.setattr(sequencing, "LOOK_SECONDS", 0.0)
    deliver(filled, write_log(600, first=100))
    worker.sweep()
    after = [*LedgerEntry.objects.filter(workspace=filled.workspace).order_by("index").values_list()]
    assert after[: len(before)] == before
    assert len(after) >= len(before) + 601
    assert {row.index for row in LedgerHash.objects.filter(workspace=filled.workspace)} == {0, 1}
    found = verify_ledger(filled.workspace.pk)
    assert (found.holds, found.checkpoints, found.waiting) == (True, 2, 0)


def test_workspaces_have_ledgers_of_their_own(filled: Cast) -> None:
    other = verify_ledger(filled.stranger.workspace_id)
    assert other.holds
    assert other.size == Deed.objects.filter(workspace=filled.stranger.workspace).count()
    with pytest.raises(NoteError):
        verify_ledger(filled.stranger.workspace_id, exported=[get_exported(filled)])


@pytest.mark.parametrize("statement", [
    "UPDATE {} SET workspace_id = workspace_id", "DELETE FROM {}", "TRUNCATE {}",
])  # fmt: skip
@pytest.mark.parametrize("table", ["entry", "hash", "checkpoint", "cosignature", "key"])
def test_the_database_refuses_every_change(filled: Cast, statement: str, table: str) -> None:
    if table == "key":
        statement = statement.replace("workspace_id", "name")
    if table in ("hash", "cosignature"):
        statement = "TRUNCATE {}"
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with pytest.raises(DatabaseError, match="only added to"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format(f"ledger_ledger{table}"))


def edit_record(cast: Cast, cursor: Any) -> tuple[int, str]:
    record = Record.objects.order_by("pk")[4]
    cursor.execute("UPDATE intake_record SET source = source || 'x' WHERE id = %s", [record.pk])
    return find_index("record", record.pk), "was changed"


def delete_row(cast: Cast, cursor: Any) -> tuple[int, str]:
    deed = Deed.objects.filter(workspace=cast.workspace).order_by("-sequence")[0]
    cursor.execute("DELETE FROM trail_deed WHERE id = %s", [deed.pk])
    return find_index("action", uuid.UUID(int=deed.pk)), "was deleted"


def delete_entry(cast: Cast, cursor: Any) -> tuple[int, str]:
    cursor.execute("DELETE FROM ledger_ledgerentry WHERE workspace_id = %s AND index IN (5, 6)", [cast.workspace.pk])
    return 5, "the entries from here to 6 are missing"


def insert_entry(cast: Cast, cursor: Any) -> tuple[int, str]:
    """One more in the middle: what comes after it moves up."""
    cursor.execute(
        "UPDATE ledger_ledgerentry SET index = index + 1000 WHERE workspace_id = %s AND index >= 3", [cast.workspace.pk]
    )
    cursor.execute(
        "INSERT INTO ledger_ledgerentry (workspace_id, index, kind, subject, leaf_hash, entered_at) "
        "SELECT workspace_id, 3, 'record', gen_random_uuid(), leaf_hash, entered_at "
        "FROM ledger_ledgerentry WHERE workspace_id = %s AND index = 0", [cast.workspace.pk],
    )  # fmt: skip
    cursor.execute("UPDATE ledger_ledgerentry SET index = index - 999 WHERE index >= 1000")
    return 3, "was deleted"


def reorder(cast: Cast, cursor: Any) -> tuple[int, str]:
    for old, new in ((2, 1000), (7, 2), (1000, 7)):
        cursor.execute(
            "UPDATE ledger_ledgerentry SET index = %s WHERE workspace_id = %s AND index = %s",
            [new, cast.workspace.pk, old],
        )
    return 2, "was signed for other entries: from here on they were put into another order"


def cut_and_hash_anew(cast: Cast, cursor: Any) -> tuple[int, str]:
    """The last five entries and every checkpoint go; the ledger is signed anew as if they had never been."""
    size = LedgerEntry.objects.filter(workspace=cast.workspace).count()
    cursor.execute(
        "DELETE FROM ledger_ledgerentry WHERE workspace_id = %s AND index >= %s", [cast.workspace.pk, size - 5]
    )
    cursor.execute("DELETE FROM ledger_ledgercheckpoint WHERE workspace_id = %s", [cast.workspace.pk])
    sequencing._sign_grown()
    return size - 5, "cut or rolled back"


def change_and_hash_anew(cast: Cast, cursor: Any) -> tuple[int, str]:
    """A record is changed, and its entry, and all that is above it."""
    record = Record.objects.order_by("pk")[4]
    cursor.execute("UPDATE intake_record SET source = source || 'x' WHERE id = %s", [record.pk])
    cursor.execute("DELETE FROM ledger_ledgerentry WHERE workspace_id = %s AND index >= 0", [cast.workspace.pk])
    cursor.execute("DELETE FROM ledger_ledgercheckpoint WHERE workspace_id = %s", [cast.workspace.pk])
    enter_new(at_once=True)
    return 0, "the exported checkpoint"


def note_tampering(record_property: Callable[[str, object], None], told: list[int | None], index: int) -> None:
    """What `bench.proofs` prints."""
    record_property("tamperings", 1)
    record_property("failures", int(told[:1] != [index]))


TAMPERINGS = [edit_record, delete_row, delete_entry, insert_entry, reorder, cut_and_hash_anew, change_and_hash_anew]


@pytest.mark.parametrize("tamper", TAMPERINGS)
def test_whoever_tampers_is_named_by_the_first_bad_entry(
    filled: Cast, tamper: Callable[[Cast, Any], tuple[int, str]], record_property: Callable[[str, object], None]
) -> None:
    """R15, with the checkpoint that somebody kept."""
    exported = get_exported(filled)
    with as_superuser() as cursor:
        index, words = tamper(filled, cursor)
    found = verify_ledger(filled.workspace.pk, exported=[exported])
    note_tampering(record_property, [fault.index for fault in found.faults], index)
    assert not found.holds
    assert found.faults[0].index == index, [str(fault) for fault in found.faults]
    assert words in " ".join(fault.text for fault in found.faults if fault.index == index)


def test_a_swapped_verdict_is_named(filled: Cast, record_property: Callable[[str, object], None]) -> None:
    conversation = Conversation.objects.get(workspace=filled.workspace)
    review = give_verdict(
        membership=filled.auditor,
        conversation=conversation,
        verdict=Review.Verdict.VIOLATION,
        comment="it was paid twice",
        seen=bytes(conversation.settled_digest or b""),
    )
    enter_new(at_once=True)
    assert verify_ledger(filled.workspace.pk).holds
    Review.objects.filter(pk=review.pk).update(verdict=Review.Verdict.FINE)
    faults, index = verify_ledger(filled.workspace.pk).faults, find_index("verdict", review.pk)
    note_tampering(record_property, [fault.index for fault in faults], index)
    (fault,) = faults
    assert (fault.index, fault.kind) == (index, "verdict")
    assert "was changed" in fault.text


def test_a_rolled_back_ledger_is_named(filled: Cast, record_property: Callable[[str, object], None]) -> None:
    """A backup that is older than a checkpoint which somebody kept."""
    older = LedgerEntry.objects.filter(workspace=filled.workspace).count()
    deliver(filled, write_log(3, first=200))
    enter_new(at_once=True)
    exported = get_exported(filled)
    with as_superuser() as cursor:
        cursor.execute("DELETE FROM ledger_ledgerentry WHERE index >= %s", [older])
        cursor.execute("DELETE FROM ledger_ledgercheckpoint WHERE size > %s", [older])
        cursor.execute(
            "DELETE FROM intake_sighting WHERE record_id IN (SELECT id FROM intake_record ORDER BY id DESC LIMIT 3)"
        )
    assert verify_ledger(filled.workspace.pk).holds
    found = verify_ledger(filled.workspace.pk, exported=[exported])
    note_tampering(record_property, [fault.index for fault in found.faults], older)
    assert found.faults[0].index == older
    assert "cut or rolled back" in found.faults[0].text


def test_a_checkpoint_that_another_key_signed_is_refused(filled: Cast) -> None:
    note = read_note(get_exported(filled))
    forged = str(note).replace(str(note.checkpoint.size), str(note.checkpoint.size + 1), 1)
    with pytest.raises(NoteError):
        verify_ledger(filled.workspace.pk, exported=[forged])
    with as_superuser() as cursor:
        cursor.execute("UPDATE ledger_ledgercheckpoint SET note = replace(note, '— ', '— x')")
    assert "not signed by the key" in verify_ledger(filled.workspace.pk).faults[0].text


def test_of_every_kind_columns_are_read(filled: Cast) -> None:
    for kind in KINDS:
        assert isinstance([*kind.read(kind.rows)], list)


def test_nothing_is_looked_at_while_nobody_writes(
    filled: Cast, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(sequencing, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(sequencing._watch, "looked_at_all", float("inf"))
    enter_new()
    enter_new()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_insert_lsn()::text")
        monkeypatch.setattr(sequencing._watch, "written", cursor.fetchone()[0])
    with django_assert_num_queries(1):
        assert enter_new() == 0


def test_what_is_committed_behind_a_look_at_everything_is_entered_by_the_next(
    filled: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that takes several passes goes on behind the last row that it read; this one began two hours ago."""
    watch = sequencing.Watch()
    monkeypatch.setattr(sequencing, "_watch", watch)
    monkeypatch.setattr(sequencing, "LOOK_SECONDS", 0.0)
    # What is committed from an hour before the last pass on is taken for old.
    monkeypatch.setattr(sequencing, "SLACK", timedelta(hours=-1))
    watch.reached, watch.began = {"record": uuid.UUID(int=2**128 - 1)}, timezone.now() - timedelta(hours=2)
    deliver(filled, write_log(3, first=50))
    enter_new()
    assert LedgerEntry.objects.filter(kind="record", workspace=filled.workspace).count() == 12
    enter_new()
    assert LedgerEntry.objects.filter(kind="record", workspace=filled.workspace).count() == 15
