"""Messages: what a key may see of them, how much an answer holds, and that the audit log has reads."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.db.models import F
from django.test import Client
from django.utils import timezone

from inspector.accounts.models import ApiKey, ApiKeyReads
from inspector.accounts.services import create_api_key, record_reads
from inspector.api import endpoints
from inspector.bounds import MAX_ANSWER_BYTES, fit_answer
from inspector.intake.readings import MAX_BYTES_LOOKED_THROUGH
from inspector.threads.models import Message
from inspector.trail.models import Deed
from inspector.worker import tidy
from tests.timing import is_within

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db
LINE = b'{"clowl":"0.3","mid":"s1","p":"REQ","from":"a","to":"b","cid":"c","auth":"opensesame-7731","body":{"t":"x"}}\n'


def test_raw_finds_masked_characters_only_for_a_key_that_may_see_them(cast: Cast, client: Client) -> None:
    deliver(cast, LINE)
    resolve_all()
    counts = {}
    for name, scopes in (("plain", ["read"]), ("exact", ["read", "secrets"])):
        token = create_api_key(workspace=cast.workspace, name=name, scopes=scopes, created_by=cast.owner.user)[1]
        answer = client.get(
            "/api/v1/messages", {"q": 'raw:"opensesame-7731"'}, headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code == 200
        counts[name] = len(answer.json()["results"])
    assert counts == {"plain": 0, "exact": 1}


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


def get_within(token: str, path: str, **query: Any) -> Any:
    answer = Client().get(f"/api/v1{path}", query, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.content[:500]
    assert len(answer.content) <= MAX_ANSWER_BYTES * 1.1, f"{path} weighs {len(answer.content):,} bytes"
    return answer.json()


@pytest.mark.parametrize("kind", RECORDS)
def test_an_answer_about_a_large_record_stays_small_and_says_what_it_leaves_out(
    kind: str, cast: Cast, token: str
) -> None:
    deliver(cast, RECORDS[kind].encode() + b"\n")
    resolve_all()
    message = Message.objects.get()
    get_within(token, "/messages")
    detail = get_within(token, f"/messages/{message.pk}")
    assert detail["cut"], "nothing was left out of what cannot be whole"
    assert all(cut["total"] > 0 for cut in detail["cut"])
    for path in ("/conversations", f"/conversations/{message.conversation_id}", "/agents"):
        get_within(token, path)
    found, offset = 0, 0
    for _ in range(3):
        window = get_within(token, f"/messages/{message.pk}/fields", offset=offset, limit=700)
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
    resolve_all()
    message = Message.objects.get()

    def flatten(fields: list[dict[str, Any]], depth: int = 0) -> list[tuple[int, str, str]]:
        return [
            row
            for field in fields
            for row in [(depth, field["name"], field["raw"]), *flatten(field["children"], depth + 1)]
        ]

    whole, offset = [], 0
    while offset is not None:
        window = get_within(token, f"/messages/{message.pk}/fields", offset=offset, limit=7)
        whole += [(each["depth"], each["name"], each["raw"]) for each in window["results"]]
        offset = window["next"]
    detail = get_within(token, f"/messages/{message.pk}")
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
    resolve_all()
    page = get_within(token, "/messages", limit=20)
    rest = get_within(token, "/messages", limit=20, cursor=page["next"])
    assert len({row["id"] for row in page["results"] + rest["results"]}) == 30
    assert {cut["unit"] for cut in page["cut"]} == {"characters"}


def test_a_small_answer_is_given_as_it_is() -> None:
    answer = {"results": [{"a": 1, "b": [None, True, 2.5, "x"], "c": {"d": "e"}}], "next": None}
    assert fit_answer(answer) == answer


LOG = b'{"clowl":"0.2","mid":"m1","p":"INF","from":"oscar","to":["radar"],"cid":"c1","body":{"t":"paid 100"}}\n'


@pytest.fixture
def log(cast: Cast) -> Message:
    deliver(cast, LOG)
    resolve_all()
    return Message.objects.get()


def read_path(token: str, path: str) -> Any:
    return Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})


def let_an_hour_pass() -> None:
    ApiKeyReads.objects.update(hour=F("hour") - timedelta(hours=2))


def test_an_entry_for_each_key_hour_and_kind(cast: Cast, log: Message, token: str) -> None:
    _, other = create_api_key(workspace=cast.workspace, name="other", scopes=["read"])
    before = Deed.objects.filter(code="api-key.read").count()
    for _ in range(7):
        assert read_path(token, f"messages/{log.pk}").status_code == 200
    for path in ("messages?q=paid", f"conversations/{log.conversation_id}", f"records/{log.record_id}/raw"):
        answer = read_path(token, path)
        assert answer.status_code == 200
        answer.getvalue()
    assert read_path(other, "messages").status_code == 200
    assert record_reads() == 0, "this hour is not over"
    assert Deed.objects.filter(code="api-key.read").count() == before == 0
    let_an_hour_pass()
    tidy()
    told = [
        (deed.actor_kind, deed.actor_name, deed.details["what"], deed.details["answers"])
        for deed in Deed.objects.filter(code="api-key.read").order_by("sequence")
    ]
    one, two = (str(ApiKey.objects.get(prefix=each.split("_")[1])) for each in (token, other))
    assert sorted(told) == sorted(
        [
            ("api-key", one, "messages", 8),
            ("api-key", one, "conversations", 1),
            ("api-key", one, "exact bytes", 1),
            ("api-key", two, "messages", 1),
        ]
    )
    assert not ApiKeyReads.objects.exists()
    assert record_reads() == 0, "each is told once"
    assert "paid" not in json.dumps(list(Deed.objects.filter(code="api-key.read").values("told", "details")))


def test_what_is_refused_or_not_there_is_no_read(cast: Cast, log: Message, token: str, stranger_token: str) -> None:
    for key, path, status in (
        (token, "messages?limit=0", 400),
        (token, "conversations/019dd7a2-5d3a-7c11-9f7e-2f4f6a1b8e55", 404),
        (stranger_token, f"messages/{log.pk}", 404),
        ("aci_no_key", "messages", 401),
        (token, "limits", 200),
    ):
        assert read_path(key, path).status_code == status, path
    assert not ApiKeyReads.objects.exists()


def test_what_cannot_be_written_down_is_not_shown(log: Message, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(endpoints, "add_reads", fail)
    answer = read_path(token, f"messages/{log.pk}")
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    assert "paid" not in answer.content.decode()


def test_reads_of_this_hour_stand_in_one_row(log: Message, token: str) -> None:
    for _ in range(3):
        read_path(token, "messages")
    assert ApiKeyReads.objects.get().count == 3
    assert timezone.now() - ApiKeyReads.objects.get().hour < timedelta(hours=1)


def test_what_is_left_of_a_key_that_is_gone_hinders_nobody(cast: Cast, log: Message, token: str) -> None:
    gone, other = create_api_key(workspace=cast.workspace, name="gone", scopes=["read"])
    for _ in range(2):
        assert read_path(other, "messages").status_code == 200
    gone.delete()
    assert read_path(token, "messages").status_code == 200
    assert ApiKeyReads.objects.get().key.prefix == token.split("_")[1]
