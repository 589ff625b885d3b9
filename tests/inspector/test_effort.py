"""No answer takes the processor for longer than its share, and none is computed for somebody who has gone."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from inspector import bounds
from inspector.accounts.sessions import BACKEND
from inspector.bounds import GoneError, SpentError, bound_effort, check_effort
from inspector.threads.models import Conversation, Message
from tests.inspector.conftest import Cast, take_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def addresses(cast: Cast) -> dict[str, list[str]]:
    """What reads many rows, messages or fields, by whom it is asked."""
    body = {"t": "x", "d": {f"k{number}": number for number in range(50)}}
    line = {"clowl": "0.2", "p": "REQ", "from": "a", "to": "b", "cid": "c", "tid": "goal", "body": body}
    take_in(cast, *(json.dumps(line | {"mid": f"m{number}"}).encode() + b"\n" for number in range(9)))
    talk, message = Conversation.objects.get().pk, Message.objects.all()[0].pk
    pages = [f"conversations/{talk}/{part}" for part in ("", "?order=time", "raw/", "sequence/")]
    pages += [f"messages/{message}/", "search/?q=from:a"]
    answers = ["messages?limit=9", f"messages/{message}", f"messages/{message}/fields", "conversations", "findings"]
    answers += [f"conversations/{talk}{part}" for part in ("", "/sequence", "/tree")]
    return {"page": [f"/w/acme/{each}" for each in pages], "api": [f"/api/v1/{each}" for each in answers]}


def test_what_had_its_share_is_told_to_ask_for_less(
    addresses: dict[str, list[str]], cast: Cast, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"Authorization": f"Bearer {token}"}
    body = '{"clowl": "0.2"}\n'
    decode = ("/api/v1/decode", body, "text/plain")
    client = Client(raise_request_exception=False)
    client.force_login(cast.viewer.user, backend=BACKEND)
    for seconds, status in ((bounds.MAX_SECONDS, 200), (0.0, 503)):
        monkeypatch.setattr(bounds, "MAX_SECONDS", seconds)
        said = [client.get(address) for address in addresses["page"]]
        told = [client.get(address, headers=key) for address in addresses["api"]] + [client.post(*decode, headers=key)]
        assert {answer.status_code for answer in (*said, *told)} == {status}
    assert all("This took too long" in answer.content.decode() for answer in said)
    assert all("ask for less" in answer.json()["detail"] and answer["Retry-After"] for answer in told)
    # What is accepted is never answered with less than its receipt.
    sent = client.post("/api/v1/messages", body, "text/plain", headers=key)
    assert sent.status_code == 202


def test_what_is_computed_for_one_who_has_gone_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: Any = SimpleNamespace(is_gone=False)
    monkeypatch.setitem(bounds._visits, threading.get_ident(), gone)
    with bound_effort():
        check_effort()
        gone.is_gone = True
        with pytest.raises(GoneError):
            check_effort()


def test_outside_of_an_answer_nothing_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_SECONDS", 0.0)
    check_effort()
    with bound_effort(), pytest.raises(SpentError):
        check_effort()
    check_effort()
