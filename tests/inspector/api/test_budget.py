"""No answer weighs more than two mebibytes, whatever a record holds; what is left out is named, and can be had."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from inspector.bounds import MAX_ANSWER_BYTES, fit_answer
from inspector.intake.readings import MAX_BYTES_LOOKED_THROUGH
from inspector.threads.models import Message
from tests.timing import is_within

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db
TEXT = "a long story about the sea " * 40_000
MANY = {"clowl": "0.2", "mid": "m1", "cid": "c", "ts": 1763700000, "p": "INF", "from": "a", "to": "b"}
RECORDS = {
    "a long text": json.dumps({"raw": TEXT, "id": "m1"}),
    "many fields": json.dumps(MANY | {"body": {"t": "x", "d": {f"k{number}": number for number in range(9_000)}}}),
    "a deep nest": json.dumps(MANY | {"body": {"t": "x", "d": {"n": [[[[["x" * 100_000]]]]] * 5}}}),
    "many words": json.dumps({"raw": "?Uk/co" + "/co" * 5_000, "id": "m1"}),
    "no ASCII": json.dumps({"raw": "\N{DROMEDARY CAMEL}" * 400_000, "id": "m1"}, ensure_ascii=False),
}


# Of each dialect what takes longest for its length, as far as is known.
DEAREST = {
    "lambda_lang": "?Uk/co" + "/co" * 30_000,
    "nslip": "@a3|f0|c1|S0|d1|T1|k1|" + 't"x"|' * 20_000 + "#",
    "clowl": json.dumps(MANY | {"body": {"t": "x", "d": {f"k{number}": number for number in range(8_000)}}}),
    "agent_lingua": "\U0001f47d73|@1|$j:" + json.dumps([{"a": number} for number in range(9_000)]),
    "prose": TEXT,
}


@pytest.mark.parametrize("dialect", DEAREST)
def test_the_largest_body_is_decoded_in_a_second_or_two(dialect: str, token: str) -> None:
    body = DEAREST[dialect].encode()[: settings.LIMITS["decode_bytes"]].decode(errors="ignore").encode()

    def decode() -> float:
        started = time.thread_time()
        answer = Client().post(
            f"/api/v1/decode?format=tree&dialect={dialect}",
            body,
            content_type="text/plain",
            headers={"Authorization": f"Bearer {token}"},
        )
        assert answer.status_code == 200, answer.content[:300]
        return time.thread_time() - started

    assert is_within(2.5, decode)


def get(token: str, path: str, **query: Any) -> Any:
    answer = Client().get(f"/api/v1{path}", query, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.content[:500]
    assert len(answer.content) <= MAX_ANSWER_BYTES * 1.1, f"{path} weighs {len(answer.content):,} bytes"
    return answer.json()


@pytest.mark.parametrize("kind", RECORDS)
def test_an_answer_about_a_large_record_stays_small_and_says_what_it_leaves_out(
    kind: str, cast: Cast, token: str
) -> None:
    deliver(cast, RECORDS[kind].encode() + b"\n")
    settle_all()
    message = Message.objects.get()
    get(token, "/messages")
    detail = get(token, f"/messages/{message.pk}")
    assert detail["cut"], "nothing was left out of what cannot be whole"
    assert all(cut["total"] > 0 for cut in detail["cut"])
    for path in ("/conversations", f"/conversations/{message.conversation_id}", "/agents"):
        get(token, path)
    found, offset = 0, 0
    for _ in range(3):
        window = get(token, f"/messages/{message.pk}/fields", offset=offset, limit=700)
        found += len(window["results"])
        offset = window["next"]
        if offset is None:
            break
    if len(message.record.source) > MAX_BYTES_LOOKED_THROUGH:
        assert (found, window["cut"]) == (
            0,
            [{"path": "results", "total": len(message.record.source), "unit": "bytes"}],
        )
    else:
        assert found > 0


def test_the_windows_of_fields_give_the_whole_tree(cast: Cast, token: str) -> None:
    deliver(cast, json.dumps(MANY | {"body": {"t": "x", "d": {"a": [1, 2, {"b": "c"}]}}}).encode() + b"\n")
    settle_all()
    message = Message.objects.get()

    def flatten(fields: list[dict[str, Any]], depth: int = 0) -> list[tuple[int, str, str]]:
        return [
            row
            for field in fields
            for row in [(depth, field["name"], field["raw"]), *flatten(field["children"], depth + 1)]
        ]

    whole, offset = [], 0
    while offset is not None:
        window = get(token, f"/messages/{message.pk}/fields", offset=offset, limit=7)
        whole += [(each["depth"], each["name"], each["raw"]) for each in window["results"]]
        offset = window["next"]
    detail = get(token, f"/messages/{message.pk}")
    assert whole == flatten(detail["fields"])
    assert "cut" not in detail


@pytest.mark.parametrize("form", ["json", "tree"])
def test_decoding_a_small_body_gives_no_huge_answer(form: str, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.LIMITS, "decode_bytes", 256 * 1024)
    body = json.dumps(MANY | {"body": {"t": "x", "d": {f"k{number}": number for number in range(12_000)}}})
    answer = Client().post(
        f"/api/v1/decode?format={form}", body, content_type="text/plain", headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 200
    assert len(answer.content) <= MAX_ANSWER_BYTES * 1.1
    assert answer.json()["cut"]


def test_a_page_of_long_texts_keeps_its_rows_and_its_cursor(cast: Cast, token: str) -> None:
    lines = [json.dumps({"raw": f"{number} {TEXT[:150_000]}", "id": f"m{number}"}) for number in range(30)]
    deliver(cast, "\n".join(lines).encode() + b"\n")
    settle_all()
    page = get(token, "/messages", limit=20)
    rest = get(token, "/messages", limit=20, cursor=page["next"])
    assert len({row["id"] for row in page["results"] + rest["results"]}) == 30
    assert {cut["unit"] for cut in page["cut"]} == {"characters"}


def test_a_small_answer_is_given_as_it_is() -> None:
    answer = {"results": [{"a": 1, "b": [None, True, 2.5, "x"], "c": {"d": "e"}}], "next": None}
    assert fit_answer(answer) == answer
