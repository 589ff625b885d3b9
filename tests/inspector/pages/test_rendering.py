"""Every page renders for everyone who may see it, and shows what it promises."""

from __future__ import annotations

import html
import re

import pytest
from django.template.loader import render_to_string
from django.test import Client

from inspector.intake.models import Delivery
from inspector.threads.models import Conversation, Message
from tests.each import for_each
from tests.inspector.conftest import Cast

from .conftest import page_of, shows


def text_of(response: object) -> str:
    """What a reader sees: the page without its markup, spaces made one."""
    page = response.content.decode()  # type: ignore[attr-defined]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", page)).split())


@pytest.mark.parametrize("name", ["conversations", "search", "deliveries", "settings"])
@pytest.mark.parametrize("role", ["owner", "auditor", "viewer"])
def test_an_empty_workspace_says_what_to_do_next(name: str, role: str, request: pytest.FixtureRequest) -> None:
    client: Client = request.getfixturevalue(role)
    response = client.get(page_of(f"{name}"))
    assert response.status_code == 200
    words = {
        "conversations": "Upload a log, or let your agents post",
        "search": "Search reference",
        "deliveries": "Nothing was delivered yet",
        "settings": "No key yet",
    }
    assert words[name] in text_of(response)


def test_the_list_shows_each_conversation_once(viewer: Client, story: Delivery) -> None:
    page = text_of(viewer.get(page_of("conversations")))
    shows(page, "story", "refactor_auth", "3 conversations on this page")


def test_filters_leave_what_matches_and_say_when_nothing_does(viewer: Client, story: Delivery) -> None:
    address = page_of("conversations")
    assert "1 conversation on this page" in text_of(viewer.get(address, {"dialect": "clowl"}))
    assert "No conversation matches these filters" in text_of(viewer.get(address, {"agent": "nobody"}))


def test_a_transcript_answers_the_questions(viewer: Client, conversation: Conversation) -> None:
    page = text_of(viewer.get(page_of("conversation", conversation.pk)))
    shows(
        page,
        "oscar asks radar",
        "m3 was not received. m4 cites it.",
        "May be incomplete: 1 missing parent",
        "Not reviewed",
        "answers message 1 (oscar's request “search”)",
    )


def test_a_transcript_in_the_order_of_time_has_no_depth(viewer: Client, conversation: Conversation) -> None:
    address = page_of("conversation", conversation.pk)
    assert 'data-depth="1"' in viewer.get(address).content.decode()
    timeline = viewer.get(address, {"order": "time"}).content.decode()
    assert 'data-depth="1"' not in timeline
    assert timeline.count('class="message"') == 3


def test_a_message_links_its_three_panes(viewer: Client, story: Delivery) -> None:
    message = Message.objects.get(dialect="nslip", performative="request")
    page = viewer.get(page_of("message", message.pk)).content.decode()
    priority = 'data-span="0:25-27"'
    panes = re.split(r'<section class="(?:pane|card)"', page)
    holding = {re.search(r'aria-labelledby="(\w+)"', pane)[1] for pane in panes[1:] if priority in pane}  # type: ignore[index]
    assert {"english", "fields", "raw"} <= holding


def test_a_malformed_message_shows_what_is_wrong_and_where(viewer: Client, story: Delivery) -> None:
    message = Message.objects.get(performative=None)
    page = text_of(viewer.get(page_of("message", message.pk)))
    shows(page, "not readable", "nslip.unclosed")


def test_a_receipt_keeps_the_accounting_identity(viewer: Client, story: Delivery) -> None:
    page = text_of(viewer.get(page_of("delivery", story.pk)))
    shows(page, f"{story.received} received = {story.stored} + 0 + 0", "None: every record became text.")


def test_progress_stops_asking_once_it_is_done(viewer: Client, cast: Cast, story: Delivery) -> None:
    page = viewer.get(page_of("progress", story.pk)).content.decode()
    shows(page, "5 stored, 0 duplicate, 0 quarantined (kept)", never=["hx-get"])


def test_search_finds_and_highlights(viewer: Client, story: Delivery) -> None:
    response = viewer.get(page_of("search"), {"q": "from:oscar mcp"})
    assert "<mark>MCP</mark>" in response.content.decode()
    assert "1 message on this page" in text_of(response)


def test_an_unknown_name_is_an_error_with_a_way_on(viewer: Client, story: Delivery) -> None:
    response = viewer.get(page_of("search"), {"q": "a perfomative:request"})
    assert response.status_code == 400
    assert "?q=a+performative%3Arequest" in response.content.decode()
    assert "Nothing was searched." in text_of(response)


def test_a_search_that_finds_nothing_says_so(viewer: Client, story: Delivery) -> None:
    page = text_of(viewer.get(page_of("search"), {"q": "zebra"}))
    assert "No message matches zebra" in page


@for_each([400, 403, 404, 413, 429, 500])
def test_every_error_page_says_what_happened_and_what_was_kept(code: int) -> None:
    page = render_to_string(f"{code}.html")
    shows(page, f'<p class="label">{code}</p>', "<h1>")


def test_a_wrong_address_is_answered_in_our_own_words(viewer: Client) -> None:
    response = viewer.get("/w/acme/nothing-here/")
    assert response.status_code == 404
    assert "There is nothing here" in text_of(response)
    assert "script-src 'self'" in response["Content-Security-Policy"]


def test_a_mistake_of_ours_is_answered_in_our_own_words(
    viewer: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(**_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("inspector.pages.deliveries.list_deliveries", break_down)
    viewer.raise_request_exception = False
    response = viewer.get(page_of("deliveries"))
    assert response.status_code == 500
    assert "Something went wrong" in text_of(response)
    assert "boom" not in response.content.decode()
