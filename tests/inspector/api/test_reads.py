"""What keys read is in the audit log: gathered by key, hour and kind of thing, and before it is answered."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models import F
from django.test import Client
from django.utils import timezone

from inspector.accounts.models import ApiKey, ApiKeyReads
from inspector.accounts.services import create_api_key, record_reads
from inspector.api import endpoints
from inspector.threads.models import Message
from inspector.trail.models import Deed
from inspector.worker import tidy

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db
LOG = b'{"clowl":"0.2","mid":"m1","p":"INF","from":"oscar","to":["radar"],"cid":"c1","body":{"t":"paid 100"}}\n'


@pytest.fixture
def log(cast: Cast) -> Message:
    deliver(cast, LOG)
    settle_all()
    return Message.objects.get()


def ask(token: str, path: str) -> Any:
    return Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})


def let_an_hour_pass() -> None:
    ApiKeyReads.objects.update(hour=F("hour") - timedelta(hours=2))


def test_an_entry_for_each_key_hour_and_kind(cast: Cast, log: Message, token: str) -> None:
    _, other = create_api_key(workspace=cast.workspace, name="other", scopes=["read"])
    before = Deed.objects.filter(code="api-key.read").count()
    for _ in range(7):
        assert ask(token, f"messages/{log.pk}").status_code == 200
    for path in ("messages?q=paid", f"conversations/{log.conversation_id}", f"records/{log.record_id}/raw"):
        answer = ask(token, path)
        assert answer.status_code == 200
        answer.getvalue()
    assert ask(other, "messages").status_code == 200
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
        assert ask(key, path).status_code == status, path
    assert not ApiKeyReads.objects.exists()


def test_what_cannot_be_written_down_is_not_shown(log: Message, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(endpoints, "add_reads", fail)
    answer = ask(token, f"messages/{log.pk}")
    assert (answer.status_code, answer["Content-Type"]) == (503, "application/problem+json")
    assert "paid" not in answer.content.decode()


def test_reads_of_this_hour_stand_in_one_row(log: Message, token: str) -> None:
    for _ in range(3):
        ask(token, "messages")
    assert ApiKeyReads.objects.get().count == 3
    assert timezone.now() - ApiKeyReads.objects.get().hour < timedelta(hours=1)


def test_what_is_left_of_a_key_that_is_gone_hinders_nobody(cast: Cast, log: Message, token: str) -> None:
    gone, other = create_api_key(workspace=cast.workspace, name="gone", scopes=["read"])
    for _ in range(2):
        assert ask(other, "messages").status_code == 200
    gone.delete()
    assert ask(token, "messages").status_code == 200
    assert ApiKeyReads.objects.get().key.prefix == token.split("_")[1]
