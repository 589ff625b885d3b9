"""Conversations and traces by the search language: those that hold what it finds, and no oracle for what is masked."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from inspector.accounts.models import Channel
from inspector.accounts.services import create_api_key
from inspector.threads.models import Message
from inspector.threads.trees import find_traces_of

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db

LOG = (
    b'{"raw": "Brew the green tea.", "conversation": "tea", "id": "t1", "at": "2026-11-20T09:00:00Z"}\n'
    b'{"raw": "It is done.", "conversation": "tea", "id": "t2", "at": "2026-11-20T09:01:00Z"}\n'
    b'{"raw": "Brew the black coffee.", "conversation": "coffee", "id": "c1", "at": "2026-11-20T09:02:00Z"}\n'
    b'{"clowl":"0.2","mid":"s1","ts":1795118400,"p":"REQ","from":"oscar","to":"radar","cid":"sealed",'
    b'"auth":"s3cret-t0ken","body":{"t":"brew","d":{"q":"cocoa"}}}\n'
)


def ask(token: str, status: int = 200, **query: Any) -> Any:
    answer = Client().get("/api/v1/conversations", query, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == status, answer.content
    return answer.json()


def names(token: str, **query: Any) -> list[str]:
    return [each["native_id"] for each in ask(token, **query)["results"]]


def test_conversations_are_found_by_what_is_said_in_them(cast: Cast, token: str, stranger_token: str) -> None:
    deliver(cast, LOG)
    settle_all(is_examined=False)
    assert sorted(names(token)) == ["coffee", "sealed", "tea"]
    assert names(token, q="green") == ["tea"]
    assert names(token, q="brew dialect:prose") == ["coffee", "tea"]
    # What narrows the list narrows what is found as well, and each stands once however many messages are meant.
    assert names(token, q="id:t1 OR id:t2") == ["tea"]
    assert names(token, q="brew", dialect="clowl") == ["sealed"]
    assert names(token, q="zebra") == []
    assert names(stranger_token, q="brew") == []
    first = ask(token, q="brew dialect:prose", limit=1)
    assert [each["native_id"] for each in first["results"]] == ["coffee"]
    assert names(token, q="brew dialect:prose", limit=1, cursor=first["next"]) == ["tea"]
    refused = ask(token, 400, q="performativ:request")
    assert (refused["parameter"], refused["start"]) == ("q", 0)
    assert "did you mean" in refused["detail"]


def test_no_conversation_tells_what_is_masked_in_it(cast: Cast, token: str) -> None:
    deliver(cast, LOG)
    settle_all(is_examined=False)
    _, seeing = create_api_key(workspace=cast.workspace, name="sees", scopes=["read", "secrets"])
    for part, found in (("cocoa", ["sealed"]), ("s3cret", [])):
        assert names(token, q=f'raw:"{part}"') == found
        assert names(seeing, q=f'raw:"{part}"') == ["sealed"]
    assert names(token, q="s3cret") == []


def ask_traces(token: str, status: int = 200, **query: Any) -> Any:
    answer = Client().get("/api/v1/traces", query, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == status, answer.content
    return answer.json()


def test_traces_are_found_by_what_is_said_in_them(cast: Cast, token: str, stranger_token: str) -> None:
    """Ids that one channel scopes, that join channels by their form, and that an envelope joins: each message's own."""
    random_id = "0b1c6f0e-7c1d-4a3e-9a53-0d4f5a1f2b3c"
    for channel, traces in (("main", ("t1", random_id)), ("other", ("t1", random_id)), ("third", ("t2",))):
        where = Channel.objects.get_or_create(workspace=cast.workspace, name=channel)[0]
        for number, trace in enumerate(traces):
            said = f'"mid":"{channel}{number}","tid":"{trace}","from":"{channel}","to":"b","cid":"c{number}"'
            deliver(cast, f'{{"clowl":"0.2","p":"INF","ts":179511840{number},{said}}}\n'.encode(), channel=where)
    around = '{"raw": "Brew it.", "id": "%s", "trace": "t2", "conversation": "c", "at": "2026-11-20T09:00:00Z"}\n'
    for channel in ("third", "other"):
        where = Channel.objects.get(workspace=cast.workspace, name=channel)
        deliver(cast, (around % f"around-{channel}").encode(), channel=where)
    settle_all(is_examined=False)
    messages = list(Message.objects.exclude(trace_id=""))
    assert len({message.trace_basis for message in messages}) == 3
    for message in messages:
        found = ask_traces(token, q=f"id:{message.native_id}")["results"]
        own = find_traces_of(messages=[message])
        assert [each["id"] for each in found] == [trace["id"] for trace in own], message.native_id
        assert len(own) == 1
    assert len(ask_traces(token, q="performative:inform")["results"]) == len(ask_traces(token)["results"]) == 4
    first = ask_traces(token, q="performative:inform", limit=1)
    again = ask_traces(token, q="performative:inform", limit=1, cursor=first["next"])
    assert first["results"][0]["id"] != again["results"][0]["id"]
    assert ask_traces(token, q="zebra")["results"] == ask_traces(stranger_token, q="brew")["results"] == []
    assert ask_traces(token, 400, q="performativ:request")["parameter"] == "q"
    assert len(ask_traces(token, q='raw:"Brew"')["results"]) == 1
