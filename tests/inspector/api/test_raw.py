"""The exact bytes of a record, and who may have them: of one that holds a secret, only a key with the scope for it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from django.test import Client

from inspector.accounts.services import create_api_key
from inspector.intake.models import Record
from inspector.threads.models import Message
from inspector.threads.telling.masks import MARK, mask

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db

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


def read(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def take_in(cast: Cast, source: bytes) -> Record:
    deliver(cast, source + b"\n")
    return Record.objects.get()


def test_bytes_are_a_download_that_no_browser_interprets(cast: Cast, token: str) -> None:
    record = take_in(cast, b"<script>alert(1)</script>")
    response = ask(token, f"/api/v1/records/{record.pk}/raw")
    assert read(response) == b"<script>alert(1)</script>"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Source-SHA256"] == hashlib.sha256(b"<script>alert(1)</script>").hexdigest()
    assert "no-store" in response["Cache-Control"]


@pytest.mark.parametrize("accept", ["application/octet-stream", "*/*"])
def test_source_and_wire_are_told_apart(cast: Cast, token: str, accept: str) -> None:
    source = b'{"raw": "?Uk/co", "from": "oscar"}'
    record = take_in(cast, source)
    assert read(ask(token, f"/api/v1/records/{record.pk}/raw")) == source
    assert read(ask(token, f"/api/v1/records/{record.pk}/raw?part=source")) == source
    assert read(ask(token, f"/api/v1/records/{record.pk}/raw?part=wire")) == b"?Uk/co"


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
        settle_all()
    address = f"/api/v1/records/{record.pk}/raw?part={part}"
    response = ask(token, address)
    assert response.status_code == 403
    assert SECRET not in response.content.decode()
    said = response.json()
    assert said["sha256"] == hashlib.sha256(source).hexdigest()
    assert said["masked"] == HOLDING.decode().replace(f'"{SECRET}"', MARK * (len(SECRET) + 2))
    assert read(ask(seeing_token, address)) == (source if part == "source" else HOLDING)
    # Who was given the bytes of a secret leaves a trail; the secret itself does not.
    assert str(record.pk) in caplog.text
    assert SECRET not in caplog.text


def test_what_is_no_text_is_looked_through_too(cast: Cast, token: str, seeing_token: str) -> None:
    broken = HOLDING[:-1] + b"\xff}"
    record = take_in(cast, broken)
    assert record.is_quarantined
    assert ask(token, f"/api/v1/records/{record.pk}/raw").status_code == 403
    assert read(ask(seeing_token, f"/api/v1/records/{record.pk}/raw")) == broken


def test_what_is_too_long_to_be_looked_through_is_withheld(
    cast: Cast, token: str, seeing_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.api.masking.MOST_BYTES_LOOKED_THROUGH", 10)
    record = take_in(cast, b"harmless but long")
    response = ask(token, f"/api/v1/records/{record.pk}/raw")
    assert (response.status_code, response.json()["masked"]) == (403, None)
    assert read(ask(seeing_token, f"/api/v1/records/{record.pk}/raw")) == b"harmless but long"


def test_no_answer_in_json_holds_the_secret(cast: Cast, token: str, seeing_token: str) -> None:
    take_in(cast, WRAPPED)
    settle_all()
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
