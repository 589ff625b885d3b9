"""What auditors say over the API: of findings, and of characters of messages."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.services import create_api_key
from inspector.audit.comments import reply, withdraw, write_comment
from inspector.audit.models import Finding
from inspector.audit.models.reviews import Comment
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Message
from inspector.trail.models import Deed
from tests.inspector.audit.rule_logs.writing import clowl

from ..conftest import Cast, deliver, deliver_one, resolve_all
from . import clients
from .clients import costs_the_same, walk

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
    resolve_all()
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
    # What was acted on since it was read is refused.
    known = {"state": "fixed", "reason": "x", "seen": whole["acts"][-2]["id"]}
    assert (act(**known).status_code, act(**known | {"seen": ""}).status_code) == (409, 409)
    assert "t was read before amir acted on it, and it is open now" in act(**known).content.decode()
    assert act(**known | {"seen": whole["acts"][-1]["id"]}).json()["state"] == "fixed"


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
    resolve_all()
    counts = {}
    for scopes in (["read"], ["read", "secrets"]):
        token = create_api_key(workspace=cast.workspace, name="k", scopes=scopes, created_by=cast.owner.user)[1]
        client = Client(headers={"Authorization": f"Bearer {token}"})
        assert call(client, reverse("api:findings"), q='raw:"clowl"')
        counts[scopes[-1]] = len(call(client, reverse("api:findings"), q='raw:"opensesame-7731"'))
    assert counts["read"] == 0 < counts["secrets"]


WIRE = (
    '{"clowl":"0.2","mid":"a😀","p":"REQ","from":"oscar","to":"radar","cid":"c",'
    '"auth":{"issuer":"gate","token":"hunter2"},"body":{"t":"x"}}'
)
LIST = "/api/v1/comments"


@pytest.fixture
def message(cast: Cast) -> Message:
    return deliver_one(cast, WIRE)


def enter(cast: Cast, who: Any, *scopes: str) -> Client:
    return clients.enter(cast, who, *(scopes or ("review",)))


def say(client: Client, address: str, said: Any) -> Any:
    return client.post(address, json.dumps(said), content_type="application/json")


def write(cast: Cast, message: Message, piece: str, words: str = "Who is this?") -> Comment:
    start = WIRE.index(piece)
    return write_comment(membership=cast.auditor, message=message, start=start, end=start + len(piece), words=words)


def test_a_key_discusses_in_the_name_of_its_maker(cast: Cast, message: Message) -> None:
    amir, olivia = enter(cast, cast.auditor.user), enter(cast, cast.owner.user)
    on_message = f"/api/v1/messages/{message.pk}/comments"
    start = WIRE.index("a😀")
    made = say(amir, on_message, {"start": start, "end": start + 2, "words": "Who is this?"})
    assert made.status_code == 201, made.content
    comment = made.json()
    assert (comment["quoted"], comment["author"], comment["state"]) == ("a😀", "amir", "open")
    assert not comment["is_other_bytes"]
    acts = f"{LIST}/{comment['id']}/acts"
    answered = say(olivia, acts, {"act": "reply", "words": "A test agent."}).json()
    said = answered["steps"][0]["id"]
    assert say(amir, acts, {"act": "resolved"}).json()["state"] == "resolved"
    assert say(amir, acts, {"act": "reopened"}).json()["state"] == "open"
    # Of words that somebody else wrote, only an owner may take them back.
    assert say(amir, acts, {"act": "withdrawn", "reply": said}).status_code == 403
    taken = say(olivia, acts, {"act": "withdrawn", "reply": said}).json()
    assert [(step["kind"], step["by"], step["words"]) for step in taken["steps"]] == [
        ("reply", "olivia", None),
        ("resolved", "amir", None),
        ("reopened", "amir", None),
    ]
    assert taken["steps"][0]["taken_back"]["by"] == "olivia"
    gone = say(amir, acts, {"act": "withdrawn"}).json()
    assert (gone["state"], gone["words"], gone["taken_back"]["by"]) == ("withdrawn", None, "amir")
    assert say(amir, acts, {"act": "reply", "words": "w"}).status_code == 409
    assert amir.get(on_message).json()["results"] == [gone] == [amir.get(f"{LIST}/{comment['id']}").json()]
    deed = Deed.objects.get(code="comment.written")
    assert (deed.actor_name, deed.about[0]) == ("amir", Comment.objects.get().pk)


def test_what_is_refused(cast: Cast, message: Message, token: str, stranger_token: str) -> None:
    address = f"/api/v1/messages/{message.pk}/comments"
    right = {"start": 0, "end": 1, "words": "w"}
    for client in (
        Client(headers={"Authorization": f"Bearer {token}"}),
        enter(cast, cast.viewer.user),
        enter(cast, None),
    ):
        assert say(client, address, right).status_code == 403
    stranger = create_api_key(workspace=cast.stranger.workspace, name="s", scopes=["review"])[1]
    foreign = Client(headers={"Authorization": f"Bearer {stranger}"})
    comment = write(cast, message, "oscar")
    for nothing in (address, f"{LIST}/{comment.pk}"):
        assert foreign.get(nothing).status_code == 404
    assert say(foreign, f"{LIST}/{comment.pk}/acts", {"act": "resolved"}).status_code == 404
    client = enter(cast, cast.auditor.user)
    for wrong, member in (
        ({**right, "end": 0}, None),
        ({**right, "end": len(WIRE) + 1}, None),
        ({**right, "start": "0"}, "start"),
        ({**right, "start": True}, "start"),
        ({**right, "words": ""}, "words"),
        ({**right, "word": "w"}, "word"),
        ({"start": 0, "end": 1}, "words"),
        ([], None),
    ):
        refused = say(client, address, wrong)
        assert (refused.status_code, refused.json().get("member")) == (422, member), refused.content
        assert refused["Content-Type"] == "application/problem+json"
    acts = f"{LIST}/{comment.pk}/acts"
    for wrong in ({"act": "nice"}, {"act": "reply"}, {"act": "withdrawn", "reply": "x"}, {"words": "w"}):
        assert say(client, acts, wrong).status_code == 422
    assert Comment.objects.count() == 1


def test_what_is_masked_stays_masked(cast: Cast, message: Message) -> None:
    secret = write(cast, message, '"token":"hunter2"', "That is the token of the gate.")
    reply(membership=cast.owner, comment=secret, message=message, words="hunter2 is known.")
    client, exact = enter(cast, cast.auditor.user), enter(cast, cast.owner.user, "review", "secrets")
    for address in (LIST, f"{LIST}/{secret.pk}", f"/api/v1/messages/{message.pk}/comments"):
        shown = client.get(address).content.decode()
        assert "hunter2" not in shown
        assert "token of the gate" not in shown
    [row] = client.get(LIST).json()["results"]
    assert (row["words"], row["is_withheld"], row["replies"]) == (None, True, 1)
    assert len(row["quoted"]) == len('"token":"hunter2"')
    [row] = exact.get(LIST).json()["results"]
    assert (row["words"], row["is_withheld"]) == ("That is the token of the gate.", False)
    assert "hunter2" not in row["quoted"]


def test_lists_narrow_page_and_pass_over_what_is_hidden(cast: Cast, message: Message) -> None:
    client = enter(cast, cast.auditor.user)
    comments = [write(cast, message, piece) for piece in ("oscar", "clowl", "radar")]
    say(client, f"{LIST}/{comments[0].pk}/acts", {"act": "resolved"})

    def read(address: str, **query: Any) -> list[str]:
        """What all pages of one row have, end to end."""
        found: list[str] = []
        cursor = ""
        while True:
            answer = client.get(address, {**query, "limit": 1, "cursor": cursor}).json()
            found += [row["quoted"] for row in answer["results"]]
            if (cursor := answer["next"]) is None:
                return found

    assert read(LIST) == ["radar", "clowl", "oscar"]
    assert read(LIST, state="open") == ["radar", "clowl"]
    assert read(LIST, conversation=str(message.conversation_id)) == ["radar", "clowl", "oscar"]
    missing = client.get(LIST, {"conversation": str(message.pk)})
    assert (missing.status_code, missing.json()["parameter"]) == (400, "conversation")
    assert read(f"/api/v1/messages/{message.pk}/comments") == ["clowl", "oscar", "radar"]
    for wrong in ({"conversation": "x"}, {"state": "nice"}, {"cursor": "x"}, {"limit": "101"}):
        assert client.get(LIST, wrong).status_code == 400
    counts = []
    for limit in (1, 3):
        for address in (LIST, f"/api/v1/messages/{message.pk}/comments"):
            with CaptureQueriesContext(
                connection,
            ) as queries:
                client.get(address, {"limit": limit})
            counts.append(len(queries))
    assert counts[:2] == counts[2:]
    withdraw(membership=cast.auditor, comment=comments[1])
    assert client.get(LIST, {"state": "withdrawn"}).json()["results"][0]["words"] is None
    delivery = message.record.sightings.get().delivery  # type: ignore[attr-defined]
    withdraw_delivery(membership=cast.auditor, delivery=delivery, reason="r")
    resolve_all()
    assert {(row["message"], row["quoted"], row["words"]) for row in client.get(LIST).json()["results"]} == {
        (None, None, None)
    }
