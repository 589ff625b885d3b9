"""GET live: a program that follows a workspace gets each message once, and only of its own workspace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from inspector.search import news
from inspector.threads.models import Message
from inspector.threads.resolving.writing import announce
from tests.inspector.conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db(transaction=True)


def follow(token: str, **query: object) -> dict[str, Any]:
    answer = Client().get("/api/v1/live", query, HTTP_AUTHORIZATION=f"Bearer {token}")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def say(cast: Cast, *texts: str) -> None:
    lines = [{"raw": text, "conversation": "c", "id": text} for text in texts]
    deliver(cast, *(json.dumps(line).encode() + b"\n" for line in lines))
    resolve_all()


def test_a_follower_gets_each_message_once(cast: Cast, token: str, stranger_token: str) -> None:
    say(cast, "Before.")
    begun = follow(token)
    assert (begun["results"], begun["has_more"]) == ([], False)
    others = follow(stranger_token)["after"]
    say(cast, "A zebra.", "A giraffe.", "Another zebra.")
    found, after = [], begun["after"]
    for has_more in (True, True, False):
        page = follow(token, after=after, limit=1, fields="english")
        assert page["has_more"] == has_more
        found += page["results"]
        after = page["after"]
    assert [list(row) for row in found] == [["id", "english"]] * 3
    assert [row["id"] for row in found] == [
        str(Message.objects.get(native_id=name).pk) for name in ("A zebra.", "A giraffe.", "Another zebra.")
    ]
    assert follow(token, after=after)["results"] == []
    zebras = follow(token, after=begun["after"], q="zebra")["results"]
    assert [row["id"] for row in zebras] == [found[0]["id"], found[2]["id"]]
    assert follow(stranger_token, after=others)["results"] == []


def test_a_cursor_is_refused_elsewhere_spoilt_and_when_it_is_old(
    cast: Cast, token: str, stranger_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = follow(token)["after"]

    def ask(token: str, **query: str) -> tuple[int, str]:
        answer = Client().get("/api/v1/live", query, HTTP_AUTHORIZATION=f"Bearer {token}")
        return answer.status_code, answer.json()["parameter"]

    assert ask(stranger_token, after=after) == (400, "after")
    assert ask(token, after=after[:-1]) == (400, "after")
    assert ask(token, after=after, q="performativ:x") == (400, "q")
    monkeypatch.setattr(news.time, "time", lambda: 2_000_000_000)
    assert ask(token, after=after) == (410, "after")


def test_no_answer_tells_what_is_masked(cast: Cast, token: str) -> None:
    after = follow(token)["after"]
    deliver(
        cast, b'{"clowl":"0.3","mid":"s1","p":"REQ","from":"a","to":"b","auth":"opensesame","body":{"t":"x","d":{}}}\n'
    )
    resolve_all()
    assert len(follow(token, after=after)["results"]) == 1
    assert follow(token, after=after, q='raw:"opensesame"')["results"] == []
    # What was announced and is gone since is passed over.
    announce(messages=[cast.workspace.pk], workspace_id=cast.workspace.pk)
    assert len(follow(token, after=after)["results"]) == 1
