"""The page of a conversation's tasks: its words, its addresses, what it costs, and hostile names."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from inspector.pages.conversations.tasks import PAGE_TASKS
from inspector.threads.models import Conversation, Task
from tests.inspector.conftest import Cast, take_in

from .conftest import page_of, read, shows

pytestmark = pytest.mark.django_db


def clowl(second: int, name: str, act: str, sender: str, receiver: str, parent: str = "", topic: str = "ship") -> bytes:
    raw = {"clowl": "0.2", "mid": name, "cid": "many", "p": act, "from": sender, "to": receiver}
    text = json.dumps(raw | ({"pid": parent} if parent else {}) | {"body": {"t": topic, "d": {}}})
    at = datetime(2024, 11, 21, 9, tzinfo=UTC) + timedelta(seconds=second)
    return json.dumps({"raw": text, "at": at.isoformat()}).encode() + b"\n"


def load(cast: Cast, *lines: bytes) -> str:
    take_in(cast, *lines)
    pk = Conversation.objects.get(native_id="many").pk
    return reverse("pages:conversation-tasks", args=[cast.workspace.slug, pk])


def test_the_story_of_a_task_is_told_in_a_sentence(cast: Cast, auditor: Client) -> None:
    address = load(
        cast,
        clowl(0, "a", "REQ", "ada", "bob"),
        clowl(2, "b", "ACK", "bob", "ada", "a"),
        clowl(200, "c", "DONE", "bob", "ada", "a"),
        clowl(260, "d", "REQ", "ada", "bob", topic="pack"),
        clowl(9000, "e", "INF", "ada", "eve", topic="later"),
    )
    page = read(auditor, address)
    shows(
        page,
        'first reply after <span aria-hidden="true">2 s</span><span class="sr">2 seconds</span>',
        'after <span aria-hidden="true">3 min 20 s</span><span class="sr">3 minutes 20 seconds</span>.',
        "No reply for 2 h 25 min",
        "is stalled",
    )
    assert page.count("asked for it") == 2
    # Each change leads to the message that caused it.
    for task in Task.objects.all():
        assert page_of("message", task.request) in page
    still = read(auditor, f"{address}?state=stalled")
    assert "pack" in still
    assert 'after <span aria-hidden="true">3 min' not in still
    assert "No task is in this state" in read(auditor, f"{address}?state=cancelled")
    early = read(auditor, f"{address}?as_of=2024-11-21T09:05:00Z")
    assert "No reply for" not in early
    assert "as of the latest record" in early
    assert "No reply for" in read(auditor, f"{address}?as_of=now")


def test_a_conversation_that_only_tells_says_so(cast: Cast, viewer: Client) -> None:
    assert "No requests here" in read(viewer, load(cast, clowl(0, "a", "INF", "ada", "bob")))


def test_it_costs_the_same_for_one_task_and_for_many_and_goes_on_by_keyset(cast: Cast, auditor: Client) -> None:
    address = load(cast, clowl(0, "a", "REQ", "ada", "bob"))
    read(auditor, address)
    with CaptureQueriesContext(connection) as few:
        read(auditor, address)
    count = 2 * PAGE_TASKS + 3
    load(cast, *(clowl(9 + number, f"m{number}", "REQ", "ada", f"b{number}") for number in range(count - 1)))
    with CaptureQueriesContext(connection) as many:
        answer = auditor.get(address)
    assert len(many) <= len(few)
    seen = [task["anchor"] for task in answer.context["tasks"]]
    while answer.context["later_url"]:
        answer = auditor.get(address + answer.context["later_url"])
        seen += [task["anchor"] for task in answer.context["tasks"]]
    assert len(seen) == len(set(seen)) == count


@pytest.mark.parametrize("after", ["nonsense", "00000000-0000-0000-0000-000000000000"])
def test_a_place_that_is_none_is_not_found(cast: Cast, auditor: Client, after: str) -> None:
    address = load(cast, clowl(0, "a", "REQ", "ada", "bob"))
    assert auditor.get(f"{address}?after={after}").status_code == 404


def test_hostile_names_are_shown_and_never_run(cast: Cast, auditor: Client) -> None:
    evil = "<script>alert(1)</script>\u202e"
    address = load(cast, clowl(0, "a", "REQ", evil, evil + "b", topic=evil))
    page = read(auditor, address)
    shows(page, never=["<script>alert", "\u202e"])
