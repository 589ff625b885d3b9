"""What stands in an address or a header is read strictly; each refusal is a problem document that says what to do."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inspector.accounts.limits import reserve
from inspector.accounts.models import ApiKey, Pace
from inspector.accounts.services import create_api_key
from inspector.api.endpoints import admits
from inspector.api.problems import TITLES
from inspector.intake.models import Delivery, Record
from inspector.threads.models import Message

from ..conftest import Cast, deliver, resolve_all
from .clients import enter
from .test_ingest import URL, counts, post

pytestmark = pytest.mark.django_db
NO_ID = "00000000-0000-0000-0000-000000000000"


def ask(token: str, address: str, method: str = "GET", **headers: str) -> Any:
    client = Client(raise_request_exception=False)
    return client.generic(method, f"/api/{address}", headers={"Authorization": f"Bearer {token}", **headers})


@pytest.mark.parametrize(
    ("address", "parameter", "allowed"),
    [
        ("v1/messages?limit=0", "limit", "from 1 to 200"),
        ("v1/messages?limit=201", "limit", "from 1 to 200"),
        ("v1/messages?limit=abc", "limit", "from 1 to 200"),
        ("v1/messages?limit=", "limit", "from 1 to 200"),
        ("v1/messages?limit=%D9%A3", "limit", "from 1 to 200"),
        ("v1/messages?limit=5&limit=6", "limit", "one"),
        ("v1/messages?dialect=clowl", "dialect", "['q', 'cursor', 'limit', 'fields']"),
        ("v1/messages?format=xml", "format", "['q', 'cursor', 'limit', 'fields']"),
        ("v1/messages?q=" + "a" * 2001, "q", "2000"),
        ("v1/conversations?state=zzz", "state", "open, done, failed, cancelled, stalled"),
        ("v1/conversations?dialect=dutch", "dialect", "nslip"),
        ("v1/conversations?cursor=zzz", "cursor", None),
        (f"v1/messages/{NO_ID}/fields?offset=-3", "offset", "from 0"),
        (f"v1/deliveries/{NO_ID}?after=-1", "after", "from 0"),
        (f"v1/records/{NO_ID}/raw?part=all", "part", "source, wire"),
        (f"v1/messages/{NO_ID}?tree=1", "tree", "[]"),
        ("v1/limits?x=%00%0a", "x", "[]"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_allowed(
    token: str, address: str, parameter: str, allowed: str | None
) -> None:
    response = ask(token, address)
    assert response.status_code == 400, response.content
    assert response["Content-Type"] == "application/problem+json"
    said = response.json()
    assert said["parameter"] == parameter
    assert parameter in said["detail"]
    assert allowed is None or allowed in str(said["allowed"])


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/v1/limits", {"Host": "elsewhere.example"}, 400),
        ("/api/v1/limits", {"Host": "a b"}, 400),
        ("/v1/traces", {"Host": "elsewhere.example"}, 400),
        ("/v1/metrics", {}, 404),
        ("/v1/traces/", {}, 404),
    ],
)
def test_what_no_endpoint_refuses_is_a_problem_too(path: str, headers: dict[str, str], status: int) -> None:
    client = Client(raise_request_exception=False)
    response = client.get(path, headers=headers)
    assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")
    assert (response.json()["status"], response.json()["title"]) == (status, TITLES[status])
    assert client.get("/nothing/there", headers=headers)["Content-Type"].startswith("text/html")


def test_a_failure_before_any_endpoint_is_a_problem_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for failure, status in ((RuntimeError("inside"), 500), (OperationalError("inside"), 503)):
        failing = Mock(side_effect=failure)
        monkeypatch.setattr("inspector.api.probes.HostMiddleware.process_request", failing)
        response = Client(raise_request_exception=False).get("/api/v1/limits")
        assert (response.status_code, response.json()["status"]) == (status, status)
        assert "inside" not in response.json()["detail"]


def test_a_member_given_twice_is_refused(cast: Cast) -> None:
    client = enter(cast, cast.auditor.user, "export")
    for body, member in (
        (b'{"form":"jsonl","form":"csv"}', "form"),
        (b'{"form":"jsonl","nothing":{"a":1,"b":2,"a":1}}', "a"),
    ):
        response = client.post("/api/v1/exports", body, content_type="application/json")
        assert (response.status_code, response.json()["member"]) == (422, member)
        assert "more than once" in response.json()["detail"]


def test_conversations_are_filtered(cast: Cast, token: str) -> None:
    deliver(
        cast, b'{"raw":"?Uk/co","from":"oscar","conversation":"a"}\n{"raw":"hello","from":"radar","conversation":"b"}\n'
    )
    resolve_all()
    count = lambda query: len(ask(token, f"v1/conversations?{query}").json()["results"])  # noqa: E731
    assert [count(query) for query in ("", "dialect=prose", "agent=oscar", "dialect=clowl")] == [2, 1, 1, 0]
    for address in ("conversations", "traces"):
        for name in ("nobody", "OSCAR"):
            refused = ask(token, f"v1/{address}?agent={name}")
            assert (refused.status_code, refused.json()["parameter"]) == (400, "agent")
            assert refused.json()["detail"].startswith(f"there is no agent '{name}': GET /api/v1/agents")
    assert count("state=open") + count("state=done") + count("state=stalled") == 2


@pytest.mark.parametrize("accept", ["*/*", "application/*", "application/json", "text/html, */*;q=0.1", ""])
def test_an_answer_that_is_admitted_is_given(token: str, accept: str) -> None:
    assert ask(token, "v1/limits", Accept=accept).status_code == 200


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "application/json;q=0, */*", "nonsense"])
def test_an_answer_that_is_not_admitted_is_refused(token: str, accept: str) -> None:
    response = ask(token, "v1/limits", Accept=accept)
    assert response.status_code == 406
    assert response["Content-Type"] == "application/problem+json"
    assert "application/json" in response.json()["detail"]


def test_what_is_admitted_goes_by_the_closest_range() -> None:
    assert admits("application/*;q=0, application/json", "application/json")
    assert not admits("application/*;q=0.0, */*", "application/json")
    assert admits("", "application/json")


@pytest.mark.parametrize(
    ("method", "address", "allow"),
    [
        ("DELETE", "v1/messages", {"GET", "POST", "HEAD", "OPTIONS"}),
        ("GET", "v1/decode", {"POST", "OPTIONS"}),
        ("POST", "v1/limits", {"GET", "HEAD", "OPTIONS"}),
        ("PATCH", f"v1/records/{NO_ID}/raw", {"GET", "HEAD", "OPTIONS"}),
        ("BREW", "v1/limits", {"GET", "HEAD", "OPTIONS"}),
    ],
)
@pytest.mark.parametrize("key", ["good", "none"])
def test_a_method_that_is_not_there_is_405_with_those_that_are(
    token: str, method: str, address: str, allow: set[str], key: str
) -> None:
    response = ask(token if key == "good" else "", address, method)
    assert response.status_code == 405
    assert {name.strip() for name in response["Allow"].split(",")} >= allow - {"HEAD"}
    assert {name.strip() for name in response["Allow"].split(",")} <= allow
    assert method in response.json()["detail"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("v1/messages/", "/api/v1/messages"),
        (f"v1/records/{NO_ID}/raw/", f"/api/v1/records/{NO_ID}/raw"),
        ("schema", "/api/schema/"),
        ("v1/nothing/", "/api/schema/"),
        ("v2/messages", "/api/schema/"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_address_that_is_none_says_which_was_meant(db: None, method: str, address: str, said: str) -> None:
    response = Client().generic(method, f"/api/{address}", b"{}", content_type="application/json")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    assert said in response.json()["detail"]


def test_no_refusal_speaks_in_words_of_the_framework(token: str) -> None:
    for address, method in (("v1/messages/" + NO_ID, "GET"), ("v1/limits", "PUT"), ("v1/nothing", "GET")):
        detail = ask(token, address, method).json()["detail"]
        assert detail not in ("Not found.", 'Method "PUT" not allowed.')
    nobody = Client().get("/api/v1/limits").json()
    assert "Bearer" in nobody["detail"]


def test_a_key_that_asks_too_often_is_429_and_says_for_how_long(cast: Cast, token: str, settings: Any) -> None:
    settings.LIMITS = {**settings.LIMITS, "requests_per_minute": 3}
    answers = [ask(token, "v1/limits") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert 1 <= int(answers[-1]["Retry-After"]) <= 20
    assert answers[-1]["Content-Type"] == "application/problem+json"
    _, other = create_api_key(workspace=cast.workspace, name="other", scopes=["ingest"])
    assert ask(other, "v1/limits").status_code == 200
    settings.LIMITS = {**settings.LIMITS, "requests_per_minute": 0}
    assert ask(token, "v1/limits").status_code == 200


def test_every_key_reads_the_limits(cast: Cast) -> None:
    for scope in ApiKey.Scope.values:
        _, key = create_api_key(workspace=cast.workspace, name=scope, scopes=[scope], created_by=cast.owner.user)
        assert ask(key, "v1/limits").status_code == 200, scope


def test_what_a_key_may_send_is_shared_by_all_processes(cast: Cast, token: str, settings: Any) -> None:
    settings.LIMITS = {**settings.LIMITS, "requests_per_minute": 120}
    key = ApiKey.objects.get(prefix=token.split("_")[1])
    with CaptureQueriesContext(connection) as captured:
        assert ask(token, "v1/limits").status_code == ask(token, "v1/limits").status_code == 200
    # A process takes a second's worth at a time.
    assert sum("accounts_signinpace" in each["sql"] for each in captured) == 1
    held = Pace.objects.filter(name=f"key {key.pk}")
    assert held.get().left == 118
    # Other processes have sent the rest of it; so that time adds nothing meanwhile, they did so in an hour.
    held.update(at=timezone.now() + timedelta(hours=1), left=0)
    assert ask(token, "v1/limits").status_code == 429
    # It fills evenly, and never beyond a minute's worth.
    held.update(at=timezone.now() - timedelta(seconds=30), left=0)
    assert not reserve(held.get().name, count=70, most=120)
    assert reserve(held.get().name, count=59, most=120)
    held.update(at=timezone.now() - timedelta(hours=1), left=0)
    assert not reserve(held.get().name, count=121, most=120)
    assert reserve(held.get().name, count=120, most=120)


def test_too_many_fields_are_a_problem_document(token: str) -> None:
    response = ask(token, "v1/limits?" + "&".join(f"a{number}=1" for number in range(1200)))
    assert (response.status_code, response["Content-Type"]) == (400, "application/problem+json")


def test_a_bug_is_a_problem_document_and_says_nothing_of_itself(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the inside of it")

    monkeypatch.setattr("inspector.api.workspaces.show_waiting", fail)
    response = ask(token, "v1/limits")
    assert (response.status_code, response["Content-Type"]) == (500, "application/problem+json")
    assert "inside" not in response.content.decode()
    with pytest.raises(RuntimeError):
        Client().get("/api/v1/limits", headers={"Authorization": f"Bearer {token}"})


def test_the_limits_are_those_that_refusals_name(token: str, settings: Any) -> None:
    said = ask(token, "v1/limits").json()
    assert {name: said[name] for name in settings.LIMITS} == settings.LIMITS
    too_long = Client().post(
        "/api/v1/decode",
        b"x" * (said["decode_bytes"] + 1),
        content_type="text/plain",
        headers={"Authorization": f"Bearer {token}"},
    )
    assert too_long.status_code == 413
    assert str(said["decode_bytes"]) in json.loads(too_long.content)["detail"]


def ask_at(token: str, address: str, method: str = "GET", **names: Any) -> Any:
    client = Client(raise_request_exception=False)
    return client.generic(method, address, headers={"Authorization": f"Bearer {token}"}, **names)


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/", 404),
        ("GET", "/api/v1/messages/", 404),
        ("GET", "/api/v1/messages/not-a-uuid", 404),
        ("GET", "/api/v1/messages/00000000-0000-0000-0000-000000000000", 404),
        ("DELETE", "/api/v1/messages", 405),
        ("PUT", "/api/v1/limits", 405),
        ("POST", "/api/v1/messages?channel=%00", 422),
        ("POST", "/api/v1/messages?channel=a%00b", 422),
        ("GET", "/api/v1/messages?limit=1e3", 400),
        ("GET", "/api/v1/messages?" + "&".join(f"a{n}=1" for n in range(1200)), 400),
        ("GET", "/api/v1/messages?limit=" + "9" * 5000, 400),
        ("GET", "/api/v1/messages?cursor=%00", 400),
        ("GET", "/api/v1/conversations?cursor=" + "a" * 5000, 400),
        ("GET", "/api/v1/messages?q=" + "a" * 3000, 400),
        ("GET", "/api/v1/messages?q=%26%20%7C%20%21", 400),
    ],
)
def test_refusals_are_problem_documents(token: str, method: str, address: str, status: int) -> None:
    response = ask_at(token, address, method, data=b"x", content_type="text/plain")
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    said = response.json()
    assert (said["status"], bool(said["detail"])) == (status, True)


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/messages?limit=999999999999999",
        "/api/v1/messages?limit=-5",
        "/api/v1/messages?q=%00",
        "/api/v1/messages?q=from:%00",
        "/api/v1/messages?q=a%00b",
        "/api/v1/messages?q=%25_%5C",
        "/api/v1/messages?q='%3B%20DROP%20TABLE%20x%3B--",
        "/api/v1/messages?q=-a%20-b*%20%22x%20y%22",
        "/api/v1/messages?q=" + "%F0%9F%92%80" * 500,
        "/api/v1/messages?q=%ED%A0%80",
        "/api/v1/messages?q=(a%2B)%2B%24",
    ],
)
def test_any_search_is_answered(token: str, address: str) -> None:
    response = ask_at(token, address)
    assert response.status_code in (200, 400), response.content


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
@pytest.mark.parametrize("path", ["messages", "conversations", "limits"])
def test_head_and_options_are_answered(token: str, method: str, path: str) -> None:
    assert ask_at(token, f"/api/v1/{path}", method).status_code == 200


@pytest.mark.parametrize("wrong", ["aci_\x00_x", "aci_%s_x" % ("a" * 9000), "aci_é_x"])
def test_a_strange_key_is_401(db: None, wrong: str) -> None:
    response = ask_at(wrong, URL)
    assert response.status_code == 401
    assert response["Content-Type"] == "application/problem+json"


def test_any_place_among_problems_is_answered(token: str) -> None:
    delivery = post(token, b"\xff\n", "text/plain").json()["delivery"]
    for after in ("0", "999999999999999"):
        assert ask_at(token, f"/api/v1/deliveries/{delivery}?after={after}").status_code == 200


HOSTILE = {
    "lone surrogate": r'{"raw": "a \ud800 b", "from": "\udfff", "conversation": "\ud800", "id": "\udc00"}',
    "nul": r'{"raw": "a \u0000 b", "from": "\u0000", "conversation": "\u0000", "id": "\u0000"}',
    "surrogate in CLowl": r'{"p": "REQ", "mid": "m\ud800", "from": "a", "to": "b", "cid": "c", "body": "\ud800"}',
}


@pytest.mark.parametrize("wire", HOSTILE.values(), ids=HOSTILE.keys())
def test_text_that_no_encoding_holds_is_shown_escaped(token: str, wire: str) -> None:
    assert counts(post(token, wire.encode()))[1] == 1
    resolve_all()
    message = Message.objects.get()
    for address in (
        URL,
        f"{URL}/{message.pk}",
        "/api/v1/conversations",
        f"/api/v1/conversations/{message.conversation_id}",
    ):
        response = ask_at(token, address)
        assert response.status_code == 200, (address, response.content)
        json.loads(response.content)
    raw = ask_at(token, f"/api/v1/records/{message.record_id}/raw")
    assert b"".join(raw.streaming_content) == wire.encode()


def test_a_database_that_is_away_is_503(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**names: object) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr("inspector.api.ingest.take_stream", fail)
    response = post(token, b"one\n", "text/plain")
    assert response.status_code == 503
    assert response["Retry-After"]
    assert response["Content-Type"] == "application/problem+json"
    assert "lost" not in response.content.decode()


def test_a_retry_after_a_broken_body_adds_only_what_was_missing(token: str) -> None:
    import gzip

    whole = gzip.compress(b"".join(f"record {number}\n".encode() for number in range(12_000)))
    headers = {"Content-Encoding": "gzip", "Idempotency-Key": "k1"}
    broken = post(token, whole[: len(whole) // 2], "text/plain", **headers)
    assert broken.status_code == 400
    kept = broken.json()["stored"]
    assert kept > 1000
    response = post(token, whole, "text/plain", **headers)
    # The last record of the broken body was cut in its middle, and is another one now.
    assert counts(response) in ((12_000, 12_000 - kept, kept, 0), (12_000, 12_000 - kept + 1, kept - 1, 0))
    assert post(token, whole, "text/plain", **headers).json() == response.json()
    assert post(token, b"another\n", "text/plain", **{"Idempotency-Key": "k1"}).status_code == 409
    assert Delivery.objects.count() == 2
    assert Record.objects.count() in (12_000, 12_001)


def test_the_page_lists_every_status_that_a_refusal_may_have() -> None:
    """All but 500, which is a bug."""
    errors = (Path(__file__).parents[3] / "docs" / "api.md").read_text().split("\n## Errors\n")[1].split("\n## ")[0]
    assert list(map(int, re.findall(r"^\| (\d+) \|", errors, re.MULTILINE))) == sorted({*TITLES} - {500})
