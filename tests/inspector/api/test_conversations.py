"""Conversations and traces: found by what was said in them, as tasks, as sequences, and as windows of trees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from inspector.accounts.models import Channel
from inspector.accounts.services import create_api_key
from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Conversation, Message, Trace
from inspector.threads.trees import find_traces_of

from ..conftest import Cast, deliver, resolve_all
from .clients import get

pytestmark = pytest.mark.django_db
LOG = (
    b'{"raw": "Brew the green tea.", "conversation": "tea", "id": "t1", "at": "2026-11-20T09:00:00Z"}\n'
    b'{"raw": "It is done.", "conversation": "tea", "id": "t2", "at": "2026-11-20T09:01:00Z"}\n'
    b'{"raw": "Brew the black coffee.", "conversation": "coffee", "id": "c1", "at": "2026-11-20T09:02:00Z"}\n'
    b'{"clowl":"0.2","mid":"s1","ts":1795118400,"p":"REQ","from":"oscar","to":"radar","cid":"sealed",'
    b'"auth":"s3cret-t0ken","body":{"t":"brew","d":{"q":"cocoa"}}}\n'
)


def names(token: str, **query: Any) -> list[str]:
    return [each["native_id"] for each in get("conversations", token, **query)["results"]]


def test_conversations_are_found_by_what_is_said_in_them(cast: Cast, token: str, stranger_token: str) -> None:
    deliver(cast, LOG)
    resolve_all(is_examined=False)
    assert sorted(names(token)) == ["coffee", "sealed", "tea"]
    assert names(token, q="green") == ["tea"]
    assert names(token, q="brew dialect:prose") == ["coffee", "tea"]
    # What narrows the list narrows what is found as well, and each stands once however many messages are meant.
    assert names(token, q="id:t1 OR id:t2") == ["tea"]
    assert names(token, q="brew", dialect="clowl") == ["sealed"]
    assert names(token, q="zebra") == []
    assert names(stranger_token, q="brew") == []
    first = get("conversations", token, q="brew dialect:prose", limit=1)
    assert [each["native_id"] for each in first["results"]] == ["coffee"]
    assert names(token, q="brew dialect:prose", limit=1, cursor=first["next"]) == ["tea"]
    refused = get("conversations", token, 400, q="performativ:request")
    assert (refused["parameter"], refused["start"]) == ("q", 0)
    assert "did you mean" in refused["detail"]


def test_no_conversation_tells_what_is_masked_in_it(cast: Cast, token: str) -> None:
    deliver(cast, LOG)
    resolve_all(is_examined=False)
    _, seeing = create_api_key(workspace=cast.workspace, name="sees", scopes=["read", "secrets"])
    for part, found in (("cocoa", ["sealed"]), ("s3cret", [])):
        assert names(token, q=f'raw:"{part}"') == found
        assert names(seeing, q=f'raw:"{part}"') == ["sealed"]
    assert names(token, q="s3cret") == []


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
    resolve_all(is_examined=False)
    messages = list(Message.objects.exclude(trace_id=""))
    assert len({message.trace_basis for message in messages}) == 3
    for message in messages:
        found = get("traces", token, q=f"id:{message.native_id}")["results"]
        own = find_traces_of(messages=[message])
        assert [each["id"] for each in found] == [trace["id"] for trace in own], message.native_id
        assert len(own) == 1
    assert len(get("traces", token, q="performative:inform")["results"]) == len(get("traces", token)["results"]) == 4
    first = get("traces", token, q="performative:inform", limit=1)
    again = get("traces", token, q="performative:inform", limit=1, cursor=first["next"])
    assert first["results"][0]["id"] != again["results"][0]["id"]
    assert get("traces", token, q="zebra")["results"] == get("traces", stranger_token, q="brew")["results"] == []
    assert get("traces", token, 400, q="performativ:request")["parameter"] == "q"
    assert len(get("traces", token, q='raw:"Brew"')["results"]) == 1


def test_windows_end_to_end_hold_every_message_once(client: Client, cast: Cast, token: str) -> None:
    lines = [
        {
            "clowl": "0.2",
            "mid": f"m{number}",
            "ts": 1795251600 + number,
            "pid": "lost" if number == 7 else None,
            "p": "REQ" if number % 9 == 0 else "PROG",
            "from": "ink",
            "to": "muse",
            "cid": "c",
            "body": {"t": "draft", "d": {"pct": number}},
        }
        for number in range(70)
    ]
    deliver(cast, *(json.dumps(line).encode() + b"\n" for line in lines))
    resolve_all(is_examined=False)
    address = reverse("api:sequence", args=[Conversation.objects.get(native_id="c").pk])

    def ask(**query: object) -> Any:
        response = client.get(address, query, headers={"Authorization": f"Bearer {token}"})
        assert response.status_code == 200, response.content
        return response.json()

    # The older name of a place leads through it, too.
    for alike, name, key in (
        ("together", "cursor", "next"),
        ("apart", "cursor", "next"),
        ("apart", "offset", "next_offset"),
    ):
        arrows: list[dict[str, Any]] = []
        place: Any = ""
        while place is not None:
            window = ask(**({name: place} if place else {}), limit=32, alike=alike)
            arrows += window["arrows"]
            place = window[key]
        messages = [message for arrow in arrows for message in arrow["messages"]]
        assert len(messages) == len(set(messages)) == 70
        assert sum(arrow["count"] for arrow in arrows) == window["message_count"] == 70
        assert (len(arrows) == 70) == (alike == "apart")
        assert [arrow["missing_id"] for arrow in arrows if arrow["is_parent_missing"]] == ["lost"]
    assert window["agents"] == ["ink", "muse"]
    refused = client.get(address, {"limit": 201}, headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 400
    cursor = ask(limit=32)["next"]
    both = client.get(address, {"offset": 3, "cursor": cursor}, headers={"Authorization": f"Bearer {token}"})
    assert (both.status_code, both.json()["parameter"]) == (400, "offset")
    whole = reverse("api:conversation", args=[Conversation.objects.get(native_id="c").pk])
    page = client.get(whole, {"offset": 64, "limit": 4}, headers={"Authorization": f"Bearer {token}"}).json()
    assert [message["native_id"] for message in page["messages"]] == ["m64", "m65", "m66", "m67"]
    assert page["next_offset"] == 68


def clowl(second: int, name: str, act: str, sender: str, receiver: str, parent: str = "") -> bytes:
    raw = {"clowl": "0.2", "mid": name, "cid": "c", "p": act, "from": sender, "to": receiver, "body": {"t": "ship"}}
    text = json.dumps(raw | ({"pid": parent} if parent else {}))
    return json.dumps({"raw": text, "at": f"2024-11-21T09:00:{second:02d}Z"}).encode() + b"\n"


def test_tasks_with_their_steps_and_measures(cast: Cast, token: str, stranger_token: str) -> None:
    deliver(
        cast,
        clowl(0, "a", "REQ", "ada", "bob"),
        clowl(3, "b", "DONE", "bob", "ada"),
        clowl(9, "c", "REQ", "ada", "bob"),
    )
    resolve_all(is_examined=False)
    address = f"conversations/{Conversation.objects.get().pk}/tasks"
    said = get(f"{address}?limit=1&order=begin", token)
    assert said["as_of"] == "2024-11-21T09:00:09Z"
    assert said["measures"]["states"] == {"open": 1, "done": 1}
    assert said["measures"]["finish"] == {"measured": 1, "median": 3.0, "p95": 3.0}
    (task,) = said["results"]
    ids = {message.native_id: str(message.pk) for message in Message.objects.all()}
    assert (task["state"], task["request"], task["performer"], task["native_id"]) == ("done", ids["a"], "bob", None)
    assert [(step["message"], step["event"], step["state"]) for step in task["steps"]] == [
        (ids["a"], "asked", "open"),
        (ids["b"], "done", "done"),
    ]
    assert task["steps"][0]["inferred"] is None
    assert "by its turn" in task["steps"][1]["inferred"]
    assert said["next"] is None
    first = get(f"{address}?limit=1", token)
    rest = get(f"{address}?limit=1&cursor={first['next']}", token)
    assert {row["request"] for row in first["results"] + rest["results"]} == {ids["a"], ids["c"]}
    assert rest["next"] is None
    later = get(f"{address}?as_of=2024-11-21T12:00:00Z&state=stalled", token)
    assert [(row["state"], row["said_state"]) for row in later["results"]] == [("stalled", "open")]
    get(address, stranger_token, 404)


@pytest.mark.parametrize("query", ["as_of=yesterday", "as_of=2024-11-21T12:00:00", "state=asleep", "cursor=x"])
def test_what_cannot_be_read_is_refused_by_name(cast: Cast, token: str, query: str) -> None:
    deliver(cast, clowl(0, "a", "REQ", "ada", "bob"))
    resolve_all(is_examined=False)
    refused = get(f"conversations/{Conversation.objects.get().pk}/tasks?{query}", token, 400)
    assert refused["parameter"] == query.partition("=")[0]


def say(number: int, conversation: str, act: str, parent: str | None = None) -> bytes:
    said = {"clowl": "0.2", "mid": f"m{number}", "p": act, "from": "a", "to": "b", "cid": conversation, "tid": "t1"}
    said |= {"ts": 1763715600 + number, "body": {"t": "x"}} | ({"pid": parent} if parent else {})  # type: ignore[dict-item]
    return json.dumps(said).encode() + b"\n"


@pytest.fixture
def trace(cast: Cast) -> Trace:
    lines = [
        *(say(1, "one", "REQ"), say(2, "two", "DLGT", "m1"), say(3, "two", "DONE", "m2"), say(9, "one", "DONE", "m1")),
        say(5, "three", "INF", "lost"),
    ]
    deliver(cast, *lines)
    resolve_all(is_examined=False)
    return Trace.objects.get()


def test_a_tree_in_windows(token: str, trace: Trace) -> None:
    listed = get("traces", token)["results"]
    assert [(each["native_id"], each["message_count"], each["channel"]) for each in listed] == [("t1", 5, "main")]
    assert get("traces?fields=native_id,state", token)["results"] == [
        {name: listed[0][name] for name in ("id", "native_id", "state")}
    ]
    assert get(f"traces/{trace.pk}", token)["same_id_elsewhere"] == []
    rows: list[Any] = []
    at: str | None = ""
    while at is not None:
        window = get(f"traces/{trace.pk}/tree?limit=3&at={at}", token)
        rows, at = [*rows, *window["rows"]], window["next"]
    names = [
        (each["message"] or {}).get("native_id") or (each["conversation"] or {}).get("native_id") or each["missing"]
        for each in rows
    ]
    assert names == ["one", "m1", "m2", "m3", "m9", "three", "lost", "m5"]
    assert [each["depth"] for each in rows] == [0, 1, 2, 3, 2, 0, 1, 2]
    assert [at for at, each in enumerate(rows) if each["is_critical"]] == [0, 1, 4]
    back = get(f"traces/{trace.pk}/tree?limit=3&at={rows[5]['place']}", token)
    assert back["previous"] == rows[2]["place"]
    assert [each["place"] for each in back["rows"]] == [each["place"] for each in rows[5:]]
    assert [each["kind"] for each in rows[5:]] == ["conversation", "ghost", "message"]
    folded = get(f"traces/{trace.pk}/tree?level=0&toggled={rows[5]['place']}", token)["rows"]
    names = [each["place"] for each in rows]
    assert [(names.index(each["place"]), each["is_open"], each["hidden"]) for each in folded] == [
        *((0, False, 4), (5, True, 0), (6, False, 1)),
    ]
    assert not any(each["is_more_hidden"] for each in folded)
    for parameter in ("at=5", "toggled=x"):
        address = f"/api/v1/traces/{trace.pk}/tree?{parameter}"
        assert Client().get(address, headers={"Authorization": f"Bearer {token}"}).status_code == 400


def test_bars_last_until_the_answer(token: str, trace: Trace) -> None:
    said = get(f"traces/{trace.pk}/waterfall", token)
    bars = [(each["starts_at"][17:19], each["ends_at"][17:19], each["outcome"]) for each in said["bars"]]
    assert bars[1:3] == [("01", "09", "done"), ("02", "03", "done")]
    assert sum(band["rows"] for band in said["map"]) == 5
    assert said["count"] == 8


def test_the_tree_of_a_conversation(token: str, stranger_token: str, trace: Trace) -> None:
    conversation = Conversation.objects.get(native_id="two")
    rows = get(f"conversations/{conversation.pk}/tree", token)["rows"]
    assert [(each["depth"], each["message"]["native_id"]) for each in rows] == [(0, "m2"), (1, "m3")]
    assert rows[0]["message"]["parent"], "it answers a message of another conversation"
    assert len(get(f"conversations/{conversation.pk}/waterfall", token)["bars"]) == 2
    for address in (f"conversations/{conversation.pk}/tree", f"traces/{trace.pk}", f"traces/{trace.pk}/tree"):
        headers = {"Authorization": f"Bearer {stranger_token}"}
        assert Client().get(f"/api/v1/{address}", headers=headers).status_code == 404


def test_a_place_that_was_withdrawn_is_refused(cast: Cast, token: str, trace: Trace) -> None:
    deliver(cast, say(8, "two", "PROG", parent="m2"))
    last = deliver(cast, say(7, "two", "PROG", parent="m2"))
    resolve_all()
    conversation = Conversation.objects.get(native_id="two")
    address = f"conversations/{conversation.pk}/tree"
    place = next(
        row["place"] for row in get(address, token)["rows"] if row["message"] and row["message"]["native_id"] == "m7"
    )
    assert get(f"{address}?at={place}", token)["rows"][0]["place"] == place
    withdraw_delivery(membership=cast.owner, delivery=last, reason="sent twice")
    resolve_all()
    # From the beginning again, a walk would go round for ever.
    refused = Client().get(f"/api/v1/{address}?at={place}", headers={"Authorization": f"Bearer {token}"})
    assert (refused.status_code, refused.json()["parameter"]) == (410, "at")
