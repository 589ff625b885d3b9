"""The API's agents: the directory by keyset, one agent in full, and nothing of another workspace."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from inspector.audit.agents import join_agents, name_agent
from inspector.intake.models import Delivery
from inspector.threads.models import Agent
from tests.inspector.conftest import Cast, deliver, settle_all
from tests.inspector.pages.conftest import STORY

pytestmark = pytest.mark.django_db
CAPS = (
    b'{"clowl":"0.2","mid":"m9","ts":1795251700,"p":"CAPS","from":"radar","to":"*","cid":"story",'
    b'"body":{"t":"capabilities","d":{"supports":["search"]}}}\n'
)


@pytest.fixture
def story(cast: Cast) -> Delivery:
    delivery = deliver(cast, STORY, CAPS)
    settle_all(is_examined=False)
    return delivery


def get(path: str, token: str, status: int = 200) -> Any:
    response = Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
    assert response.status_code == status, response.content
    return response.json()


def test_the_directory_is_paged_and_narrowed(story: Delivery, token: str) -> None:
    whole = get("agents", token)
    assert [row["name"] for row in get("agents?order=busiest&limit=1", token)["results"]] == ["radar"]
    assert {row["name"]: row["friendly_name"] for row in whole["results"]} == {
        "radar": None,
        "oscar": None,
        "0": "coordinator",
        "1": "planner",
    }
    first = get("agents?limit=3", token)
    rest = get(f"agents?limit=3&cursor={first['next']}", token)
    assert first["results"] + rest["results"] == whole["results"]
    assert rest["next"] is None
    assert [row["name"] for row in get("agents?name=coord", token)["results"]] == ["0"]
    assert {row["name"] for row in get("agents?dialect=nslip", token)["results"]} == {"0", "1"}
    assert get("agents?channel=mian", token, 400)["detail"] == "there is no channel 'mian': did you mean main?"
    assert "GET /api/v1/channels" in get("agents?channel=%00", token, 400)["detail"]
    assert get("agents?cursor=forged", token, 400)["parameter"] == "cursor"
    (busiest, *_) = get("agents?fields=name,sent", token)["results"]
    assert busiest == {name: whole["results"][0][name] for name in ("id", "name", "sent")}
    assert get("agents?fields=nonsense", token, 400)["parameter"] == "fields"


def test_an_agent_tells_whom_it_talks_with_and_what_it_declares(story: Delivery, token: str, cast: Cast) -> None:
    radar, oscar = Agent.objects.get(name="radar"), Agent.objects.get(name="oscar")
    name_agent(membership=cast.auditor, agent=oscar, friendly_name="Boss")
    found = get(f"agents/{radar.pk}", token)
    assert (found["sent"], found["received"], found["failures"]) == (3, 1, 1)
    # Its request, and one that was cited and never received.
    assert found["asked_of_it"]["asked"] == 2
    pairs = {(pair["sender"]["name"], pair["receiver"] and pair["receiver"]["name"]) for pair in found["pairs"]}
    assert pairs == {("oscar", "radar"), ("radar", "oscar"), ("radar", None)}
    assert {pair["sender"]["friendly_name"] for pair in found["pairs"]} == {"Boss", None}
    assert [(each["kind"], each["value"]) for each in found["declared"]] == [("ability", "search")]
    join_agents(membership=cast.auditor, agent=radar, same_as=oscar, reason="one key")
    joined = get(f"agents/{radar.pk}", token)
    assert joined["id"] == str(oscar.pk)
    assert [alias["name"] for alias in joined["aliases"]] == ["radar"]
    assert joined["sent"] == 4


def test_another_workspaces_agents_are_not_there(story: Delivery, stranger_token: str) -> None:
    assert get("agents", stranger_token) == {"results": [], "next": None}
    get(f"agents/{Agent.objects.get(name='radar').pk}", stranger_token, 404)
