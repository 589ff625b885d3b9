"""The trail by the API: narrowed, paged, of one workspace, and for keys with the scope for it alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from inspector.accounts.services import create_api_key
from inspector.audit.findings.services import set_rule
from inspector.intake.models import Delivery
from inspector.intake.withdrawals import take_back, withdraw_delivery
from tests.inspector.api import clients
from tests.inspector.api.clients import costs_the_same, walk
from tests.inspector.conftest import Cast, deliver

pytestmark = pytest.mark.django_db

TRAIL = "/api/v1/trail"


@pytest.fixture
def client(cast: Cast) -> Client:
    return clients.enter(cast, cast.owner.user, "trail")


@pytest.fixture
def delivery(cast: Cast, client: Client) -> Delivery:
    delivery = deliver(cast, b"one\n", name="night.log")
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="a test \x00 of it")
    take_back(membership=cast.owner, delivery=delivery, reason="it was right")
    set_rule(membership=cast.owner, rule="said-twice", is_on=False, severity=None, reason="noise")
    return delivery


def read(client: Client, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(TRAIL, query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_it_is_narrowed_and_paged(cast: Cast, client: Client, delivery: Delivery) -> None:
    whole = read(client)
    assert [deed["deed"] for deed in whole[:3]] == ["rule.set", "delivery.taken-back", "delivery.withdrawn"]
    assert [deed["number"] for deed in whole] == list(range(len(whole), 0, -1))
    withdrawn = whole[2]
    assert withdrawn["actor"] == {"kind": "member", "id": str(cast.auditor.user_id), "name": "amir"}
    assert withdrawn["object"] == {"kind": "delivery", "id": str(delivery.pk), "label": "night.log"}
    assert withdrawn["told"] == "amir withdrew the delivery “night.log”"
    assert walk(client, TRAIL) == whole
    assert read(client, actor=f"member:{cast.auditor.user_id}") == [withdrawn]
    assert read(client, deed="delivery.withdrawn") == [withdrawn]
    assert read(client, about=str(delivery.pk)) == whole[1:3]
    assert read(client, q="noise") == whole[:1]
    assert read(client, since=withdrawn["at"], deed="delivery.withdrawn") == [withdrawn]
    assert read(client, until=withdrawn["at"], about=str(delivery.pk)) == []
    assert costs_the_same(client, TRAIL, 1, 50)
    # Reading it is no deed.
    assert read(client) == whole


@pytest.mark.usefixtures("delivery")
def test_who_may_not_read_it_and_what_is_refused(cast: Cast, client: Client) -> None:
    for scopes in (["read"], ["ingest", "read", "secrets", "withdraw", "review", "sign", "export"]):
        token = create_api_key(workspace=cast.workspace, name="k", scopes=scopes, created_by=cast.owner.user)[1]
        assert client.get(TRAIL, headers={"Authorization": f"Bearer {token}"}).status_code == 403
    other = create_api_key(workspace=cast.stranger.workspace, name="k", scopes=["trail"])[1]
    foreign = client.get(TRAIL, headers={"Authorization": f"Bearer {other}"}).content.decode()
    assert "night.log" not in foreign
    assert "amir" not in foreign
    for name, wrong in (
        ("actor", "somebody:1"),
        ("deed", "delivery.eaten"),
        ("about", "x"),
        ("since", "2026-11-21"),
        ("since", "2026-11-21T09:00:00"),
        ("until", "2026-13-21T09:00:00Z"),
        ("until", "0001-01-01T00:00:00Z"),
        ("cursor", "x"),
        ("nonsense", "1"),
    ):
        refused = client.get(TRAIL, {name: wrong})
        assert (refused.status_code, refused.json()["parameter"]) == (400, name)
