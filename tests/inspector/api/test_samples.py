"""Audit samples by the API: drawn in the name of the key's maker, the same by the same seed, and read in pages."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from django.test import Client

from inspector.accounts.services import create_api_key
from inspector.audit.models import AuditSample, ReviewItem
from tests.inspector.api import clients
from tests.inspector.api.clients import costs_the_same, walk
from tests.inspector.conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db

SAMPLES = "/api/v1/samples"
WANTED = {"name": "November", "stratum": "channel", "wanted": 3, "seed": "s", "reviewers": 2, "criteria": ["Is it so?"]}


def enter(cast: Cast, who: Any, *scopes: str) -> Client:
    return clients.enter(cast, who, *(scopes or ("review", "sign")))


def draw(client: Client, **said: Any) -> Any:
    return client.post(SAMPLES, json.dumps({**WANTED, **said}), content_type="application/json")


@pytest.fixture
def conversations(cast: Cast) -> None:
    for number in range(5):
        deliver(
            cast,
            b'{"raw": "Pay.", "conversation": "c%d", "id": "m", "at": "2026-11-0%dT09:00:00Z"}' % (number, number + 1),
        )
    settle_all()


@pytest.mark.usefixtures("conversations")
def test_the_same_seed_draws_the_same_again(cast: Cast, stranger_token: str) -> None:
    client = enter(cast, cast.auditor.user)
    made = draw(client)
    assert made.status_code == 201, made.content
    sample = made.json()
    assert (sample["population"], sample["drawn"], sample["made_by"]) == (5, 3, "amir")
    assert sample["strata"] == [{"name": "main", "population": 5, "drawn": 3}]
    assert client.get(f"{SAMPLES}/{sample['id']}").json() == sample
    assert client.get(f"{SAMPLES}/{sample['id']}", {"strata_from": 1}).json()["strata"] == []
    address = f"{SAMPLES}/{sample['id']}/conversations"
    drawn = walk(client, address)
    assert [each["place"] for each in drawn] == [1, 2, 3]
    digest = hashlib.sha256(b"".join(sorted(bytes.fromhex(each["identity"]) for each in drawn))).hexdigest()
    assert digest == sample["digest"] == draw(client, name="Again").json()["digest"]
    assert digest != draw(client, name="Other", seed="t").json()["digest"]
    items = ReviewItem.objects.filter(queue=sample["queue"], needed=2)
    assert {str(item.pk) for item in items} == {each["item"] for each in drawn}
    assert costs_the_same(client, address, 1, 3)
    first = client.get(SAMPLES, {"limit": 2}).json()
    rest = client.get(SAMPLES, {"limit": 2, "cursor": first["next"]}).json()
    assert [each["name"] for each in first["results"] + rest["results"]] == ["Other", "Again", "November"]
    # A cursor leads on in its own sample alone.
    assert client.get(address, {"cursor": first["next"]}).status_code == 400
    stranger = create_api_key(workspace=cast.stranger.workspace, name="s", scopes=["review"])[1]
    foreign = Client(headers={"Authorization": f"Bearer {stranger}"})
    assert foreign.get(SAMPLES).json()["results"] == []
    assert foreign.get(address).status_code == 404


@pytest.mark.usefixtures("conversations")
def test_what_is_refused(cast: Cast) -> None:
    client = enter(cast, cast.auditor.user)
    for wrong, member in (
        ({"wanted": 0}, "wanted"),
        ({"wanted": 2.5}, "wanted"),
        ({"stratum": "colour"}, "stratum"),
        ({"reviewers": 3}, "reviewers"),
        ({"since": "2026-11-01"}, "since"),
        ({"since": "2026-11-01T00:00:00"}, "since"),
        ({"criteria": "Is it?"}, "criteria"),
        ({"criteria": ["x", "X"]}, None),
        ({"seed": "é"}, None),
        ({"name": " "}, None),
        ({"since": "2026-11-02T00:00:00Z", "until": "2026-11-01T00:00:00Z"}, None),
        ({"seeds": "s"}, "seeds"),
    ):
        refused = draw(client, **wrong)
        assert (refused.status_code, refused.json().get("member")) == (422, member), (wrong, refused.content)
    assert draw(client, since="2027-01-01T00:00:00Z").status_code == 409
    for other in (enter(cast, cast.auditor.user, "review"), enter(cast, None), enter(cast, cast.viewer.user)):
        assert draw(other).status_code == 403
    assert not AuditSample.objects.exists()
    bounded = draw(client, since="2026-11-02T00:00:00+00:00", until="2026-11-04T00:00:00Z", name="Two days").json()
    assert (bounded["population"], bounded["since"]) == (2, "2026-11-02T00:00:00Z")
