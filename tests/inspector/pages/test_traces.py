"""The pages of traces and trees: folded, searched and scaled by the address alone, and safe whatever a log says."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from inspector.accounts.models import Channel
from inspector.pages import traces
from inspector.pages.shown.told import strip_names
from inspector.threads.models import Conversation, Message, Trace
from tests.inspector.conftest import Cast, take_in
from tests.inspector.pages.conftest import STORY

from .conftest import page_of, shows

pytestmark = pytest.mark.django_db

SignIn = Callable[..., Client]


def say(number: int, conversation: str, *, parent: int | None = None, trace: str = "goal", text: str = "") -> bytes:
    said = {
        "raw": text or f"Line {number}.",
        "id": f"m{number}",
        "from": "ada",
        "to": ["bob"],
        "conversation": conversation,
        "trace": trace,
        "at": 1_763_715_600 + number,
        "parent": f"m{parent}" if parent is not None else None,
    }
    return json.dumps({name: value for name, value in said.items() if value is not None}).encode() + b"\n"


def tell(cast: Cast, *lines: bytes, channel: Channel | None = None) -> Trace:
    take_in(cast, *lines, channel=channel)
    return Trace.objects.filter(last_at__isnull=False).latest("created_at")


def address(trace: Trace) -> str:
    return page_of("trace", trace.pk)


def names_of(html: str) -> list[str]:
    """The rows in their order, by the English they show."""
    return re.findall(r"data-open>(?:<strong>)?([^<]+)</", html)


@pytest.fixture
def trace(cast: Cast) -> Trace:
    """Two conversations: the second begins below a message of the first."""
    return tell(
        cast, say(1, "one"), say(2, "one", parent=1), say(3, "two", parent=2), say(4, "two", parent=3), say(5, "three")
    )


def test_the_tree_stands_beside_its_bars(cast: Cast, trace: Trace, viewer: Client) -> None:
    html = viewer.get(address(trace)).content.decode()
    assert names_of(html) == ["one", "“Line 1.”", "“Line 2.”", "“Line 3.”", "“Line 4.”", "three", "“Line 5.”"]
    assert html.count('<svg class="waterfall"') == 1 + 7
    assert "in two" in html, "a message below one of another conversation says where it is"
    assert re.findall(r'aria-level="(\d+)"', html) == ["1", "2", "3", "4", "5", "1", "2"]


def test_what_is_collapsed_says_how_much_it_hides(cast: Cast, trace: Trace, viewer: Client) -> None:
    html = viewer.get(address(trace), {"level": "0"}).content.decode()
    assert names_of(html) == ["one", "three"]
    assert "Open, 4 below" in html
    opened = re.findall(r'href="([^"]+)" data-twist', html)[0].replace("&amp;", "&").partition("#")[0]
    assert names_of(viewer.get(address(trace) + opened).content.decode()) == ["one", "“Line 1.”", "three"]
    stale = viewer.get(address(trace), {"level": "0", "fold": "0" * 32}).content.decode()
    assert names_of(stale) == ["one", "three"]
    assert "that it opened or closed are not in it any more" in stale


def test_find_counts_and_opens_what_hides_it(cast: Cast, trace: Trace, viewer: Client) -> None:
    html = viewer.get(address(trace), {"find": "line", "hit": "4"}).content.decode()
    assert "4 of 5" in html
    current = re.findall(r'data-hit aria-current="true".*?data-open>([^<]+)<', html)
    assert current == ["“Line 4.”"]
    assert "“Line 4.”" in viewer.get(address(trace), {"find": "Line 4", "level": "0"}).content.decode()
    assert viewer.get(address(trace), {"find": "a\x00b"}).status_code == 200
    assert "No message here holds" in viewer.get(address(trace), {"find": "zebra"}).content.decode()


def test_the_window_before_a_find_is_the_window_before_it(
    cast: Cast, trace: Trace, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "WINDOW_ROWS", 2)
    html = viewer.get(address(trace), {"find": "line", "hit": "5"}).content.decode()
    assert names_of(html) == ["“Line 3.”", "“Line 4.”"]
    before = re.findall(r'<a rel="prev" href="([^"]+)"', html)[0].replace("&amp;", "&")
    assert names_of(viewer.get(address(trace) + before).content.decode()) == ["“Line 1.”", "“Line 2.”"]


def test_windows_come_alone_for_the_script(cast: Cast, trace: Trace, viewer: Client) -> None:
    at = Message.objects.get(native_id="m4").pk.hex
    answer = viewer.get(address(trace), {"at": at}, headers={"HX-Request": "true"})
    assert answer.content.startswith(b"<tbody")
    assert names_of(answer.content.decode())[0] == "“Line 4.”"


def test_messages_alike_are_one_row_until_they_are_asked_for(cast: Cast, viewer: Client) -> None:
    trace = tell(cast, say(0, "one"), *(say(number, "one", parent=0) for number in range(1, 12)))
    page = viewer.get(address(trace)).content.decode()
    shows(
        page,
        "Line 1.",
        "×10 more alike, 09:00:02 to 09:00:11",
        'Critical path <span class="quiet">2 messages, 11 s</span>',
        never=["Line 2."],
    )
    (apart,) = re.findall(r'href="([^"]+)#row-[0-9a-f]+" data-open>×10', page)
    opened = viewer.get(address(trace) + html.unescape(apart)).content.decode()
    assert all(f"Line {number}." in opened for number in range(12))
    assert "Fold messages alike" in opened
    # What is looked for stands by itself.
    assert "Line 7." in viewer.get(address(trace) + "?find=Line+7.").content.decode()


def test_the_same_id_in_another_channel_is_offered_and_not_joined(cast: Cast, viewer: Client) -> None:
    other = Channel.objects.create(workspace=cast.workspace, name="elsewhere")
    wire = b'{"clowl":"0.2","mid":"%s","p":"INF","from":"a","to":"b","cid":"c","tid":"t001","ts":1763715600}\n'
    tell(cast, wire % b"m1")
    trace = tell(cast, wire % b"m2", channel=other)
    html = viewer.get(address(trace)).content.decode()
    shows(html, "Same id elsewhere", "channel main")


def test_a_hostile_log_stays_text(cast: Cast, viewer: Client) -> None:
    evil = "<script>alert(1)</script>\u202e\"'>"
    line = json.dumps(
        {"raw": evil, "id": evil, "from": evil, "to": [evil], "conversation": evil, "trace": evil, "parent": evil + "x"}
    )
    trace = tell(cast, line.encode() + b"\n")
    for page in (
        viewer.get(address(trace), {"find": "alert"}).content.decode(),
        viewer.get(page_of("traces")).content.decode(),
    ):
        shows(page, never=["<script>alert", "\u202e"])


def test_statements_do_not_grow_with_the_tree(cast: Cast, viewer: Client) -> None:
    small = tell(cast, *(say(at, "s", parent=at // 2 if at > 1 else None, trace="small") for at in range(1, 6)))
    large = tell(
        cast, *(say(at, f"l{at % 7}", parent=at // 2 if at > 1 else None, trace="large") for at in range(1, 400))
    )
    counts = []
    for trace in (small, large):
        with CaptureQueriesContext(connection) as caught:
            assert viewer.get(address(trace)).status_code == 200
        counts.append(len(caught))
    assert counts[1] <= counts[0] <= 12
    conversation = Conversation.objects.get(native_id="s")
    with CaptureQueriesContext(connection) as caught:
        assert viewer.get(page_of("conversation-tree", conversation.pk)).status_code == 200
    assert len(caught) <= 14


def test_a_message_and_its_conversation_lead_to_their_trace(cast: Cast, trace: Trace, viewer: Client) -> None:
    message = Message.objects.get(native_id="m4")
    html = viewer.get(page_of("message", message.pk)).content.decode()
    there = f"{address(trace)}?message={message.pk}"
    assert there in html
    assert re.findall(
        r'tabindex="-1" aria-current="true".*?data-open>([^<]+)<', viewer.get(there).content.decode()
    ) == ["“Line 4.”"]
    assert address(trace) in viewer.get(page_of("conversation", message.conversation_id)).content.decode()


def test_what_only_conversations_are_narrowed_by_is_not_asked_of_traces(
    cast: Cast, trace: Trace, viewer: Client
) -> None:
    page = viewer.get(f"{reverse('pages:traces', args=['acme'])}?fault=errors&order=worst&state=")
    assert page.status_code == 200
    assert trace.native_id in page.content.decode()
    assert 'name="order"' not in page.content.decode()


def test_a_row_says_what_its_tiles_do_not(viewer: Client, cast: Cast) -> None:
    take_in(cast, STORY)
    message = Message.objects.get(native_id="m1")
    tree = page_of("conversation-tree", message.conversation_id)
    page = viewer.get(tree).content.decode()
    assert message.english.startswith("oscar asks radar to carry out the task")
    assert "carry out the task “search”, with query = “MCP vs A2A”." in names_of(page)
    # Its tiles have the names.
    assert re.search(r'title="oscar".*?title="radar".*?carry out the task', page, re.DOTALL)


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("oscar asks radar to search.", "search."),
        ("radar reports to oscar that it failed", "it failed"),
        ("The coordinator (agent 0) asks the planner (agent 1) for a plan.", "for a plan."),
        ("oscar announces to everyone its capabilities", "its capabilities"),
        # Nobody is named behind the verb, or nothing is left behind the name.
        ("oscar hands the task “s” over", "hands the task “s” over"),
        ("oscar ends session s1 with radar.", "ends session s1 with radar."),
        ("oscar works as an agent, for 2 seconds", "works as an agent, for 2 seconds"),
        ("oscar asks the model mason-1, for 1 second.", "asks the model mason-1, for 1 second."),
        # The name within another's, within a word and within what is quoted; the last is all that is said.
        ("oscar asks radar-2 about radar.", "asks radar-2 about radar."),
        ("oscar asks radars and x/radar to search.", "asks radars and x/radar to search."),
        (
            "oscar hands task “radar-check” over completely to radar (delegation mode transfer).",
            "hands task “radar-check” over completely to radar (delegation mode transfer).",
        ),
        ("oscar hands task “s radar t” to radar, now.", "hands task “s radar t” to radar, now."),
        ("oscar accepts radar's offer.", "accepts radar's offer."),
        # Another agent, and a sentence that begins otherwise.
        ("oscarine asks radar to search.", "oscarine asks radar to search."),
        ("Do you know radar?", "Do you know radar?"),
        # A name that is quoted, and text in no dialect.
        ("“ops desk” asks radar to search.", "search."),
        ("oscar writes plain text: “asks radar to search.”.", "“asks radar to search.”"),
        ("Someone writes plain text: “search”.", "“search”"),
    ],
)
def test_names_are_left_out_at_the_head_alone(sentence: str, said: str) -> None:
    senders = ["The coordinator (agent 0)", "oscar", "radar", "ops desk"]
    assert (
        strip_names(sentence, senders=senders, receivers=["the planner (agent 1)", "radar", "oscar", "everyone"])
        == said
    )
