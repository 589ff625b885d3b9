"""The API's tasks of a conversation: what they say as of a moment, page by page, and to nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from inspector.threads.models import Conversation, Message

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db


def ask(token: str, address: str) -> Any:
    return Client().get(f"/api/v1/{address}", headers={"Authorization": f"Bearer {token}"})


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
    settle_all(is_examined=False)
    address = f"conversations/{Conversation.objects.get().pk}/tasks"
    answer = ask(token, f"{address}?limit=1&order=begin")
    assert answer.status_code == 200
    said = answer.json()
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
    first = ask(token, f"{address}?limit=1").json()
    rest = ask(token, f"{address}?limit=1&cursor={first['next']}").json()
    assert {row["request"] for row in first["results"] + rest["results"]} == {ids["a"], ids["c"]}
    assert rest["next"] is None
    later = ask(token, f"{address}?as_of=2024-11-21T12:00:00Z&state=stalled").json()
    assert [(row["state"], row["said_state"]) for row in later["results"]] == [("stalled", "open")]
    assert ask(stranger_token, address).status_code == 404


@pytest.mark.parametrize("query", ["as_of=yesterday", "as_of=2024-11-21T12:00:00", "state=asleep", "cursor=x"])
def test_what_cannot_be_read_is_refused_by_name(cast: Cast, token: str, query: str) -> None:
    deliver(cast, clowl(0, "a", "REQ", "ada", "bob"))
    settle_all(is_examined=False)
    answer = ask(token, f"conversations/{Conversation.objects.get().pk}/tasks?{query}")
    assert answer.status_code == 400
    assert answer.json()["parameter"] == query.partition("=")[0]
