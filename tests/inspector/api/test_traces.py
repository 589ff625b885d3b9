"""Traces and trees over the API: the same rows as the page has, window by window, and nothing of another workspace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from inspector.intake.withdrawals import withdraw_delivery
from inspector.threads.models import Conversation, Trace

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db


def ask(token: str, address: str) -> Any:
    response = Client().get(f"/api/v1/{address}", headers={"Authorization": f"Bearer {token}"})
    assert response.status_code == 200, response.content
    return response.json()


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
    settle_all(is_examined=False)
    return Trace.objects.get()


def test_a_tree_in_windows(token: str, trace: Trace) -> None:
    listed = ask(token, "traces")["results"]
    assert [(each["native_id"], each["message_count"], each["channel"]) for each in listed] == [("t1", 5, "main")]
    assert ask(token, "traces?fields=native_id,state")["results"] == [
        {name: listed[0][name] for name in ("id", "native_id", "state")}
    ]
    assert ask(token, f"traces/{trace.pk}")["same_id_elsewhere"] == []
    rows: list[Any] = []
    at: str | None = ""
    while at is not None:
        window = ask(token, f"traces/{trace.pk}/tree?limit=3&at={at}")
        rows, at = [*rows, *window["rows"]], window["next"]
    names = [
        (each["message"] or {}).get("native_id") or (each["conversation"] or {}).get("native_id") or each["missing"]
        for each in rows
    ]
    assert names == ["one", "m1", "m2", "m3", "m9", "three", "lost", "m5"]
    assert [each["depth"] for each in rows] == [0, 1, 2, 3, 2, 0, 1, 2]
    assert [at for at, each in enumerate(rows) if each["is_critical"]] == [0, 1, 4]
    back = ask(token, f"traces/{trace.pk}/tree?limit=3&at={rows[5]['place']}")
    assert back["previous"] == rows[2]["place"]
    assert [each["place"] for each in back["rows"]] == [each["place"] for each in rows[5:]]
    assert [each["kind"] for each in rows[5:]] == ["conversation", "ghost", "message"]
    folded = ask(token, f"traces/{trace.pk}/tree?level=0&toggled={rows[5]['place']}")["rows"]
    names = [each["place"] for each in rows]
    assert [(names.index(each["place"]), each["is_open"], each["hidden"]) for each in folded] == [
        *((0, False, 4), (5, True, 0), (6, False, 1)),
    ]
    assert not any(each["is_more_hidden"] for each in folded)
    for parameter in ("at=5", "toggled=x"):
        address = f"/api/v1/traces/{trace.pk}/tree?{parameter}"
        assert Client().get(address, headers={"Authorization": f"Bearer {token}"}).status_code == 400


def test_bars_last_until_the_answer(token: str, trace: Trace) -> None:
    said = ask(token, f"traces/{trace.pk}/waterfall")
    bars = [(each["starts_at"][17:19], each["ends_at"][17:19], each["outcome"]) for each in said["bars"]]
    assert bars[1:3] == [("01", "09", "done"), ("02", "03", "done")]
    assert sum(band["rows"] for band in said["map"]) == 5
    assert said["count"] == 8


def test_the_tree_of_a_conversation(token: str, stranger_token: str, trace: Trace) -> None:
    conversation = Conversation.objects.get(native_id="two")
    rows = ask(token, f"conversations/{conversation.pk}/tree")["rows"]
    assert [(each["depth"], each["message"]["native_id"]) for each in rows] == [(0, "m2"), (1, "m3")]
    assert rows[0]["message"]["parent"], "it answers a message of another conversation"
    assert len(ask(token, f"conversations/{conversation.pk}/waterfall")["bars"]) == 2
    for address in (f"conversations/{conversation.pk}/tree", f"traces/{trace.pk}", f"traces/{trace.pk}/tree"):
        headers = {"Authorization": f"Bearer {stranger_token}"}
        assert Client().get(f"/api/v1/{address}", headers=headers).status_code == 404


def test_a_place_that_was_withdrawn_is_refused(cast: Cast, token: str, trace: Trace) -> None:
    deliver(cast, say(8, "two", "PROG", parent="m2"))
    last = deliver(cast, say(7, "two", "PROG", parent="m2"))
    settle_all()
    conversation = Conversation.objects.get(native_id="two")
    address = f"conversations/{conversation.pk}/tree"
    place = next(
        row["place"] for row in ask(token, address)["rows"] if row["message"] and row["message"]["native_id"] == "m7"
    )
    assert ask(token, f"{address}?at={place}")["rows"][0]["place"] == place
    withdraw_delivery(membership=cast.owner, delivery=last, reason="sent twice")
    settle_all()
    # From the beginning again, a walk would go round for ever.
    refused = Client().get(f"/api/v1/{address}?at={place}", headers={"Authorization": f"Bearer {token}"})
    assert (refused.status_code, refused.json()["parameter"]) == (410, "at")
