"""What is said where a message cites an id that several messages elsewhere bear: never that it is missing."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.test import Client

from inspector.audit.models import Finding
from inspector.threads.models import Conversation, Message, Trace
from inspector.threads.nodes import MAX_BEARERS, count_bearers, say_several, write_bearers
from tests.inspector.conftest import Cast, take_in

from .conftest import page_of, shows

pytestmark = pytest.mark.django_db
TRACE = "3f2c8a52-5e0e-4c7e-9b56-2f9a8f6c1d11"


def say(native_id: str, conversation: str, parent: str | None = None, **said: Any) -> bytes:
    line = {"raw": f"This is {native_id}.", "id": native_id, "conversation": conversation, "parent": parent, **said}
    return json.dumps({"at": "2026-11-21T09:00:00Z", "from": "ada", "to": "bob", **line}).encode() + b"\n"


@pytest.fixture
def citing(cast: Cast) -> Message:
    """In one conversation an answer to an id that two bear elsewhere, and one to an id that nobody bears."""
    take_in(
        cast,
        say("twice", "one"),
        say("twice", "two"),
        say("answer", "side", "twice", trace=TRACE),
        say("other", "side", "never", trace=TRACE, at="2026-11-21T09:01:00Z"),
    )
    return Message.objects.get(native_id="answer")


def open_page(client: Client, name: str, pk: Any, **query: str) -> str:
    response = client.get(page_of(f"{name}", pk), query)
    assert response.status_code == 200
    return html.unescape(re.sub(r"<[^>]+>", "", response.content.decode()))


@pytest.mark.parametrize("order", ["tree", "time"])
def test_the_transcript_says_how_many_bear_it_and_leads_to_them(auditor: Client, citing: Message, order: str) -> None:
    address = page_of("conversation", citing.conversation_id)
    page = auditor.get(address, {"order": order}).content.decode()
    ghosts = re.findall(r'<div class="ghost".*?</div>', page)
    (several,) = [ghost for ghost in ghosts if "twice" in ghost]
    (missing,) = [ghost for ghost in ghosts if "never" in ghost]
    assert "twice is one of 2 messages elsewhere that bear this id." in several
    assert "never was not received." in missing
    assert "Upload the log" in missing
    assert "Upload the log" not in several
    link = re.search(r'href="([^"]+)"', several)
    assert link is not None
    found = auditor.get(html.unescape(link[1])).content.decode()
    assert len(set(re.findall(r"/messages/([0-9a-f-]{36})/", found))) == 2
    said = open_page(auditor, "conversation", citing.conversation_id, order=order)
    shows(
        said,
        "answers twice 2 messages bear that id",
        "answers never not received",
        "May be incomplete: 1 missing parent",
    )


def test_the_way_to_what_is_missing_passes_it_over(auditor: Client, citing: Message) -> None:
    address = page_of("conversation", citing.conversation_id)
    page = auditor.get(address, {"order": "time"}).content.decode()
    chip = re.search(r'<a class="chip" data-severity="warning" href="[^"]+#(ghost-[0-9a-f]+)"', page)
    assert chip is not None
    assert re.search(rf'id="{chip[1]}"[^>]*><strong>never', page)


def test_the_sequence_says_it_in_drawing_table_and_mermaid(auditor: Client, citing: Message) -> None:
    page = open_page(auditor, "sequence", citing.conversation_id)
    shows(
        page,
        "twice: 2 bear it",
        "twice, cited by message 1, is one of 2 messages elsewhere that bear this id",
        "twice is one of 2 messages elsewhere that bear this id; the next one cites it.",
        "never was not received; the next one cites it.",
    )
    mermaid = open_page(auditor, "sequence-mermaid", citing.conversation_id)
    shows(mermaid, "twice is one of 2 messages elsewhere that bear this id", "never was not received")


@pytest.mark.parametrize("of", ["trace", "conversation-tree"])
def test_a_tree_says_it_in_row_and_bar(auditor: Client, citing: Message, of: str) -> None:
    pk = Trace.objects.get(native_id=TRACE).pk if of == "trace" else citing.conversation_id
    address = page_of(f"{of}", pk)
    page = auditor.get(address).content.decode()
    shows(
        page,
        "<bdi>twice</bdi> is one of 2 messages elsewhere that bear this id",
        "2 bear this id",
        "<bdi>never</bdi> was not received",
    )


def test_counts_of_what_is_missing_leave_it_out(auditor: Client, citing: Message) -> None:
    assert Conversation.objects.get(pk=citing.conversation_id).missing_count == 1
    assert Trace.objects.get(native_id=TRACE).missing_count == 1


def test_the_message_and_its_finding_say_it(auditor: Client, citing: Message) -> None:
    page = open_page(auditor, "message", citing.pk)
    shows(page, "it names its parent; 2 messages bear that id", never=["twice not received"])
    found = {each.rule: each for each in Finding.objects.filter(conversation=citing.conversation_id)}
    assert found["ambiguous-parent"].text == (
        "It answers the message 'twice', but which one is unknown: in other conversations 2 messages bear that id."
    )
    assert "'never', which was not received" in found["missing-message"].text


def test_the_api_says_it(client: Client, token: str, citing: Message) -> None:
    def get(path: str) -> Any:
        return client.get(f"/api/v1/{path}", headers={"authorization": f"Bearer {token}"}).json()

    arrows = get(f"conversations/{citing.conversation_id}/sequence")["arrows"]
    said = [(each["missing_id"], each["is_parent_missing"], each["parent_bearers"]) for each in arrows]
    assert said == [("twice", False, 2), ("never", True, 0)]
    rows = get(f"conversations/{citing.conversation_id}/tree")["rows"]
    assert [(row["missing"], row["bearers"]) for row in rows if row["kind"] == "ghost"] == [("twice", 2), ("never", 0)]
    assert {row["bearers"] for row in rows if row["kind"] != "ghost"} == {None}


def test_it_is_missing_again_once_nobody_bears_it(cast: Cast, auditor: Client) -> None:
    take_in(cast, say("answer", "side", "twice"))
    conversation = Conversation.objects.get()
    assert "twice was not received." in open_page(auditor, "conversation", conversation.pk)
    take_in(cast, say("twice", "one"), say("twice", "two"), say("twice", "three"))
    conversation.refresh_from_db()
    assert conversation.missing_count == 0
    assert "twice is one of 3 messages elsewhere" in open_page(auditor, "conversation", conversation.pk)


@pytest.mark.parametrize(
    ("count", "words"), [(2, "2"), (MAX_BEARERS, "10"), (MAX_BEARERS + 1, "more than 10")], ids=str
)
def test_what_is_said_is_read_back(count: int, words: str) -> None:
    why = say_several("it names its parent", count)
    assert why == f"it names its parent; {words} messages bear that id"
    assert count_bearers(why) == count
    assert write_bearers(count_bearers(f"{why}; turn 2 was said before: run 2 begins")) == words


@pytest.mark.parametrize(
    "why",
    [
        "",
        "it names its parent; it is in another conversation",
        "it names its parent, but 2 messages of this conversation bear that id",
    ],
)
def test_no_other_reason_counts_bearers(why: str) -> None:
    assert count_bearers(why) == 0
