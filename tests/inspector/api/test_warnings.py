"""What a developer most likely did otherwise than meant: told in the error or the receipt, with what to change."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from dialects._log.warnings import WORDS
from inspector.intake.models import Delivery

from ..conftest import Cast

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]
URL = "/api/v1/messages"
TAG = '@a3|f0|c1|S0|d1|T1|k1|t"x"#'
CLOWL = '{"clowl": "0.2", "mid": "m1", "p": "REQ", "from": "a", "to": "b", "cid": "c", "body": {"t": "x", "d": {}}}'


def post(token: str, body: str, kind: str = "application/x-ndjson") -> dict[str, Any]:
    response = Client().post(URL, body.encode(), content_type=kind, headers={"Authorization": f"Bearer {token}"})
    assert response.status_code == 202, response.content
    said: dict[str, Any] = response.json()
    assert said["received"] == said["stored"] + said["duplicate"] + said["quarantined"]
    return said


# What is sent, and the warnings of its only record: the code, and what is in the words to change.
WARNED: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "a sender under another name": ('{"raw": "hi", "sender": "a"}', [("name", "`from` instead of `sender`")]),
    "a conversation id": (
        '{"raw": "hi", "conversation_id": "c"}',
        [("name", "`conversation` instead of `conversation_id`")],
    ),
    "a name with a typo": ('{"raw": "hi", "conversaton": "c"}', [("name", "`conversation` instead of `conversaton`")]),
    "a name in capitals": ('{"raw": "hi", "From": "a"}', [("name", "`from` instead of `From`")]),
    "a text under another name": ('{"text": "hi"}', [("no-raw", "`raw` instead of `text`")]),
    "a content and a timestamp": (
        '{"content": "hi", "timestamp": 1}',
        [("no-raw", "`raw` instead of `content`"), ("name", "`at` instead of `timestamp`")],
    ),
    "a raw that is no text": ('{"raw": {"p": "REQ"}}', [("raw-not-text", "JSON string")]),
    "a name that stands twice": ('{"raw": "a", "raw": "b"}', [("repeated-name", "once")]),
    "single quotes": ("{'raw': 'hi', 'from': 'a'}", [("single-quotes", "json.dumps")]),
    "an object that is cut": ('{"raw": "hi", "from": ', [("cut", "whole, one JSON object a line")]),
    "a brace and no more": ("{", [("cut", "whole")]),
    "a dialect that is none": ('{"raw": "hi", "dialect": "nope"}', [("dialect", "slug")]),
    "a CLowl object that is cut": (CLOWL[:-3], [("cut", "whole, one JSON object a line")]),
    "a tag that is cut": (json.dumps({"raw": TAG[:-1]}), [("cut", "whole, up to the # that closes it")]),
    "a block that is cut": (json.dumps({"raw": "!st{ta:kiln"}), [("cut", "whole, with each brace and")]),
    "two objects on a line": ('{"raw": "a"}{"raw": "b"}', [("several", "line end")]),
    "a comma too many": ('{"raw": "a",}', [("not-json", "json.dumps")]),
    "text where objects were declared": ("plain text", [("not-an-object", "text/plain")]),
    "an object that was encoded twice": (json.dumps('{"raw": "hi"}'), [("twice-encoded", "once")]),
    "a wrapper under another name": ('{"mesages": [{"raw": "a"}]}', [("wrapper", "`messages` instead of `mesages`")]),
    "JSON of an unknown kind": (json.dumps({"resourceSpans": [{"value": TAG}]}), [("unknown-json", "under `raw`")]),
    "an answer of any program": ('{"jsonrpc": "2.0", "id": 1, "result": {}}', [("answer", "the request")]),
    "a time that is none": ('{"raw": "hi", "at": "half past nine"}', [("time-not-read", "2026-11-21T09:00:00Z")]),
    "a time without a zone": ('{"raw": "hi", "at": "2026-11-21 09:00:00"}', [("time-without-zone", "+01:00")]),
    "a time in milliseconds": ('{"raw": "hi", "at": 1700000000000}', [("time-unit", "seconds")]),
}
# What is as it should be, and is not to be warned of.
SILENT = (
    CLOWL,
    f'{{"mid": "m1", {CLOWL[1:]}',
    json.dumps({"raw": TAG, "at": "2026-11-21T09:00:00+01:00", "from": "a", "to": ["b"], "sender": "again"}),
    json.dumps({"raw": f"{TAG} and more", "at": 1700000000, "run": 7, "metadata": {"sender": "a"}}),
    json.dumps({"raw": "!st{ta:kiln,pr:80%}", "at": "Sat, 21 Nov 2026 09:00:00 +0100", "level": "info"}),
    json.dumps("👽73|@1|$aGk=\n--👽lingua/0.4@agent-lingua"),
    json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}),
    json.dumps({"raw": "it's {fine", "inspected": {"sender": "a"}}),
)


@pytest.mark.parametrize("case", WARNED.values(), ids=WARNED)
def test_a_likely_mistake_is_told_with_what_to_change(token: str, case: tuple[str, list[tuple[str, str]]]) -> None:
    body, expected = case
    said = post(token, f"{CLOWL}\n{body}\n")
    assert (said["received"], said["stored"]) == (2, 2)
    assert [(row["index"], row["line"], row["code"]) for row in said["warnings"]] == [
        (1, 2, code) for code, _ in expected
    ]
    for row, (_, words) in zip(said["warnings"], expected, strict=True):
        assert words in row["hint"]
        assert len(row["reason"]) > 10
    assert said["warnings_total"] == len(expected)


@pytest.mark.parametrize("body", SILENT)
def test_what_is_right_is_not_warned_of(token: str, body: str) -> None:
    said = post(token, f"{body}\n")
    assert (said["warnings"], said["warnings_total"], said["warnings_by_code"]) == ([], 0, {})


def test_the_first_hundred_are_shown_and_all_are_counted(token: str) -> None:
    lines = [f'{{"raw": "hi {number}", "sender": "a", "at": "soon"}}' for number in range(1500)]
    said = post(token, "\n".join(lines))
    assert len(said["warnings"]) == 100
    assert said["warnings"][-1]["index"] == 49
    assert said["warnings_by_code"] == {"name": 1500, "time-not-read": 1500}
    assert said["warnings_total"] == 3000
    again = Client().get(said["links"]["self"], headers={"Authorization": f"Bearer {token}"}).json()
    assert again["warnings"] == said["warnings"]
    assert again["warnings_total"] == 3000


def test_a_warning_quotes_no_value_of_the_record(token: str) -> None:
    secret = "sk-live-0123456789abcdefghij"
    body = json.dumps({"raw": "hi", "at": secret, secret: 1, "sender": secret}) + f"\n{{'{secret}': 1}}\n"
    body += json.dumps({secret: [secret]}) + "\n" + json.dumps({"text": secret, secret: 1}) + "\n"
    assert secret not in json.dumps(post(token, body))
    assert secret not in json.dumps(Delivery.objects.get().warnings)


@pytest.mark.parametrize("name", ["sender\0", "sender\ud800", "\u202esender", "s" * 100_000, "", "\n", "ＳＥＮＤＥＲ"])
def test_no_name_stops_a_delivery(token: str, name: str) -> None:
    objects: list[Any] = [{"raw": "hi", name: "x"}, {name: [1]}, {name: "x", "text": "y"}, {f"messages{name}": []}]
    said = post(token, "\n".join(map(json.dumps, objects)))
    assert said["stored"] == 4
    assert all(warning["reason"].isprintable() for warning in said["warnings"])


def test_a_body_sent_again_is_warned_of_again(token: str, cast: Cast) -> None:
    body = '{"raw": "hi", "id": "1", "sender": "a"}\n'
    first, second = post(token, body), post(token, body)
    assert second["duplicate"] == 1
    assert first["warnings"] == second["warnings"] != []


def test_other_forms_are_warned_of_too(token: str) -> None:
    assert post(token, '["a"]', "text/plain")["warnings_by_code"] == {"array": 1}
    assert post(token, "plain text", "text/plain")["warnings"] == []
    assert post(token, '[{"text": "a"}, {"raw": "b"}]', "application/json")["warnings_by_code"] == {"no-raw": 1}
    assert post(token, "raw,at\nhi,2026-11-21 09:00\n", "text/csv")["warnings_by_code"] == {"time-without-zone": 1}


def test_the_documentation_tells_of_every_warning() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    assert re.findall(
        r"^\| `([a-z-]+)` \| .* \|$", page.split("what was seen |")[1].split("\n\n")[0], re.MULTILINE
    ) == [*WORDS]


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
MISTAKEN: dict[str, tuple[str, str, int, list[str], str]] = {
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
        ["cut", *["not-an-object"] * 4],
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


@pytest.mark.parametrize("case", MISTAKEN.values(), ids=MISTAKEN)
def test_a_receipt_says_what_to_change(token: str, case: tuple[str, str, int, list[str], str]) -> None:
    body, kind, count, codes, words = case
    response = send(token, body.encode(), kind)
    assert response.status_code == 202
    said = response.json()
    assert (said["received"], said["stored"]) == (count, count)
    assert [warning["code"] for warning in said["warnings"]] == codes
    assert words in said["warnings"][0]["hint"]


@pytest.mark.parametrize(
    ("body", "received"),
    [
        ('[{"raw":"a"},', 1),
        ('[{"raw":"a"}', 1),
        ('[{"raw":"a"},{"raw":"b"} // so', 2),
        ('{"messages":[', 0),
        ('{"messages":[{"raw":"a"}]', 1),
        ('{"messages":[{"raw":"a"}], "x": {', 1),
        ('{"resourceSpans":[{"resource":{},"scopeSpans":[', 0),
    ],
)
def test_a_list_that_is_not_closed_is_said_to_be_cut(token: str, body: str, received: int) -> None:
    said = post(token, body, "application/json")
    (warning,) = said["warnings"]
    assert (said["received"], said["warnings_by_code"]) == (received, {"cut": 1})
    assert (warning["index"], warning["line"]) == (received, 1)
    assert "missing" in warning["reason"]


def test_what_an_export_holds_that_is_no_span_is_told(token: str) -> None:
    said = post(token, '{"resourceSpans":[1,2]}', "application/json")
    assert (said["received"], said["warnings_by_code"]) == (0, {"passed-over": 1})
