"""Deliveries over the API: their withdrawals, and the exact bytes of their records."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from inspector.accounts.models import ApiKey, Membership
from inspector.accounts.services import create_api_key
from inspector.bounds import RangeError, answer_bytes
from inspector.intake.models import Record, Withdrawal
from inspector.intake.readings import MARK, mask
from inspector.threads.models import Message

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db
READ = [ApiKey.Scope.INGEST, ApiKey.Scope.READ]


def make_client(cast: Cast, *scopes: str, person: Membership | None = None) -> Client:
    token = create_api_key(
        workspace=cast.workspace, name="k", scopes=[*READ, *scopes], created_by=person.user if person else None
    )[1]
    return Client(headers={"Authorization": f"Bearer {token}"})


def withdraw(client: Client, address: str, body: Any = None) -> Any:
    return client.post(f"{address}/withdrawal", body or {"reason": "the wrong file"}, content_type="application/json")


def test_a_delivery_is_withdrawn_and_taken_back(cast: Cast) -> None:
    client = make_client(cast, ApiKey.Scope.WITHDRAW, person=cast.auditor)
    address = f"/api/v1/deliveries/{deliver(cast, b'one line').pk}"
    resolve_all()
    message = client.get("/api/v1/messages").json()["results"][0]["id"]
    assert client.get(f"/api/v1/messages/{message}").json()["is_withdrawn"] is False

    made = withdraw(client, address)
    assert made.status_code == 201
    assert (made.json()["by"], made.json()["is_done"]) == (cast.auditor.user.get_username(), False)
    resolve_all()
    told = client.get(address).json()["withdrawal"]
    assert (told["reason"], told["taken_back_at"], told["is_done"]) == ("the wrong file", None, True)
    assert client.get("/api/v1/messages").json()["results"] == []
    assert client.get(f"/api/v1/messages/{message}").json()["is_withdrawn"] is True
    assert client.get(f"{address}/withdrawal").json() == told
    assert withdraw(client, address).status_code == 409

    for unsaid in ("", "?reason="):
        refusal = client.delete(f"{address}/withdrawal{unsaid}")
        assert refusal.status_code == 400
        assert refusal.json()["parameter"] == "reason"
    assert client.delete(f"{address}/withdrawal?reason=+").status_code == 422
    back = client.delete(f"{address}/withdrawal?reason=it+was+the+right+one")
    assert (back.status_code, back.json()["taken_back_by"]) == (200, cast.auditor.user.get_username())
    resolve_all()
    assert client.get(address).json()["withdrawal"] is None
    assert client.get(f"{address}/withdrawal").status_code == 404
    assert client.get(f"/api/v1/messages/{message}").json()["is_withdrawn"] is False
    assert client.delete(f"{address}/withdrawal?reason=again").status_code == 409
    assert Withdrawal.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"reason": " "}, 422),
        ({"reason": 5}, 422),
        ({"reason": "a", "because": "b"}, 422),
        ({"reason": "x" * 2001}, 422),
        ([], 422),
        ("{", 400),
    ],
)
def test_a_withdrawal_needs_a_reason(cast: Cast, body: Any, status: int) -> None:
    client = make_client(cast, ApiKey.Scope.WITHDRAW, person=cast.auditor)
    address = f"/api/v1/deliveries/{deliver(cast, b'one line').pk}/withdrawal"
    assert client.post(address, body, content_type="application/json").status_code == status
    assert client.post(address, "reason=x", content_type="text/plain").status_code == 415
    assert not Withdrawal.objects.exists()


def test_only_an_auditors_key_with_the_scope_withdraws(cast: Cast) -> None:
    address = f"/api/v1/deliveries/{deliver(cast, b'one line').pk}"
    scope = ApiKey.Scope.WITHDRAW
    for client in (
        make_client(cast, person=cast.auditor),
        make_client(cast, scope),
        make_client(cast, scope, person=cast.viewer),
        make_client(cast, scope, person=cast.stranger),
    ):
        assert withdraw(client, address).status_code == 403
        assert client.delete(f"{address}/withdrawal?reason=x").status_code == 403
    token = create_api_key(workspace=cast.stranger.workspace, name="k", scopes=[scope], created_by=cast.stranger.user)[
        1
    ]
    assert withdraw(Client(headers={"Authorization": f"Bearer {token}"}), address).status_code == 404
    assert not Withdrawal.objects.exists()


def test_rows_have_the_fields_that_are_asked_for(cast: Cast, token: str) -> None:
    deliver(cast, b"one line\n")
    resolve_all()
    client = Client(headers={"Authorization": f"Bearer {token}"})
    (whole,) = client.get("/api/v1/messages").json()["results"]
    (row,) = client.get("/api/v1/messages?fields=english,dialect").json()["results"]
    assert row == {name: whole[name] for name in ("id", "english", "dialect")}
    (row,) = client.get("/api/v1/conversations?fields=state").json()["results"]
    assert set(row) == {"id", "state"}
    for wrong in ("", "english,", "raw", "english, dialect"):
        said = client.get("/api/v1/messages", {"fields": wrong})
        assert (said.status_code, said.json()["parameter"]) == (400, "fields")
    assert Message.objects.count() == 1


SECRET = "s3cret-t0ken-of-oscar"
PLAIN = b'{"clowl":"0.2","mid":"m1","ts":1795118400,"p":"REQ","from":"oscar","to":"radar","cid":"c1","body":{"t":"x"}}'
HOLDING = PLAIN.replace(b'"p":"REQ"', b'"p":"REQ","auth":"%s"' % SECRET.encode())
WRAPPED = json.dumps({"raw": HOLDING.decode(), "at": "2026-11-21T09:00:00Z"}).encode()


@pytest.fixture
def seeing_token(cast: Cast) -> str:
    """A key to which an owner gave the scope for secrets."""
    return create_api_key(workspace=cast.workspace, name="seeing", scopes=["read", "secrets"])[1]


def ask(token: str, address: str) -> Any:
    return Client(raise_request_exception=False).get(address, headers={"Authorization": f"Bearer {token}"})


def ask_range(token: str, address: str, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Client().get(address, headers={"Authorization": f"Bearer {token}"} | named)


def read_all(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def take_in(cast: Cast, source: bytes) -> Record:
    deliver(cast, source + b"\n")
    return Record.objects.get()


def test_bytes_are_a_download_that_no_browser_interprets(cast: Cast, token: str) -> None:
    record = take_in(cast, b"<script>alert(1)</script>")
    response = ask(token, f"/api/v1/records/{record.pk}/raw")
    assert read_all(response) == b"<script>alert(1)</script>"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Source-SHA256"] == hashlib.sha256(b"<script>alert(1)</script>").hexdigest()
    assert "no-store" in response["Cache-Control"]


@pytest.mark.parametrize("accept", ["application/octet-stream", "*/*"])
def test_source_and_wire_are_told_apart(cast: Cast, token: str, accept: str) -> None:
    source = b'{"raw": "?Uk/co", "from": "oscar"}'
    record = take_in(cast, source)
    assert read_all(ask(token, f"/api/v1/records/{record.pk}/raw")) == source
    assert read_all(ask(token, f"/api/v1/records/{record.pk}/raw?part=source")) == source
    assert read_all(ask(token, f"/api/v1/records/{record.pk}/raw?part=wire")) == b"?Uk/co"


@pytest.mark.parametrize("is_settled", [True, False])
@pytest.mark.parametrize("part", ["source", "wire"])
@pytest.mark.parametrize("source", [HOLDING, WRAPPED], ids=["bare", "wrapped"])
def test_a_record_with_a_secret_is_withheld_from_a_plain_key(
    cast: Cast,
    token: str,
    seeing_token: str,
    source: bytes,
    part: str,
    is_settled: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    record = take_in(cast, source)
    if is_settled:
        resolve_all()
    address = f"/api/v1/records/{record.pk}/raw?part={part}"
    response = ask(token, address)
    assert response.status_code == 403
    assert SECRET not in response.content.decode()
    said = response.json()
    assert said["sha256"] == hashlib.sha256(source).hexdigest()
    assert said["masked"] == HOLDING.decode().replace(f'"{SECRET}"', MARK * (len(SECRET) + 2))
    assert read_all(ask(seeing_token, address)) == (source if part == "source" else HOLDING)
    # Who was given the bytes of a secret leaves a trail; the secret itself does not.
    assert str(record.pk) in caplog.text
    assert SECRET not in caplog.text


def test_what_is_no_text_is_looked_through_too(cast: Cast, token: str, seeing_token: str) -> None:
    broken = HOLDING[:-1] + b"\xff}"
    record = take_in(cast, broken)
    assert record.is_quarantined
    assert ask(token, f"/api/v1/records/{record.pk}/raw").status_code == 403
    assert read_all(ask(seeing_token, f"/api/v1/records/{record.pk}/raw")) == broken


def test_what_is_too_long_to_be_looked_through_is_withheld(
    cast: Cast, token: str, seeing_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.api.deliveries.MAX_BYTES_LOOKED_THROUGH", 10)
    record = take_in(cast, b"harmless but long")
    response = ask(token, f"/api/v1/records/{record.pk}/raw")
    assert (response.status_code, response.json()["masked"]) == (403, None)
    assert read_all(ask(seeing_token, f"/api/v1/records/{record.pk}/raw")) == b"harmless but long"


def test_no_answer_in_json_holds_the_secret(cast: Cast, token: str, seeing_token: str) -> None:
    take_in(cast, WRAPPED)
    resolve_all()
    message = Message.objects.get()
    for key in (token, seeing_token):
        for address in (
            "messages",
            f"messages/{message.pk}",
            "conversations",
            f"conversations/{message.conversation_id}",
            f"messages?q={SECRET}",
        ):
            response = ask(key, f"/api/v1/{address}")
            assert response.status_code == 200
            assert SECRET not in response.content.decode(), address
    layer = ask(token, f"/api/v1/messages/{message.pk}").json()["layers"][0]["text"]
    # Every span still points at its place.
    assert len(layer) == len(HOLDING.decode())


def test_a_stranger_learns_nothing(cast: Cast, stranger_token: str) -> None:
    record = take_in(cast, HOLDING)
    assert ask(stranger_token, f"/api/v1/records/{record.pk}/raw").status_code == 404


@pytest.mark.parametrize(
    ("spans", "masked"),
    [
        ([], "abcdef"),
        ([(0, 0, 1)], "•bcdef"),
        ([(0, 4, 6), (0, 1, 2)], "a•cd••"),
        ([(0, 1, 4), (0, 2, 5)], "a••••f"),
        ([(0, 0, 6), (0, 2, 3)], "••••••"),
    ],
)
def test_masked_spans_keep_their_length(spans: list[tuple[int, int, int]], masked: str) -> None:
    assert mask("abcdef", spans) == masked


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-9", slice(0, 10)),
        ("bytes=5-", slice(5, None)),
        ("BYTES=-7", slice(-7, None)),
        ("bytes=-999999", slice(0, None)),
        ("bytes=3-999999", slice(3, None)),
        ("bytes=0-" + "9" * 23, slice(0, None)),
        ("bytes=-" + "9" * 23, slice(0, None)),
    ],
)
def test_a_range_is_given(cast: Cast, token: str, asked: str, part: slice) -> None:
    record = take_in(cast, PLAIN)
    address = f"/api/v1/records/{record.pk}/raw"
    whole = ask(token, address)
    assert (whole["Accept-Ranges"], whole["Content-Length"]) == ("bytes", str(len(PLAIN)))
    answer = ask_range(token, address, Range=asked)
    assert answer.status_code == 206
    assert read_all(answer) == PLAIN[part]
    start, end, _ = part.indices(len(PLAIN))
    assert answer["Content-Range"] == f"bytes {start}-{end - 1}/{len(PLAIN)}"
    assert answer["X-Source-SHA256"] == hashlib.sha256(PLAIN).hexdigest()
    again = ask_range(token, address, Range=asked, If_Range=whole["ETag"])
    assert (again.status_code, again["ETag"]) == (206, whole["ETag"])
    assert ask_range(token, address, Range=asked, If_Range='"another"').status_code == 200


@pytest.mark.parametrize(
    "asked", ["bytes=0-1,5-6", "lines=0-1", "bytes=9-2", "bytes=a-b", "bytes=-", "bytes=" + "9" * 4000 + "-"]
)
def test_what_is_no_single_range_gives_all(cast: Cast, token: str, asked: str) -> None:
    record = take_in(cast, PLAIN)
    answer = ask_range(token, f"/api/v1/records/{record.pk}/raw", Range=asked)
    assert (answer.status_code, read_all(answer)) == (200, PLAIN)


@pytest.mark.parametrize("asked", ["bytes=500-", "bytes=-0", "bytes=99999999-99999999", "bytes=" + "9" * 40 + "-"])
def test_a_range_behind_the_end_is_refused(cast: Cast, token: str, asked: str) -> None:
    record = take_in(cast, PLAIN)
    answer = ask_range(token, f"/api/v1/records/{record.pk}/raw", Range=asked)
    assert (answer.status_code, answer["Content-Range"]) == (416, f"bytes */{len(PLAIN)}")
    assert answer["Content-Type"] == "application/problem+json"


def test_bytes_that_are_known_are_not_sent_again(cast: Cast, token: str, sign_in: Any) -> None:
    record = take_in(cast, PLAIN)
    address, page = f"/api/v1/records/{record.pk}/raw", reverse("pages:raw", args=["acme", record.pk])
    auditor = sign_in(cast.auditor)
    tag = ask(token, address)["ETag"]
    for known in (tag, f'"another", {tag}', f"W/{tag}", "*"):
        # Also where the range would be behind the end: it is looked at last.
        for said in ({}, {"Range": "bytes=500-"}):
            answer = ask_range(token, address, If_None_Match=known, **said)
            assert (answer.status_code, answer["ETag"], answer.content) == (304, tag, b""), known
            assert auditor.get(page, headers={"If-None-Match": known}).status_code == 304
    assert read_all(ask_range(token, address, If_None_Match='"another"')) == PLAIN
    assert read_all(ask_range(token, address, If_Match=tag, Range="bytes=0-1")) == PLAIN[:2]
    refused = ask_range(token, address, If_Match='"another"')
    assert (refused.status_code, refused.json()["status"]) == (412, 412)
    assert tag in refused.json()["detail"]
    assert auditor.get(page, headers={"If-Match": '"another"'}).status_code == 412


def test_no_tag_tells_of_what_is_withheld(cast: Cast, token: str) -> None:
    record = take_in(cast, HOLDING)
    tag = f'"{hashlib.sha256(HOLDING).hexdigest()}-{len(HOLDING)}"'
    for header in ("If_None_Match", "If_Match"):
        assert ask_range(token, f"/api/v1/records/{record.pk}/raw", **{header: tag}).status_code == 403


def test_no_range_shows_what_is_withheld(cast: Cast, token: str) -> None:
    record = take_in(cast, HOLDING)
    assert ask_range(token, f"/api/v1/records/{record.pk}/raw", Range="bytes=0-1").status_code == 403


def test_the_page_gives_ranges_too(cast: Cast, sign_in: Any) -> None:
    record = take_in(cast, PLAIN)
    client, address = sign_in(cast.auditor), reverse("pages:raw", args=["acme", record.pk])
    answer = client.get(address, headers={"Range": "bytes=2-4"})
    assert (answer.status_code, read_all(answer)) == (206, PLAIN[2:5])
    assert client.get(address, headers={"Range": "bytes=500-"}).status_code == 416
    assert read_all(client.get(address)) == PLAIN


@given(
    st.lists(st.binary(max_size=5), max_size=6),
    st.integers(0, 40),
    st.one_of(st.none(), st.integers(0, 40)),
)
def test_pieces_do_not_matter(pieces: list[bytes], first: int, last: int | None) -> None:
    whole = b"".join(pieces)
    request = RequestFactory().get("/", headers={"Range": f"bytes={first}-{'' if last is None else last}"})
    try:
        answer = answer_bytes(request, pieces, name="x", size=len(whole), digest="")
    except RangeError:
        assert first >= len(whole)
        return
    wanted = whole if last is not None and last < first else whole[first : None if last is None else last + 1]
    assert read_all(answer) == wanted
    assert int(answer["Content-Length"]) == len(wanted)


@pytest.mark.parametrize("part", ["source", "wire"])
def test_a_long_record_is_never_fetched_whole(
    cast: Cast, seeing_token: str, sign_in: Any, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = take_in(cast, WRAPPED)
    # Of several pieces and of one more, with no byte of the last one missing.
    size = len(HOLDING if part == "wire" else WRAPPED)
    for piece in (size // 2, size // 3 - 1, size - 1):
        monkeypatch.setattr("inspector.intake.selectors.PIECE_BYTES", piece)
        asked: list[str] = []

        def note(execute: Any, sql: str, *given: Any, asked: list[str] = asked) -> Any:
            asked.append(sql)
            return execute(sql, *given)

        with connection.execute_wrapper(note):
            answer = ask(seeing_token, f"/api/v1/records/{record.pk}/raw?part={part}")
            assert read_all(answer) == (HOLDING if part == "wire" else WRAPPED)
            assert answer["X-Source-SHA256"] == hashlib.sha256(WRAPPED).hexdigest()
            page = sign_in(cast.auditor).get(f"/w/acme/records/{record.pk}/raw/", headers={"Range": f"bytes={piece}-"})
            assert read_all(page) == WRAPPED[piece:]
        assert len([sql for sql in asked if sql.startswith("SELECT substring(")]) >= size // piece
        assert [
            sql for sql in asked if re.match(r'SELECT (?!substring).*"intake_record"."(source|wire)"[ ,]', sql)
        ] == []
