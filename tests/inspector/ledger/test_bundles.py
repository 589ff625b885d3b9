"""Bundles as the server makes them, and what the offline verifier, which shares no code with it, says of them."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError
from pymerkle import InmemoryTree, verify_inclusion

from inspector.accounts.models import Membership
from inspector.audit.comments import withdraw
from inspector.audit.models import Review
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.audit.reviews.verdicts import claim, give_verdict, judge_item
from inspector.ledger.bundles import Bundle, NoCheckpointError, make_bundle, write_bundle
from inspector.ledger.kinds import spell
from inspector.ledger.proofs import get_checkpoint, get_key, get_verifier
from inspector.ledger.sequencing import enter_new
from inspector.threads.models import Conversation, Message
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, resolve_all
from ..pages.conftest import STORY
from ..pages.test_access import comment_on
from .test_ledger import as_superuser

VERIFIER = Path(__file__).parents[3] / "clients" / "verifier" / "verify_bundle.py"
pytestmark = pytest.mark.django_db


@pytest.fixture
def signed(cast: Cast) -> Conversation:
    """The conversation of the story, signed off, and everything of it entered."""
    deliver(cast, STORY, name="story.log")
    resolve_all()
    conversation = Conversation.objects.get(native_id="story")
    sign_off(cast.auditor, conversation)
    enter_new(at_once=True)
    return conversation


def sign_off(membership: Membership, conversation: Conversation) -> Review:
    seen = bytes(conversation.settled_digest or b"")
    return give_verdict(membership=membership, conversation=conversation, verdict="fine", comment="„Seen“", seen=seen)


def write(path: Path, cast: Cast, **given: Any) -> Path:
    path.write_bytes(b"".join(write_bundle(make_bundle(workspace=cast.workspace, **given))))
    return path


def read(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as source:
        return {name: source.read(name) for name in source.namelist()}


def read_lines(path: Path, name: str = "entries.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in read(path)[name].splitlines()]


def verify(path: Path, *given: str) -> tuple[int, str]:
    key = get_key()
    assert key
    verifier = str(get_verifier(key, make_workspace_id(path)))
    command = [sys.executable, str(VERIFIER), path.name, "--key", verifier, *given]
    ran = subprocess.run(command, cwd=path.parent, env={}, capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout + ran.stderr


def make_workspace_id(path: Path) -> uuid.UUID:
    return uuid.UUID(json.loads(read(path)["manifest.json"])["origin"].rpartition("/")[2])


@pytest.mark.parametrize("is_exact", [True, False], ids=["exact", "masked"])
@pytest.mark.parametrize("of", ["workspace", "conversation"])
def test_a_bundle_verifies_offline(cast: Cast, signed: Conversation, tmp_path: Path, of: str, is_exact: bool) -> None:
    about = {"conversation": signed} if of == "conversation" else {}
    path = write(tmp_path / "b.zip", cast, membership=cast.auditor, is_exact=is_exact, **about)
    status, text = verify(path)
    assert status == 0, text
    assert "BROKEN" not in text
    assert "the bytes, decoder and English of 3 messages are what was signed." in text
    assert ("by their digests the bytes" in text) is not is_exact
    assert ("HOLDS    Records: the bytes of" in text) is is_exact
    assert ("records.bin" in read(path)) is is_exact
    assert "leaves give the signed root" in text


def test_long_ledgers_give_a_conversation_its_proofs(
    cast: Cast, signed: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.ledger.bundles._PROOF_HASH_BYTES", 0)
    path = write(tmp_path / "b.zip", cast, conversation=signed, is_exact=True)
    status, text = verify(path)
    assert status == 0, text
    assert "leaves.bin" not in read(path)
    assert all(len(line["proof"]) in (2, 3, 4) for line in read_lines(path))


def test_a_published_tool_finds_the_same_root_and_accepts_the_same_proofs(
    cast: Cast, signed: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pymerkle, which neither the server nor the verifier uses, is given the leaves as the bundle spells them."""
    monkeypatch.setattr("inspector.ledger.bundles._PROOF_HASH_BYTES", 0)
    lines = read_lines(write(tmp_path / "whole.zip", cast))
    checkpoint = get_checkpoint(cast.workspace.pk)
    assert checkpoint
    assert [line["index"] for line in lines] == list(range(checkpoint.size))
    tree = InmemoryTree(algorithm="sha256")
    for line in lines:
        tree.append_entry(spell(line["leaf"]))
    assert tree.get_root() == bytes(checkpoint.root)
    for line in read_lines(write(tmp_path / "part.zip", cast, conversation=signed)):
        proof = tree.prove_inclusion(line["index"] + 1, checkpoint.size)
        assert [base64.b64decode(each) for each in line["proof"]] == proof.path[1:]
        verify_inclusion(tree.get_leaf(line["index"] + 1), bytes(checkpoint.root), proof)


def test_a_viewer_gets_digests_and_an_auditor_what_was_asked_for(
    cast: Cast, signed: Conversation, tmp_path: Path
) -> None:
    path = write(tmp_path / "v.zip", cast, membership=cast.viewer, conversation=signed, is_exact=True)
    assert {line["leaf"]["kind"] for line in read_lines(path)} == {"record", "verdict"}
    assert "records.bin" not in read(path)
    assert all(line["english"] is None for line in read_lines(path, "english.jsonl"))
    assert b"MCP vs A2A" not in path.read_bytes() + b"".join(read(path).values())
    assert verify(path)[0] == 0
    exact = write(tmp_path / "a.zip", cast, membership=cast.auditor, conversation=signed, is_exact=True)
    assert {line["leaf"]["kind"] for line in read_lines(exact)} == {"record", "verdict", "action"}
    assert b"MCP vs A2A" in read(exact)["records.bin"]
    assert all(line["english"] for line in read_lines(exact, "english.jsonl"))


def test_a_verdict_that_is_still_blind_is_in_nobody_elses_bundle(cast: Cast, tmp_path: Path) -> None:
    deliver(cast, STORY, name="story.log")
    resolve_all()
    conversation = Conversation.objects.get(native_id="story")
    queue = create_queue(membership=cast.owner, name="two", reviewers=2)
    fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=cast.owner)
    item = claim(membership=cast.auditor, item=queue.items.get())
    seen = bytes(conversation.settled_digest or b"")
    judge_item(membership=cast.auditor, item=item, verdict="fine", comment="Blind.", seen=seen, answers=[])
    enter_new(at_once=True)
    for membership, is_told in ((cast.auditor, True), (cast.owner, False), (None, False)):
        for about in ({}, {"conversation": conversation}):
            path = write(tmp_path / "b.zip", cast, membership=membership, is_exact=True, **about)
            text = b"".join(read(path).values())
            assert (b"Blind." in text) is is_told
            assert (b"verdict.given" in text) is is_told
            assert ("verdict" in {line["leaf"]["kind"] for line in read_lines(path)}) is is_told
            status, told = verify(path)
            assert status == 0, told
            assert is_told or "Left out: " in told


def test_words_that_were_withdrawn_are_in_no_bundle(cast: Cast, signed: Conversation, tmp_path: Path) -> None:
    comment = comment_on(cast, Message.objects.get(native_id="m1"), "Better unsaid.")
    enter_new(at_once=True)
    assert b"Better unsaid." in b"".join(read(write(tmp_path / "a.zip", cast)).values())
    withdraw(membership=cast.auditor, comment=comment)
    enter_new(at_once=True)
    path = write(tmp_path / "b.zip", cast)
    assert b"Better unsaid." not in b"".join(read(path).values())
    assert verify(path)[0] == 0


def change_record(cursor: Any) -> None:
    cursor.execute("UPDATE intake_record SET source = source || ' ' WHERE NOT is_quarantined")


def change_verdict(cursor: Any) -> None:
    cursor.execute("UPDATE audit_review SET verdict = 'violation'")


def delete_action(cursor: Any) -> None:
    cursor.execute("DELETE FROM trail_deed WHERE sequence = (SELECT max(sequence) FROM trail_deed)")


def rehash(cursor: Any) -> None:
    cursor.execute("UPDATE ledger_ledgerentry SET leaf_hash = sha256('other') WHERE kind = 'verdict'")


def reorder(cursor: Any) -> None:
    cursor.execute("UPDATE ledger_ledgerentry SET index = index + 1000 WHERE index IN (1, 2)")
    cursor.execute("UPDATE ledger_ledgerentry SET index = 1003 - index WHERE index > 999")


def cut(cursor: Any) -> None:
    cursor.execute("DELETE FROM ledger_ledgerentry WHERE index >= 9")


@pytest.mark.parametrize(
    ("tamper", "sentence"),
    [
        (change_record, r"Entry \d+ \(record .*\): its content was changed|the log has something else there"),
        (change_verdict, r"Entry 6 \(verdict .*\): the log has something else there"),
        (delete_action, r"Entry \d+ \(action .*\): it was deleted"),
        (rehash, r"leaves.bin does not hold the 12 leaves of the signed root"),
        (reorder, r"leaves.bin does not hold the 12 leaves of the signed root"),
        (cut, r"leaves.bin does not hold the 12 leaves of the signed root"),
    ],
)
def test_what_was_tampered_with_in_the_database_shows_offline(
    cast: Cast, signed: Conversation, tmp_path: Path, tamper: Any, sentence: str
) -> None:
    with as_superuser() as cursor:
        tamper(cursor)
    status, text = verify(write(tmp_path / "b.zip", cast, is_exact=True))
    assert status == 1
    assert re.search(f"BROKEN   .*({sentence})", text), text


def test_a_bundle_of_many_messages_asks_in_batches(cast: Cast, django_assert_max_num_queries: Any) -> None:
    deliver(cast, b"".join(b'{"raw": "message %d", "conversation": "c"}\n' % number for number in range(1200)))
    resolve_all()
    enter_new(at_once=True)
    with django_assert_max_num_queries(90):
        list(write_bundle(make_bundle(workspace=cast.workspace, is_exact=True)))


def test_before_the_first_checkpoint_there_is_nothing_to_bundle(cast: Cast, tmp_path: Path) -> None:
    with pytest.raises(NoCheckpointError):
        write(tmp_path / "b.zip", cast)


def test_the_operator_makes_one_by_a_command_which_is_recorded(
    cast: Cast, signed: Conversation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "made.zip"
    call_command("export_bundle", "acme", str(path), conversation=str(signed.pk), exact=True)
    assert verify(path)[0] == 0
    assert "--key" in capsys.readouterr().out
    deed = Deed.objects.get(code="bundle.made")
    assert (deed.actor_name, deed.details["include_secrets"], signed.pk in deed.about) == ("The operator", True, True)
    for wrong in (["nowhere", str(path)], ["acme", str(path)], ["acme", str(tmp_path / "no" / "folder.zip")]):
        with pytest.raises(CommandError):
            call_command("export_bundle", *wrong)
    assert verify(path)[0] == 0, "what was there before stays"


def test_what_comes_to_no_end_leaves_a_sentence_and_no_part_of_a_file(
    signed: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(bundle: Bundle) -> Iterator[bytes]:
        yield next(write_bundle(bundle))
        raise DatabaseError("the server has gone")

    monkeypatch.setattr("inspector.management.commands.export_bundle.write_bundle", break_off)
    with pytest.raises(CommandError, match=r"^The bundle cannot be written: the server has gone"):
        call_command("export_bundle", "acme", str(tmp_path / "made.zip"), conversation=str(signed.pk))
    assert not list(tmp_path.iterdir())
