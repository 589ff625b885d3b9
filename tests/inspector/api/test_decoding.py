"""POST decode and encode: what the shell prints is what they answer, within limits, and nothing of it is kept."""

from __future__ import annotations

import base64
import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

import dialects
from inspector.api.decoding import DECODED, MAX_RECORDS, describe_type, describe_value
from inspector.intake.models import Delivery, Record
from tests.codecs.test_shell import run_here

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = sorted(path for path in (ROOT / "samples").iterdir() if path.suffix in (".jsonl", ".log", ".txt", ".csv"))
KINDS = {".jsonl": "application/x-ndjson", ".csv": "text/csv"}


def send(token: str, address: str, body: Any, kind: str = "application/json", **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    client = Client(raise_request_exception=False)
    return client.post(
        f"/api/v1/{address}", data, content_type=kind, headers={"Authorization": f"Bearer {token}", **headers}
    )


def print_shell(*arguments: str, fed: bytes) -> list[Any]:
    told = run_here(*arguments, given=fed)
    assert not told.stderr, told.stderr
    return [json.loads(line) for line in told.stdout.splitlines()]


@pytest.mark.parametrize("form", ["json", "tree"])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_log_is_decoded_as_the_shell_decodes_it(token: str, path: Path, form: str) -> None:
    body = b"".join(path.read_bytes().splitlines(keepends=True)[:25])
    response = send(token, f"decode?format={form}", body, KINDS.get(path.suffix, "text/plain"))
    assert response.status_code == 200, response.content
    records = response.json()["records"]
    assert len(records) > 3
    assert records == print_shell("decode", "--format", form, fed=body)


def test_an_envelope_with_prior_and_keys_is_decoded_as_the_shell_decodes_it(token: str) -> None:
    lines = [
        {"raw": "!re", "from": "desk", "prior": ["{def:re=retry}", {"raw": "?Uk/co", "from": "oscar"}]},
        {"raw": "?Uk/co", "dialect": "prose", "prior": []},
        {"raw": "👽42|@H|~+1d|$bWVldGluZw==", "keys": [{"session": None, "psk": base64.b64encode(b"k" * 32).decode()}]},
        {"raw": "x", "prior": 5},
        {"raw": "x", "keys": [{"psk": "not Base64!"}]},
        {"raw": "x", "keys": [7]},
    ]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    answered = send(token, "decode?format=tree", body, "application/x-ndjson").json()["records"]
    assert answered == print_shell("decode", "--envelopes", "--format", "tree", fed=body)
    assert [record["error"] is not None for record in answered[3:]] == [True, True, True]


def test_one_envelope_as_json_opens_what_is_sealed_with_its_key(token: str) -> None:
    vectors = json.loads((ROOT / "tests/codecs/vectors/agent_lingua.json").read_text())["valid"]
    case = next(case for case in vectors if case.get("keys") and case["messages"][-1].get("security", {}).get("opened"))
    envelope = {
        "raw": case["wire"],
        "prior": case.get("prior", []),
        "keys": case["keys"],
        **(case.get("envelope") or {}),
    }
    (opened,) = send(token, "decode", envelope).json()["records"]
    (sealed,) = send(token, "decode", {**envelope, "keys": []}).json()["records"]
    assert opened["messages"][-1]["security"]["opened"]
    assert not sealed["messages"][-1]["security"]["opened"]


def test_a_log_is_told_in_the_context_of_what_came_before(token: str) -> None:
    body = b'{"raw":"?Uk/co","from":"a","conversation":"c"}\n{"raw":".Uk/co","from":"b","conversation":"c"}\n'
    records = send(token, "decode", body, "application/x-ndjson").json()["records"]
    assert [record["index"] for record in records] == [0, 1]
    assert all(record["messages"][0]["conversation_id"] == "c" for record in records)


def test_a_dialect_can_be_named(token: str) -> None:
    records = send(token, "decode?dialect=prose", b"?Uk/co", "text/plain").json()["records"]
    assert records[0]["dialect"] == "prose"
    assert send(token, "decode", b"?Uk/co", "text/plain").json()["records"][0]["dialect"] == "lambda_lang"


def test_packed_text_is_unfolded(token: str) -> None:
    packed = gzip.compress(b"one\ntwo\n")
    assert len(send(token, "decode", packed, "text/plain", **{"Content-Encoding": "gzip"}).json()["records"]) == 2


@pytest.mark.parametrize(
    ("address", "body", "kind", "status"),
    [
        ("decode", b"x" * 300_000, "text/plain", 413),
        ("decode", b"x\n" * (MAX_RECORDS + 1), "text/plain", 413),
        ("decode", b"x", "image/png", 415),
        ("decode", b"", "text/plain", 400),
        ("decode?format=english", b"x", "text/plain", 400),
        ("decode?dialect=dutch", b"x", "text/plain", 400),
        ("decode?tree=1", b"x", "text/plain", 400),
        ("encode?dialect=nslip", b"x" * 300_000, "application/json", 413),
        ("encode?dialect=nslip", b"[]", "text/plain", 415),
        ("encode?dialect=nslip", b"{", "application/json", 400),
        ("encode?dialect=nslip", b"[" * 60_000, "application/json", 400),
        ("encode", b'{"messages": []}', "application/json", 422),
        ("encode", b"7", "application/json", 422),
    ],
)
def test_what_cannot_be_taken_is_refused_with_a_reason(
    token: str, address: str, body: bytes, kind: str, status: int
) -> None:
    response = send(token, address, body, kind)
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    assert len(response.json()["detail"]) > 10


@pytest.mark.parametrize(
    "wire", ['@a3|f0|c1|S0|d1|T1|k4|t"count aisle 6"#', "?Uk/co", "👽42|@H|~+1d|$bWVldGluZw==", "hello"]
)
def test_a_decoded_record_is_encoded_again(token: str, wire: str) -> None:
    (record,) = send(token, "decode", {"raw": wire}).json()["records"]
    response = send(token, "encode", record)
    assert response.status_code == 200, response.content
    assert response.json() == {"dialect": record["dialect"], "wire": wire, "losses": []}
    # The bare list of messages does as well, and another dialect says what it cannot hold.
    assert send(token, f"encode?dialect={record['dialect']}", record["messages"]).json()["wire"] == wire
    other = send(token, "encode?dialect=prose", record["messages"])
    assert other.status_code in (200, 422), other.content


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([{"target": {"raw": "x", "name": "y", "kind": 5, "age": 1}}], {"path": "$[0].target.age"}),
        ([{"receivers": "radar"}], {"path": "$[0].receivers"}),
        ({"messages": []}, {"path": "$.messages"}),
        ([{"performative": "inform", "content": {"a": 1}, "sender": "x"}], {"dialect": "nslip", "part": 1}),
    ],
)
def test_what_cannot_be_written_is_told_precisely(token: str, given: Any, named: dict[str, Any]) -> None:
    response = send(token, "encode?dialect=nslip", given)
    assert response.status_code == 422, response.content
    said = response.json()
    assert {name: said[name] for name in named} == named


def test_a_number_that_json_has_not_is_answered_as_text(token: str) -> None:
    body = (
        b'{"p":"REQ","mid":"m","from":"a","to":"b","cid":"c","body":{"t":"x","d":{"n":1e400,"m":' + b"9" * 4000 + b"}}}"
    )
    response = send(token, "decode?format=tree", body)
    assert response.status_code == 200
    assert response.json()["records"][0]["dialect"] == "clowl"


def test_nothing_of_it_is_stored_logged_or_cached(
    token: str, caplog: pytest.LogCaptureFixture, django_assert_max_num_queries: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("django.db.backends").setLevel(logging.DEBUG)
    # The key is looked up, its use is noted and counted: no query has anything to do with the text.
    with django_assert_max_num_queries(3) as asked:
        response = send(token, "decode", {"raw": "the canary sings", "prior": ["canary"]})
    assert response["Cache-Control"] == "no-store"
    assert "canary" in response.content.decode()
    assert "canary" not in caplog.text
    assert not any("canary" in query["sql"] for query in asked.captured_queries)
    assert not Record.objects.exists()
    assert not Delivery.objects.exists()


def test_the_components_name_what_the_codecs_say() -> None:
    shown = dialects.show_json(0, dialects.decode("?Uk/co"), is_tree=True)
    assert set(DECODED["properties"]) == set(shown)
    assert set(describe_value(dialects.Message)["properties"]) == set(dialects.Message().to_dict())
    with pytest.raises(TypeError):
        describe_type(Path)
