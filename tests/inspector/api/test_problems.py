"""Whatever is asked of the API, the answer is a problem document or what was asked for, and never a 500."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from inspector.api.problems import TITLES
from inspector.intake.models import Delivery, Record
from inspector.threads.models import Message

from ..conftest import settle_all
from .test_ingest import URL, counts, post

pytestmark = pytest.mark.django_db


def ask(token: str, address: str, method: str = "GET", **names: Any) -> Any:
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
    response = ask(token, address, method, data=b"x", content_type="text/plain")
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
    response = ask(token, address)
    assert response.status_code in (200, 400), response.content


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
@pytest.mark.parametrize("path", ["messages", "conversations", "limits"])
def test_head_and_options_are_answered(token: str, method: str, path: str) -> None:
    assert ask(token, f"/api/v1/{path}", method).status_code == 200


@pytest.mark.parametrize("wrong", ["aci_\x00_x", "aci_%s_x" % ("a" * 9000), "aci_é_x"])
def test_a_strange_key_is_401(db: None, wrong: str) -> None:
    response = ask(wrong, URL)
    assert response.status_code == 401
    assert response["Content-Type"] == "application/problem+json"


def test_any_place_among_problems_is_answered(token: str) -> None:
    delivery = post(token, b"\xff\n", "text/plain").json()["delivery"]
    for after in ("0", "999999999999999"):
        assert ask(token, f"/api/v1/deliveries/{delivery}?after={after}").status_code == 200


HOSTILE = {
    "lone surrogate": r'{"raw": "a \ud800 b", "from": "\udfff", "conversation": "\ud800", "id": "\udc00"}',
    "nul": r'{"raw": "a \u0000 b", "from": "\u0000", "conversation": "\u0000", "id": "\u0000"}',
    "surrogate in CLowl": r'{"p": "REQ", "mid": "m\ud800", "from": "a", "to": "b", "cid": "c", "body": "\ud800"}',
}


@pytest.mark.parametrize("wire", HOSTILE.values(), ids=HOSTILE.keys())
def test_text_that_no_encoding_holds_is_shown_escaped(token: str, wire: str) -> None:
    assert counts(post(token, wire.encode()))[1] == 1
    settle_all()
    message = Message.objects.get()
    for address in (
        URL,
        f"{URL}/{message.pk}",
        "/api/v1/conversations",
        f"/api/v1/conversations/{message.conversation_id}",
    ):
        response = ask(token, address)
        assert response.status_code == 200, (address, response.content)
        json.loads(response.content)
    raw = ask(token, f"/api/v1/records/{message.record_id}/raw")
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
