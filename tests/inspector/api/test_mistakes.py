"""The likeliest mistakes of an agent's developer: each is told in the error or in the receipt, with what to change."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from django.test import Client

from inspector.intake.models import Delivery

pytestmark = pytest.mark.django_db

URL = "/api/v1/messages"
JSON, LINES = "application/json", "application/x-ndjson"


def send(token: str, body: bytes, kind: str, *, url: str = URL, **headers: str) -> Any:
    held = headers or {"Authorization": f"Bearer {token}"}
    return Client().post(url, body, content_type=kind, headers=held)


# What is sent otherwise than it should be: (names for `send`, the status, the words that say what to change).
REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "the key under another header": (
        {"body": b'{"raw": "a"}', "kind": JSON, "X-API-Key": "{token}"},
        401,
        "send a key as: Authorization: Bearer <key>",
    ),
    "the key alone": (
        {"body": b'{"raw": "a"}', "kind": JSON, "Authorization": "{token}"},
        401,
        "send the key as: Authorization: Bearer <key>",
    ),
    "a key that is none": (
        {"body": b'{"raw": "a"}', "kind": JSON, "Authorization": "Bearer nonsense"},
        401,
        "the key is unknown, revoked or expired",
    ),
    "what curl declares by itself": (
        {"body": b'{"raw": "a"}', "kind": "application/x-www-form-urlencoded"},
        415,
        "(curl -d declares it, unless -H says otherwise): send one of application/x-ndjson, application/jsonl, ",
    ),
    "a list declared as lines": (
        {"body": b'[{"raw": "a"}, {"raw": "b"}]', "kind": LINES},
        422,
        "send an array as application/json",
    ),
    "a compressed body that does not say so": (
        {"body": gzip.compress(b'{"raw": "a"}'), "kind": LINES},
        415,
        "send Content-Encoding: gzip",
    ),
    "the message in the address": (
        {"body": b"", "kind": JSON, "url": f"{URL}?raw=hello"},
        400,
        "there is no parameter 'raw' here: there are channel; data belongs in the body",
    ),
    "nothing in the body": ({"body": b"", "kind": JSON}, 400, "the body is empty: send at least one record"),
    "a slash behind the address": (
        {"body": b'{"raw": "a"}', "kind": JSON, "url": f"{URL}/"},
        404,
        "the one without its last slash is /api/v1/messages",
    ),
}

# What is sent: (the body, its type, how many records it is, the codes of the warnings, words of what to change).
WARNED: dict[str, tuple[str, str, int, list[str], str]] = {
    "text for raw": ('{"text": "hello"}', JSON, 1, ["no-raw"], "write `raw` instead of `text`"),
    "sender for from": ('{"raw": "a", "sender": "x"}', JSON, 1, ["name"], "write `from` instead of `sender`"),
    "a Python object": (str({"raw": "a"}), LINES, 1, ["single-quotes"], "json.dumps"),
    "a local time": ('{"raw": "a", "at": "2026-11-21 10:00"}', JSON, 1, ["time-without-zone"], "write Z or an offset"),
    "a time in milliseconds": ('{"raw": "a", "at": 1795255200000}', JSON, 1, ["time-unit"], "write seconds"),
    "a line end that is missing": (
        '{"raw": "a"}{"raw": "b"}',
        LINES,
        1,
        ["several"],
        "end each object with a line end",
    ),
    "an object printed over lines": (
        json.dumps({"raw": "a", "to": ["b"]}, indent=1),
        LINES,
        6,
        ["not-an-object"] * 5,
        "one JSON object a line",
    ),
    "a wrapper under another name": ('{"mesages": [{"raw": "a"}]}', JSON, 1, ["wrapper"], "write `messages` instead"),
    "JSON that was encoded twice": (json.dumps('{"raw": "a"}'), JSON, 1, ["twice-encoded"], "encode the object once"),
    "text declared as objects": ("ada: hello", LINES, 1, ["not-an-object"], "send lines of text as text/plain"),
    "a message that is cut": ('{"raw": "@a3|f0|c1|S0|d1|T1|k1|t\\"x"}', JSON, 1, ["cut"], "send each message whole"),
    "logs of another system": ('{"resourceMetrics": []}', JSON, 1, ["unknown-json"], "under `raw`"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_an_error_says_what_to_change(token: str, case: tuple[dict[str, Any], int, str]) -> None:
    given, status, words = case
    said = {name: value.format(token=token) if isinstance(value, str) else value for name, value in given.items()}
    response = send(token, **said)
    assert response.status_code == status
    assert words in response.json()["detail"]
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("case", WARNED.values(), ids=WARNED)
def test_a_receipt_says_what_to_change(token: str, case: tuple[str, str, int, list[str], str]) -> None:
    body, kind, count, codes, words = case
    response = send(token, body.encode(), kind)
    assert response.status_code == 202
    said = response.json()
    assert (said["received"], said["stored"]) == (count, count)
    assert [warning["code"] for warning in said["warnings"]] == codes
    assert words in said["warnings"][0]["hint"]
