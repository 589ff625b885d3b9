"""The audit log and the ledger over the API."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import CommandError, call_command
from django.test import Client

from inspector.accounts.models import Membership
from inspector.accounts.services import create_api_key
from inspector.api import ingest
from inspector.audit.findings.services import set_rule
from inspector.audit.models import Review
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.audit.reviews.verdicts import claim, judge_item, withdraw_verdict
from inspector.intake.models import Delivery, Record
from inspector.intake.withdrawals import take_back, withdraw_delivery
from inspector.ledger.merkle import hash_leaf, verify_consistency, verify_inclusion
from inspector.ledger.models import LedgerCheckpoint, LedgerEntry
from inspector.ledger.notes import COSIGNATURE, Checkpoint, Note, Verifier, cosign, read_note, read_verifier, sign
from inspector.ledger.proofs import get_checkpoint, look_up
from inspector.ledger.sequencing import ensure_key, enter_new, sign_checkpoint
from inspector.ledger.verifying import verify_ledger
from inspector.threads.models import Conversation
from inspector.trail.models import Deed

from ..conftest import Cast, deliver, resolve_all
from . import clients
from .clients import costs_the_same, walk

pytestmark = pytest.mark.django_db
TRAIL = "/api/v1/trail"


@pytest.fixture
def reader(cast: Cast) -> Client:
    return clients.enter(cast, cast.owner.user, "trail")


@pytest.fixture
def delivery(cast: Cast, reader: Client) -> Delivery:
    delivery = deliver(cast, b"one\n", name="night.log")
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="a test \x00 of it")
    take_back(membership=cast.owner, delivery=delivery, reason="it was right")
    set_rule(membership=cast.owner, rule="said-twice", is_on=False, severity=None, reason="noise")
    return delivery


def read_trail(reader: Client, **query: Any) -> list[dict[str, Any]]:
    answer = reader.get(TRAIL, query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_it_is_narrowed_and_paged(cast: Cast, reader: Client, delivery: Delivery) -> None:
    whole = read_trail(reader)
    assert [deed["deed"] for deed in whole[:3]] == ["rule.set", "delivery.taken-back", "delivery.withdrawn"]
    assert [deed["number"] for deed in whole] == list(range(len(whole), 0, -1))
    withdrawn = whole[2]
    assert withdrawn["actor"] == {"kind": "member", "id": str(cast.auditor.user_id), "name": "amir"}
    assert withdrawn["object"] == {"kind": "delivery", "id": str(delivery.pk), "label": "night.log"}
    assert withdrawn["told"] == "amir withdrew the delivery “night.log”"
    assert walk(reader, TRAIL) == whole
    assert read_trail(reader, actor=f"member:{cast.auditor.user_id}") == [withdrawn]
    assert read_trail(reader, deed="delivery.withdrawn") == [withdrawn]
    assert read_trail(reader, about=str(delivery.pk)) == whole[1:3]
    assert read_trail(reader, q="noise") == whole[:1]
    assert read_trail(reader, since=withdrawn["at"], deed="delivery.withdrawn") == [withdrawn]
    assert read_trail(reader, until=withdrawn["at"], about=str(delivery.pk)) == []
    assert costs_the_same(reader, TRAIL, 1, 50)
    # Reading it is no deed.
    assert read_trail(reader) == whole


@pytest.mark.usefixtures("delivery")
def test_who_may_not_read_it_and_what_is_refused(cast: Cast, reader: Client) -> None:
    for scopes in (["read"], ["ingest", "read", "secrets", "withdraw", "review", "sign", "export"]):
        token = create_api_key(workspace=cast.workspace, name="k", scopes=scopes, created_by=cast.owner.user)[1]
        assert reader.get(TRAIL, headers={"Authorization": f"Bearer {token}"}).status_code == 403
    other = create_api_key(workspace=cast.stranger.workspace, name="k", scopes=["trail"])[1]
    foreign = reader.get(TRAIL, headers={"Authorization": f"Bearer {other}"}).content.decode()
    assert "night.log" not in foreign
    assert "amir" not in foreign
    for name, wrong in (
        ("actor", "somebody:1"),
        ("deed", "delivery.eaten"),
        ("about", "x"),
        ("since", "2026-11-21"),
        ("since", "2026-11-21T09:00:00"),
        ("until", "2026-13-21T09:00:00Z"),
        ("until", "0001-01-01T00:00:00Z"),
        ("cursor", "x"),
        ("nonsense", "1"),
    ):
        refused = reader.get(TRAIL, {name: wrong})
        assert (refused.status_code, refused.json()["parameter"]) == (400, name)


ROOT = "/api/v1/ledger"
WITNESS = Ed25519PrivateKey.from_private_bytes(bytes([9]) * 32)
OWN = Verifier("witness.example", WITNESS.public_key().public_bytes_raw(), COSIGNATURE)


def make_key(cast: Cast, *scopes: str) -> dict[str, str]:
    _, token = create_api_key(
        workspace=cast.workspace, name="-".join(scopes), scopes=list(scopes), created_by=cast.owner.user
    )
    return {"HTTP_AUTHORIZATION": f"Bearer {token}"}


def write_log(first: int) -> bytes:
    return b"\n".join(
        b'{"clowl":"0.2","from":"a","to":["b"],"p":"INF","mid":"m%d","cid":"c1","body":{"t":"task"}}' % number
        for number in range(first, first + 5)
    )


@pytest.fixture
def filled(cast: Cast) -> Cast:
    deliver(cast, write_log(0))
    resolve_all()
    enter_new(at_once=True)
    return cast


def decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def test_a_record_is_proven_from_its_bytes_alone(filled: Cast, client: Client) -> None:
    key = make_key(filled, "read")
    told = client.get(f"{ROOT}/checkpoint", **key).json()
    note = read_note(told["note"])
    assert read_verifier(told["key"]).find(note)
    record = Record.objects.first()
    assert record
    proof = client.get(f"{ROOT}/proofs/inclusion", {"kind": "record", "id": str(record.pk)}, **key).json()
    # What whoever has only the bytes works out by themselves.
    content = {
        "channel_id": str(record.channel_id),
        "identity": bytes(record.identity).hex(),
        "is_quarantined": False,
        "source": hashlib.sha256(bytes(record.source)).hexdigest(),
    }
    spelled = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    assert proof["leaf"]["sha256"] == hashlib.sha256(spelled).hexdigest()
    leaf = hash_leaf(json.dumps(proof["leaf"], sort_keys=True, separators=(",", ":")).encode())
    path = [decode(each) for each in proof["path"]]
    assert verify_inclusion(leaf, proof["index"], proof["size"], path, note.checkpoint.root)


def test_that_it_only_grew_is_proven(filled: Cast, client: Client) -> None:
    key = make_key(filled, "read")
    before = read_note(client.get(f"{ROOT}/checkpoint", **key).json()["note"]).checkpoint
    deliver(filled, write_log(50))
    enter_new(at_once=True)
    after = read_note(client.get(f"{ROOT}/checkpoint", **key).json()["note"]).checkpoint
    assert after.size > before.size
    told = client.get(f"{ROOT}/proofs/consistency", {"from": before.size}, **key).json()
    path = [decode(each) for each in told["path"]]
    assert verify_consistency(before.size, before.root, after.size, after.root, path)
    again = client.get(f"{ROOT}/checkpoint", {"size": before.size}, **key).json()
    assert read_note(again["note"]).checkpoint == before


def test_a_receipt_says_where_it_stands(filled: Cast, client: Client) -> None:
    delivery = Delivery.objects.get()
    told = client.get(f"/api/v1/deliveries/{delivery.pk}", **make_key(filled, "ingest")).json()
    assert told["ledger"] == {"index": LedgerEntry.objects.get(subject=delivery.pk).index}


def test_what_people_did_is_proven_to_whom_may_read_the_audit_log(filled: Cast, client: Client) -> None:
    entry = LedgerEntry.objects.filter(workspace=filled.workspace, kind="action").first()
    assert entry
    query = {"kind": "action", "id": str(entry.subject)}
    assert client.get(f"{ROOT}/proofs/inclusion", query, **make_key(filled, "read")).status_code == 403
    assert client.get(f"{ROOT}/proofs/inclusion", query, **make_key(filled, "read", "trail")).status_code == 200


def test_what_is_not_there_is_404_and_another_workspace_sees_nothing(filled: Cast, client: Client) -> None:
    key = make_key(filled, "read")
    query = {"kind": "record", "id": "019dd7a2-5d3a-7c11-9f7e-2f4f6a1b8e55"}
    assert client.get(f"{ROOT}/proofs/inclusion", query, **key).status_code == 404
    assert client.get(f"{ROOT}/checkpoint", {"size": 1}, **key).status_code == 404
    for address, sizes, parameter, said in (
        ("proofs/consistency", {"from": 10**9}, "from", "entries"),
        ("proofs/consistency", {"from": 5, "to": 2}, "from", "at most the later one, 2"),
        ("proofs/consistency", {"from": 0, "to": 10**9}, "to", "the latest checkpoint"),
        ("proofs/inclusion", query | {"size": 10**9}, "size", "the latest checkpoint"),
        ("checkpoint", {"size": 99999999999}, "size", "the latest checkpoint"),
    ):
        refused = client.get(f"{ROOT}/{address}", sizes, **key)
        assert (refused.status_code, refused.json()["parameter"]) == (400, parameter), refused.content
        assert said in refused.json()["detail"]
    assert "no checkpoint is of 1 entries" in client.get(f"{ROOT}/checkpoint", {"size": 1}, **key).json()["detail"]
    _, token = create_api_key(
        workspace=filled.stranger.workspace, name="other", scopes=["read"], created_by=filled.stranger.user
    )
    other = {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    record = Record.objects.first()
    assert record
    query = {"kind": "record", "id": str(record.pk)}
    assert client.get(f"{ROOT}/proofs/inclusion", query, **other).status_code == 404


def post(client: Client, key: dict[str, str], body: Any) -> Any:
    return client.post(f"{ROOT}/cosignatures", json.dumps(body), content_type="application/json", **key)


def test_a_witness_signs_what_it_saw(filled: Cast, client: Client) -> None:
    key = make_key(filled, "read", "witness")
    note = read_note(client.get(f"{ROOT}/checkpoint", **key).json()["note"])
    line = cosign(note.text, "witness.example", WITNESS, 1_795_118_400)
    body = {"note": str(Note(note.text, (line,))), "key": str(OWN)}
    for _ in range(2):  # A witness that sends again is no second witness.
        answer = post(client, key, body)
        assert answer.status_code == 201, answer.content
    signed = read_note(client.get(f"{ROOT}/checkpoint", **key).json()["note"])
    assert len(signed.signatures) == 2
    assert OWN.find(signed) == line


def test_what_no_witness_signed_is_refused(filled: Cast, client: Client) -> None:
    key = make_key(filled, "read", "witness")
    note = read_note(client.get(f"{ROOT}/checkpoint", **key).json()["note"])
    line = cosign(note.text, "witness.example", WITNESS, 1)
    other = Checkpoint(note.checkpoint.origin, 10**6, bytes(32)).text
    bodies: list[Any] = [
        [], {}, {"note": "x", "key": "y"}, {"note": str(Note(note.text, (line,))), "key": 1},
        {"note": str(Note(note.text, note.signatures)), "key": str(OWN)},
        {"note": str(Note(note.text, (line,))), "key": str(OWN).replace("witness", "other")},
        {"note": str(Note(note.text, (sign(note.text, "witness.example", WITNESS),))), "key": str(OWN)},
    ]  # fmt: skip
    for body in bodies:
        assert post(client, key, body).status_code == 422, body
    unknown = {"note": str(Note(other, (cosign(other, "witness.example", WITNESS, 1),))), "key": str(OWN)}
    assert post(client, key, unknown).status_code == 404
    assert post(client, make_key(filled, "read"), bodies[0]).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_the_witness_command_signs_what_grew_and_refuses_what_was_rewritten(
    cast: Cast, live_server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deliver(cast, write_log(0))
    enter_new(at_once=True)
    token = make_key(cast, "read", "witness")["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    (tmp_path / "token").write_text(token)

    def witness() -> None:
        call_command(
            "witness", live_server.url, name="witness.example", home=tmp_path / "home", token_file=tmp_path / "token"
        )

    enter_new(at_once=True)
    witness()
    deliver(cast, write_log(50))
    enter_new(at_once=True)
    witness()
    assert capsys.readouterr().out.count("entries cosigned as witness.example+") == 2
    kept = (tmp_path / "home" / "checkpoint").read_text()
    # The past is another one: what the witness kept proves it.
    seen = read_note(kept).checkpoint
    last = LedgerCheckpoint.objects.filter(workspace=cast.workspace).order_by("-size").first()
    assert last
    forged = read_note(last.note)
    assert forged.checkpoint.size == seen.size
    note = str(sign_checkpoint(ensure_key(), cast.workspace.pk, seen.size + 7, bytes(32)))
    LedgerCheckpoint.objects.create(workspace=cast.workspace, size=seen.size + 7, root=bytes(32), note=note)
    with pytest.raises(CommandError, match=r"answers 409|were rewritten"):
        witness()
    assert (tmp_path / "home" / "checkpoint").read_text() == kept


def test_an_idempotency_key_that_is_free_again_changes_nothing_that_was_entered(
    cast: Cast, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_key(cast, "ingest", "read")

    def post(line: bytes) -> int:
        sent = {"HTTP_IDEMPOTENCY_KEY": "k1", **key}
        return client.post("/api/v1/messages", line, content_type="text/plain", **sent).status_code

    assert post(b"one\n") == 202
    resolve_all()
    enter_new(at_once=True)
    monkeypatch.setattr(ingest, "REPLAY_WINDOW", timedelta(0))
    assert post(b"two\n") == 202
    resolve_all()
    enter_new(at_once=True)
    assert Record.objects.count() == 2
    assert verify_ledger(cast.workspace.pk).holds


def test_no_proof_tells_of_a_review_that_is_still_blind(cast: Cast, client: Client) -> None:
    deliver(cast, write_log(0))
    resolve_all()
    conversation = Conversation.objects.get()
    queue = create_queue(membership=cast.owner, name="two", reviewers=2)
    fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=cast.owner)
    seen, key = bytes(conversation.settled_digest or b""), make_key(cast, "read", "trail")

    def judge(membership: Membership) -> Review:
        item = claim(membership=membership, item=queue.items.get())
        return judge_item(membership=membership, item=item, verdict="fine", comment="", seen=seen, answers=[])

    def ask(kind: str, subject: object) -> int:
        return client.get(f"{ROOT}/proofs/inclusion", {"kind": kind, "id": str(subject)}, **key).status_code

    def look(membership: Membership, subject: object) -> int:
        checkpoint = get_checkpoint(cast.workspace.pk)
        assert checkpoint
        return len(look_up(checkpoint, str(subject), reader=membership))

    withdrawn = judge(cast.auditor)
    withdraw_verdict(membership=cast.auditor, item=queue.items.get())
    verdict = judge(cast.auditor)
    enter_new(at_once=True)
    told = [uuid.UUID(int=pk) for pk in Deed.objects.filter(code="verdict.given").values_list("pk", flat=True)]
    hidden = [("verdict", verdict.pk), ("verdict-withdrawn", withdrawn.pk), *(("action", each) for each in told)]
    assert [ask(*each) for each in hidden] == [404] * 4
    assert [look(cast.owner, subject) for _, subject in hidden] == [0] * 4
    assert all(look(cast.auditor, subject) for _, subject in hidden), "one knows what one said oneself"
    judge(cast.owner)
    enter_new(at_once=True)
    assert [ask(*each) for each in hidden] == [200] * 4
    assert all(look(cast.owner, subject) for _, subject in hidden)
