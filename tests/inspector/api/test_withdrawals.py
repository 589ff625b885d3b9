"""Withdrawing a delivery over the API, what is said of it afterwards, and rows of only the fields asked for."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from inspector.accounts.models import ApiKey, Membership
from inspector.accounts.services import create_api_key
from inspector.intake.models import Withdrawal
from inspector.threads.models import Message

from ..conftest import Cast, deliver, settle_all

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
    settle_all()
    message = client.get("/api/v1/messages").json()["results"][0]["id"]
    assert client.get(f"/api/v1/messages/{message}").json()["is_withdrawn"] is False

    made = withdraw(client, address)
    assert made.status_code == 201
    assert (made.json()["by"], made.json()["is_done"]) == (cast.auditor.user.get_username(), False)
    settle_all()
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
    settle_all()
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
    settle_all()
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
