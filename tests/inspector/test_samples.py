"""The sample logs: their counts by rules of their own, what the README says of them, and what is told in them."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.test import Client

import dialects
from inspector.audit.models import Finding
from inspector.embedded.samples import CONTENT_TYPES
from inspector.threads.models import Message, Trace

from .conftest import resolve_all

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
README = (SAMPLES / "README.md").read_text()
FILES = sorted(path for path in SAMPLES.iterdir() if path.name not in ("README.md", "keys.json"))
STORY = SAMPLES / "1-invoice-run.jsonl"
TRACE = "t-7c41e09ab35d"


# An independent count: each rule takes a file's bytes apart with the standard library alone.
def split_lines(data: bytes) -> list[bytes]:
    return [line for line in data.splitlines() if line.strip()]


def split_json(data: bytes) -> list[bytes]:
    found = json.loads(data)
    if isinstance(found, dict) and "resourceSpans" in found:
        scopes = [scope for each in found["resourceSpans"] for scope in each["scopeSpans"]]
        found = [span for scope in scopes for span in scope["spans"]]
    return [json.dumps(row).encode() for row in (found if isinstance(found, list) else [found])]


def split_rows(data: bytes) -> list[bytes]:
    table = csv.reader(io.StringIO(data.decode("utf-8", "surrogateescape")))
    return ["\x1f".join(row).encode("utf-8", "surrogateescape") for row in list(table)[1:]]


SPLIT: dict[str, Callable[[bytes], list[bytes]]] = {
    ".jsonl": split_lines,
    ".txt": split_lines,
    ".log": split_lines,
    ".json": split_json,
    ".csv": split_rows,
}


def count(path: Path) -> tuple[int, int, int, int]:
    """received, stored, duplicate and quarantined as a reader of the file would count them."""
    rows = SPLIT[path.suffix](path.read_bytes())
    unreadable = [row for row in rows if "�" in row.decode("utf-8", "replace")]
    # Only a record with an id of its own can be the same one said again.
    named = [row for row in rows if row not in unreadable and re.search(rb'"mid":|\x1fg-\d+\x1f', row)]
    duplicate = len(named) - len(set(named))
    return len(rows), len(rows) - duplicate - len(unreadable), duplicate, len(unreadable)


def read_table() -> dict[str, tuple[int, ...]]:
    rows = re.findall(r"^\| `([^`]+)` \|[^|]*\|" + r" *(\d+) \|" * 4 + "$", README, re.MULTILINE)
    return {name: tuple(map(int, numbers)) for name, *numbers in rows}


def records_of(path: Path) -> Iterator[dialects.LogRecord]:
    form = {".json": None, ".csv": "csv"}.get(path.suffix, "lines")
    for item in dialects.read_log(path.read_bytes(), dialects.LogOptions(form=form)):
        if isinstance(item, dialects.LogRecord):
            yield item


def readings_of(path: Path) -> list[dialects.Reading]:
    return [dialects.read(record.wire, record.envelope) for record in records_of(path) if record.wire is not None]


def demonstration_keys() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((SAMPLES / "keys.json").read_text())["keys"]
    return found


def key_list() -> dialects.KeyList:
    decode = base64.b64decode
    return dialects.KeyList(
        dialects.Key(session=key["session"], private=decode(key["private"]), peer=decode(key["peer"]))
        for key in demonstration_keys()
    )


def sealed_envelopes() -> list[dict[str, Any]]:
    return [json.loads(line) for line in STORY.read_text().splitlines() if "$e:" in line]


def test_readme_lists_every_file_with_the_counts_that_a_plain_count_gives() -> None:
    assert read_table() == {path.name: count(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_framing_finds_as_many_records_as_a_plain_count(path: Path) -> None:
    records = list(records_of(path))
    quarantined = sum(record.problem is not None for record in records)
    assert (len(records), quarantined) == (count(path)[0], count(path)[3])


def post(client: Client, token: str, path: Path) -> tuple[int, ...]:
    """Post a file as `make run` does: received, stored, duplicate and quarantined as the receipt has them."""
    key = {"Authorization": f"Bearer {token}"}
    answer = client.post("/api/v1/messages", path.read_bytes(), CONTENT_TYPES[path.suffix], headers=key)
    assert answer.status_code == 202, answer.content
    return tuple(answer.json()[name] for name in ("received", "stored", "duplicate", "quarantined"))


@pytest.mark.django_db
def test_posting_the_files_in_the_order_of_their_names_gives_the_readmes_counts(client: Client, token: str) -> None:
    assert {path.name: post(client, token, path) for path in FILES} == read_table()


def test_each_dialect_is_recognised_in_its_own_file_and_all_four_in_the_story() -> None:
    wanted = {"2-": "clowl", "3-": "nslip", "4-": "lambda_lang", "5-": "agent_lingua", "6-": "clowl"}
    story, wanted = set(wanted.values()), wanted | {"7-": "otel"}
    for path in FILES:
        spoken = {reading.dialect for reading in readings_of(path)} - {"prose"}
        assert spoken == ({wanted[path.name[:2]]} if path.name[:2] in wanted else story), path.name


@pytest.mark.django_db
def test_what_the_buyer_did_is_read_within_the_spans_and_found(client: Client, token: str) -> None:
    post(client, token, SAMPLES / "7-board-order-trace.json")
    resolve_all()
    told = {message.english: message for message in Message.objects.all()}
    reported = next(each for text, each in told.items() if text.startswith("buyer reports to planner"))
    assert "eur = 388" in reported.english
    assert (reported.dialect, reported.carrier) == ("clowl", "otel")
    ordered = next(each for text, each in told.items() if text.startswith("buyer calls the tool place_order"))
    assert "eur = 640" in ordered.english
    assert (ordered.dialect, ordered.carrier) == ("mcp", "otel")
    # Whoever answers a call is not who made it.
    assert {each.sender for text, each in told.items() if "answers (request 12" in text and each.part > 1} == {""}
    found = Finding.objects.get(rule="tool-not-offered")
    assert (found.record_id, found.part) == (ordered.record_id, ordered.part)
    assert Trace.objects.filter(native_id="8c2f61d07be94a1f9d3e5a7706c1b24e").count() == 1


def test_one_trace_joins_the_story_and_nothing_else() -> None:
    for path in FILES:
        traces = {message.trace_id for reading in readings_of(path) for message in reading.messages}
        if path == STORY or path.name.startswith("6-"):
            assert traces == {TRACE}, path.name
        else:
            assert TRACE not in traces, path.name


@pytest.mark.django_db
def test_the_story_is_settled_as_one_trace_in_four_dialects(client: Client, token: str) -> None:
    for path in FILES:
        post(client, token, path)
    resolve_all()
    trace = Trace.objects.get(native_id=TRACE)
    told = Message.objects.filter(trace_id=TRACE)
    assert trace.message_count == told.count() == 49
    assert set(trace.dialects) == {"clowl", "nslip", "lambda_lang", "agent_lingua"}
    assert trace.conversation_count == told.values("conversation").distinct().count() == 3
    # What came from another place, and later, answers what it names.
    summary = told.get(native_id="c16")
    assert summary.parent == told.get(native_id="c15").pk


def test_no_envelope_of_the_story_disagrees_with_its_wire() -> None:
    notes = [note for reading in readings_of(STORY) for note in reading.notes]
    assert not [note for note in notes if note.code == "envelope.disagrees"]


def test_the_story_holds_what_the_readme_says() -> None:
    acts = [message for reading in readings_of(STORY) for message in reading.messages]
    said = {message.performative for message in acts}
    assert {"delegate", "failure", "cancel", "query", "handshake", "done", "evaluate"} <= said
    judges = [message.sender for message in acts if message.performative == "evaluate"]
    assert judges == ["3", "3", "2"], "the third batch is passed by the executor, whose work it is"
    defined = {entry.name: entry.value for message in acts for entry in message.defines}
    assert defined.get("vf") == "count the files"
    question = next(message for message in acts if message.message_id == "c12")
    assert question.receivers == ("ledger",)
    assert not [message for message in acts if message.sender == "ledger"], "the ledger never answers"


def test_the_sealed_messages_stay_sealed_without_a_key_and_open_with_the_demonstration_key() -> None:
    envelopes = sealed_envelopes()
    assert len(envelopes) == 2
    for envelope, content in zip(envelopes, ({"p": 277}, {"p": 274, "e": 3}), strict=True):
        around = dialects.envelope_of(envelope)
        closed = dialects.decode(envelope["raw"], around).messages[0]
        assert closed.security.encrypted
        assert not closed.security.opened
        opened = dialects.decode(envelope["raw"], around, keys=key_list()).messages[0]
        assert opened.security.opened
        assert all(str(value) in opened.sentence for value in content.values()), opened.sentence


def test_the_sealed_messages_are_what_the_demonstration_key_makes_of_their_text() -> None:
    (key,) = demonstration_keys()
    private = X25519PrivateKey.from_private_bytes(base64.b64decode(key["private"]))
    shared = private.exchange(X25519PublicKey.from_public_bytes(base64.b64decode(key["peer"])))
    session_key = HKDF(algorithm=SHA256(), length=32, salt=None, info=key["session"].encode()).derive(shared)
    for envelope, title in zip(sealed_envelopes(), ("direct debits", "3 mandates have expired"), strict=True):
        nonce, sealed = (base64.b64decode(part) for part in re.findall(r"\$e:([^:]+):([^\s|]+)", envelope["raw"])[0])
        text = AESGCM(session_key).decrypt(nonce, sealed, None)
        assert title in base64.b64decode(text.removeprefix(b"j:")).decode()
        assert AESGCM(session_key).encrypt(nonce, text, None) == sealed


def test_the_readmes_python_prints_both_sealed_messages_opened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLES.parent)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(code, {})
    printed = capsys.readouterr().out
    assert "direct debits" in printed
    assert "3 mandates have expired" in printed
