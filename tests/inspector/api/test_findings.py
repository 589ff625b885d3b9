"""Findings by the API: listed, one with its history, and judged by a key that may, in the name of its maker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.services import create_api_key
from inspector.audit.models import Finding
from tests.inspector.api.clients import costs_the_same, walk
from tests.inspector.audit.rule_logs.writing import clowl
from tests.inspector.conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db

TWICE = clowl("m1", "REQ", "oscar", "radar").replace('"p": "REQ"', '"p": "REQ", "p": "DONE"')
MISSING = clowl("m9", "DONE", "radar", "oscar", minute=5, pid="m8")


def call(client: Client, address: str, **given: Any) -> list[str]:
    answer = client.get(address, given)
    assert answer.status_code == 200, answer.content
    return [each["rule"] for each in answer.json()["results"]]


@pytest.fixture
def found(cast: Cast) -> Finding:
    deliver(cast, TWICE.encode(), MISSING.encode())
    settle_all()
    return Finding.objects.get(rule="said-twice")


def test_findings_are_listed_and_narrowed(found: Finding, token: str, stranger_token: str) -> None:
    client = Client(headers={"Authorization": f"Bearer {token}"})
    address = reverse("api:findings")
    both = call(client, address)
    assert {"missing-message", "said-twice"} <= set(both)
    assert "missing-message" not in call(client, address, least="warning")
    assert call(client, address, rule="said-twice", state="open") == ["said-twice"]
    assert call(client, address, rule="said-twice", state="fixed") == []
    assert call(client, address, conversation=str(found.conversation_id)) == both
    page = client.get(address, {"limit": 1}).json()
    assert [each["rule"] for each in page["results"]] + call(client, address, cursor=page["next"]) == both
    for wrong in ({"rule": "nonsense"}, {"state": "nice"}, {"cursor": "x"}, {"conversation": "x"}, {"q": "nonsense:x"}):
        assert client.get(address, wrong).status_code == 400
    stranger = Client(headers={"Authorization": f"Bearer {stranger_token}"})
    assert call(stranger, address) == []
    assert stranger.get(reverse("api:finding", args=[found.pk])).status_code == 404


def test_a_key_judges_in_the_name_of_its_maker(cast: Cast, found: Finding, token: str) -> None:
    address = reverse("api:finding-acts", args=[found.pk])

    def judge(token: str, said: Any, content_type: str = "application/json") -> int:
        client = Client(headers={"Authorization": f"Bearer {token}"})
        return client.post(address, said, content_type=content_type).status_code

    def make(who: Any) -> str:
        return create_api_key(workspace=cast.workspace, name="judge", scopes=["review", "read"], created_by=who)[1]

    said = {"state": "false-alarm", "reason": "a test"}
    assert judge(token, said) == 403
    assert judge(make(None), said) == 403
    assert judge(make(cast.viewer.user), said) == 403
    mine = make(cast.auditor.user)
    for state in ("accepted", "fixed", "false-alarm"):
        assert judge(mine, {"state": state}) == 422
    assert judge(mine, {"state": "nice"}) == 422
    assert judge(mine, {"state": "fixed", "more": "x"}) == 422
    assert judge(mine, "state=fixed", "text/plain") == 415
    assert judge(mine, "{", "application/json") == 400
    assert judge(mine, said) == 201
    whole = Client(headers={"Authorization": f"Bearer {mine}"}).get(reverse("api:finding", args=[found.pk])).json()
    assert (whole["state"], whole["acts"][0]["by"], whole["acts"][0]["reason"]) == ("false-alarm", "amir", "a test")
    assert whole["span"][0] == 0
    assert whole["text"] == found.text


def test_a_key_snoozes_and_assigns(cast: Cast, found: Finding) -> None:
    key = create_api_key(
        workspace=cast.workspace, name="judge", scopes=["review", "read"], created_by=cast.auditor.user
    )
    client = Client(headers={"Authorization": f"Bearer {key[1]}"})
    address, listed = reverse("api:finding-acts", args=[found.pk]), reverse("api:findings")

    def act(**said: Any) -> Any:
        return client.post(address, said, content_type="application/json")

    until = (timezone.now() + timedelta(days=7)).isoformat()
    wrong = (
        *({}, {"state": "open", "assignee": ""}, {"snoozed_until": until}, {"snoozed_until": "soon", "reason": "x"}),
        *({"snoozed_until": "2020-01-01T00:00:00Z", "reason": "x"}, {"assignee": None}, {"assignee": "nobody-here"}),
        *({"assignee": cast.viewer.user.get_username()}, {"assignee": "a\x00b"}),
    )
    for said in wrong:
        assert act(**said).status_code == 422, said
    assert act(snoozed_until=until, reason="on Monday").json()["snoozed_until"] is not None
    assert "said-twice" not in call(client, listed, state="open")
    assert call(client, listed, state="snoozed") == ["said-twice"]
    assert act(state="open").json()["snoozed_until"] is None
    assert act(assignee="amir").json()["assignee"] == "amir"
    assert call(client, listed, assignee="amir") == ["said-twice"]
    assert call(client, listed, assignee="nobody-here") == []
    whole = act(assignee="").json()
    assert whole["assignee"] is None
    assert [each["kind"] for each in whole["acts"]] == ["snoozed", "judged", "assigned", "assigned"]
    assert [each["assignee"] for each in whole["acts"]] == [None, None, "amir", None]


def test_the_search_language_and_the_choice_of_members(found: Finding, token: str, unhurried: None) -> None:
    client = Client(headers={"Authorization": f"Bearer {token}"})
    address = reverse("api:findings")
    both = call(client, address)
    assert call(client, address, q="rule:said-twice") == ["said-twice"]
    assert call(client, address, q="from:radar OR from:oscar") == both
    assert "said-twice" not in call(client, address, q="from:radar")
    assert call(client, address, q="from:nobody") == []
    # Each condition stands beside the others.
    assert call(client, address, q="from:oscar", rule="missing-message") == []
    assert [each["rule"] for each in walk(client, address, q="from:radar OR from:oscar")] == both
    [row] = client.get(address, {"rule": "said-twice", "fields": "rule,severity"}).json()["results"]
    assert row.keys() == {"id", "rule", "severity"}
    refused = client.get(address, {"q": "performativ:request"})
    assert (refused.status_code, refused.json()["parameter"]) == (400, "q")
    assert "performative" in refused.json()["detail"]
    assert client.get(address, {"fields": "rule,nonsense"}).status_code == 400
    assert costs_the_same(client, address, 1, 50, q="from:radar OR from:oscar")


def test_masked_characters_find_no_finding_for_a_key_that_may_not_see_them(cast: Cast) -> None:
    secret = '{"clowl":"0.3","mid":"s1","p":"REQ","p":"DONE","from":"a","to":"b","cid":"c","auth":"opensesame-7731"}'
    deliver(cast, secret.encode())
    settle_all()
    counts = {}
    for scopes in (["read"], ["read", "secrets"]):
        token = create_api_key(workspace=cast.workspace, name="k", scopes=scopes, created_by=cast.owner.user)[1]
        client = Client(headers={"Authorization": f"Bearer {token}"})
        assert call(client, reverse("api:findings"), q='raw:"clowl"')
        counts[scopes[-1]] = len(call(client, reverse("api:findings"), q='raw:"opensesame-7731"'))
    assert counts["read"] == 0 < counts["secrets"]
