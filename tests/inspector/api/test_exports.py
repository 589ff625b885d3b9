"""Exports over the API: asked for, followed, downloaded by keys that may, stopped by the key that asked."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from django.test import Client

from inspector.accounts.models import ApiKey
from inspector.accounts.services import create_api_key
from inspector.exports.models import Export
from inspector.threads.models import Conversation

from ..conftest import Cast, deliver, resolve_all
from ..exports.conftest import ask, make
from . import clients

pytestmark = pytest.mark.django_db

TOKEN = "s3cret-t0ken-of-oscar"
LOG = (
    b'{"clowl":"0.2","mid":"m1","ts":1795118400,"p":"REQ","from":"oscar","to":"radar","cid":"c1","auth":"%s",'
    b'"body":{"t":"search"}}\n{"raw":"?Uk/co","from":"ada","conversation":"c2"}\n' % TOKEN.encode()
)
ADDRESS = "/api/v1/exports"


def enter(cast: Cast, *scopes: str) -> Client:
    return clients.enter(cast, None, *scopes)


def post(client: Client, **said: Any) -> Any:
    return client.post(ADDRESS, said, content_type="application/json")


def test_a_key_asks_follows_and_downloads(cast: Cast) -> None:
    deliver(cast, LOG)
    resolve_all()
    client = enter(cast, ApiKey.Scope.EXPORT)
    asked = post(client, form="jsonl", q="from:oscar")
    assert (asked.status_code, asked.json()["state"], asked.json()["file"]) == (202, "queued", None)
    address = f"{ADDRESS}/{asked.json()['id']}"
    assert client.get(f"{address}/file").status_code == 409
    make(Export.objects.get())
    told = client.get(address).json()
    assert (told["state"], told["manifest"]["messages"], told["manifest"]["is_masked"]) == ("done", 1, True)
    response = client.get(told["file"])
    data = b"".join(response)
    assert response["X-SHA256"] == told["manifest"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert TOKEN.encode() not in data
    assert json.loads(data)["inspected"]["is_masked"]
    assert [row["id"] for row in client.get(ADDRESS).json()["results"]] == [told["id"]]
    assert client.delete(address).json()["state"] == "removed"
    assert client.get(f"{address}/file").status_code == 409
    assert client.delete(address).status_code == 409


def test_exact_bytes_need_the_scope_for_secrets_when_asked_and_when_fetched(cast: Cast) -> None:
    deliver(cast, LOG)
    resolve_all()
    plain, seeing = enter(cast, ApiKey.Scope.EXPORT), enter(cast, ApiKey.Scope.EXPORT, ApiKey.Scope.SECRETS)
    assert post(plain, form="csv", include_secrets=True).status_code == 403
    conversation = Conversation.objects.get(native_id="c1")
    asked = post(seeing, form="csv", include_secrets=True, has_mark=True, conversation=str(conversation.pk)).json()
    make(Export.objects.get())
    assert TOKEN.encode() in b"".join(seeing.get(f"{ADDRESS}/{asked['id']}/file"))
    assert plain.get(f"{ADDRESS}/{asked['id']}/file").status_code == 403
    assert plain.get(f"{ADDRESS}/{asked['id']}").json()["file"] is None
    assert plain.delete(f"{ADDRESS}/{asked['id']}").status_code == 403


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({}, 422),
        ({"form": "xlsx"}, 422),
        ({"form": []}, 422),
        ({"form": "csv", "q": 5}, 422),
        ({"form": "csv", "is_masked": "no"}, 422),
        ({"form": "csv", "include_secrets": 1}, 422),
        ({"form": "csv", "include_secrets": False, "is_masked": False}, 422),
        ({"form": "csv", "is_masked": True}, 202),
        ({"form": "csv", "other": "x"}, 422),
        ({"form": "csv", "q": "a", "conversation": "b"}, 422),
        ({"form": "csv", "q": "nothing:here"}, 422),
        ({"form": "csv", "q": "a\0b"}, 422),
        ({"form": "csv", "q": "\ud800"}, 422),
        ({"form": "csv", "q": "a b"}, 202),
        ({"form": "csv", "conversation": "b"}, 404),
        ({"form": "csv", "conversation": "019dd7a2-5d3a-7c11-9f7e-2f4f6a1b8e55"}, 404),
    ],
)
def test_what_is_asked_wrongly_is_refused(cast: Cast, said: dict[str, Any], status: int) -> None:
    assert post(enter(cast, ApiKey.Scope.EXPORT), **said).status_code == status
    assert Export.objects.count() == (status == 202)


def test_a_key_without_the_scope_or_of_another_workspace_has_none(cast: Cast, token: str) -> None:
    export = make(ask(cast))
    reading = Client(headers={"Authorization": f"Bearer {token}"})
    for address in (ADDRESS, f"{ADDRESS}/{export.pk}", f"{ADDRESS}/{export.pk}/file"):
        assert reading.get(address).status_code == 403
    other = create_api_key(workspace=cast.stranger.workspace, name="k", scopes=ApiKey.Scope.values)[1]
    stranger = Client(headers={"Authorization": f"Bearer {other}"})
    assert stranger.get(ADDRESS).json()["results"] == []
    for address in (f"{ADDRESS}/{export.pk}", f"{ADDRESS}/{export.pk}/file"):
        assert stranger.get(address).status_code == 404
    assert stranger.delete(f"{ADDRESS}/{export.pk}").status_code == 404
