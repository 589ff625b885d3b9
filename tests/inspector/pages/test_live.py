"""New messages announce themselves: counted for what a page is about, for its reader, and once."""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from django.test import Client

from inspector.intake.models import Delivery
from inspector.search import news
from inspector.search.news import begin, read_since, write_since
from inspector.search.selectors import CursorError
from inspector.threads.models import Conversation, Message
from inspector.threads.resolving.writing import announce
from tests.inspector.conftest import Cast, take_in

from .conftest import page_of

pytestmark = pytest.mark.django_db(transaction=True)  # What is told is committed.


def line(text: str, conversation: str = "c", **names: object) -> bytes:
    return (
        json.dumps({"raw": text, "conversation": conversation, "at": "2026-11-21T09:00:00Z", **names}).encode() + b"\n"
    )


def open_page(client: Client, name: str, *args: object, **query: str) -> str:
    """The address at which a page asks for its news, as it stands in the page."""
    page = client.get(page_of(f"{name}", *args), query).content.decode()
    region = re.search(r'<div class="live-region"[^>]*>', page)
    assert region, page[:2000]
    given = dict(re.findall(r'([\w-]+)="([^"]*)"', region[0]))
    return given["hx-get"].replace("&amp;", "&") + "&" + urlencode({"after": given["data-after"]})


def ask(client: Client, address: str) -> tuple[str, str]:
    """What the chip says, "" for nothing more than before, and where to ask next."""
    answer = client.get(address)
    assert answer.status_code in (200, 204), answer.content
    said = re.search(r">([^<]+)<span", answer.content.decode())
    return said[1] if said else "", re.sub(r"after=[^&]*", urlencode({"after": answer["Live-After"]}), address)


def test_further_pages_of_conversations_tell_what_moved_up_since_the_first(
    cast: Cast, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.pages.conversations.views.PAGE_ROWS", 1)
    take_in(cast, *(line("A word.", name, at=f"2026-11-21T09:0{number}:00Z") for number, name in enumerate("abc")))
    address = page_of("conversations")

    def find_next(page: str) -> dict[str, str]:
        (link,) = re.findall(r'rel="next" href="\?([^"]*)"', page)
        return dict(parse_qsl(link.replace("&amp;", "&")))

    second = find_next(viewer.get(address).content.decode())
    # The one that the second page would have come to says more, and is on the first page from then on.
    take_in(cast, line("One more.", "b", at="2026-11-21T10:00:00Z", id="more"))
    assert ask(viewer, open_page(viewer, "conversations", **second))[0] == "1 new"
    third = find_next(viewer.get(address, find_next(viewer.get(address).content.decode())).content.decode())
    assert ask(viewer, open_page(viewer, "conversations", **third))[0] == ""
    assert viewer.get(address, second | {"since": "made up"}).status_code == 404
    assert "since" not in re.findall(r'href="([^"]*)"[^>]*>← Newest', viewer.get(address, second).content.decode())[0]


def test_each_page_counts_what_it_shows(cast: Cast, viewer: Client, story: Delivery) -> None:
    conversation = Conversation.objects.get(native_id="story")
    pages = {
        "overview": open_page(viewer, "overview"),
        "conversations": open_page(viewer, "conversations"),
        "other dialect": open_page(viewer, "conversations", dialect="nslip"),
        "agent": open_page(viewer, "conversations", agent="nina"),
        "state": open_page(viewer, "conversations", state="open"),
        "conversation": open_page(viewer, "conversation", conversation.pk),
        "search": open_page(viewer, "search", q="zebra"),
        "other search": open_page(viewer, "search", q="from:oscar"),
    }
    assert {name: ask(viewer, address)[0] for name, address in pages.items()} == dict.fromkeys(pages, "")
    take_in(cast, line("A zebra.", **{"from": "nina"}), line("Another.", "story"), line("zebra", "d"))
    said = {name: ask(viewer, address) for name, address in pages.items()}
    assert {name: words for name, (words, _) in said.items()} == {
        "overview": "3 new",
        "conversations": "3 new",
        "other dialect": "",
        "agent": "1 new",
        "state": "2 new",
        "conversation": "1 new",
        "search": "2 new",
        "other search": "",
    }
    # What was counted is not counted again, and what comes then is added to it.
    assert {ask(viewer, after)[0] for _, after in said.values()} == {""}
    take_in(cast, line("One more zebra.", id="more"))
    assert ask(viewer, said["search"][1])[0] == "3 new"
    assert ask(viewer, said["other search"][1])[0] == ""
    assert ask(viewer, open_page(viewer, "overview"))[0] == ""


def test_the_chip_of_a_conversation_leads_to_the_first_that_is_new(cast: Cast, viewer: Client, story: Delivery) -> None:
    conversation = Conversation.objects.get(native_id="story")
    address = open_page(viewer, "conversation", conversation.pk)
    take_in(cast, line("Late.", "story", at="2026-11-25T09:00:00Z"), line("Later.", "story", at="2026-11-26T09:00:00Z"))
    href = re.search(r'href="([^"]+)"', viewer.get(address).content.decode())
    assert href
    found = Message.objects.get(english__contains="Late.")
    assert viewer.get(href[1].replace("&amp;", "&"))["Location"].endswith(f"#m-{found.pk.hex}")


def test_no_count_tells_what_is_masked(cast: Cast, viewer: Client, auditor: Client) -> None:
    said = (
        b'{"clowl":"0.3","mid":"s1","p":"REQ","from":"a","to":"b","auth":"opensesame-7731","body":{"t":"x","d":{}}}\n'
    )
    address = {client: open_page(client, "search", q='raw:"opensesame"') for client in (viewer, auditor)}
    take_in(cast, said)
    assert {client: ask(client, each)[0] for client, each in address.items()} == {viewer: "", auditor: "1 new"}


def test_a_thousand_are_enough(cast: Cast, viewer: Client, story: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "MAX_COUNTED", 3)
    address = open_page(viewer, "overview")
    announce(messages=list(Message.objects.values_list("pk", flat=True)), workspace_id=cast.workspace.pk)
    answer = viewer.get(address)
    assert b"3+ new" in answer.content
    assert b"data-full" in answer.content


def test_a_page_too_old_to_know_says_so(
    cast: Cast, viewer: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SESSION_IDLE_MINUTES = settings.SESSION_HOURS = 10_000
    address = open_page(viewer, "overview")
    now = time.time()
    monkeypatch.setattr(news.time, "time", lambda: now + news.GOOD_FOR.total_seconds() + 1)
    said, after = ask(viewer, address)
    assert said == "Out of date"
    assert ask(viewer, after)[0] == ""


def test_where_a_page_stands_is_good_in_its_workspace_alone(cast: Cast, viewer: Client, sign_in: Any) -> None:
    address = open_page(viewer, "overview")
    assert sign_in(cast.stranger).get(address).status_code == 404
    assert sign_in(cast.stranger).get(address.replace("/acme/", "/other/")).status_code == 404
    for spoilt in (address + "x", address.replace("of=overview", "of=settings"), address + "&of=conversation&id=x"):
        assert viewer.get(spoilt).status_code == 404
    assert viewer.get(address.replace("of=overview", "of=search&q=performativ%3Ax")).status_code == 404
    since = begin()
    assert read_since(write_since(since, cast.workspace.pk), cast.workspace.pk) == since
    with pytest.raises(CursorError):
        read_since(write_since(since, cast.workspace.pk), cast.stranger.workspace.pk)


def test_pages_that_show_no_message_announce_none(viewer: Client, cast: Cast) -> None:
    for name, query in (("search", ""), ("search", "performativ:x"), ("deliveries", "")):
        assert b"live-region" not in viewer.get(page_of(f"{name}"), {"q": query}).content
