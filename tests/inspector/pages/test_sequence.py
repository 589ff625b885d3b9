"""The sequence page and its kin: what is hidden is said, everything is linked, and no log can write Mermaid."""

from __future__ import annotations

import html
import json
import re
import uuid
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from inspector.audit.agents import join_agents
from inspector.browsing.sequence import Arrow, Step, read_sequence
from inspector.pages.conversations.drawing import MAX_LANES, choose_lanes, draw
from inspector.pages.conversations.sequence import write_mermaid
from inspector.pages.shown.agents import Cast as Marks
from inspector.pages.shown.agents import cast_conversation
from inspector.threads.models import Agent, Conversation, Message
from tests.inspector.conftest import Cast, take_in

from .conftest import page_of, shows

START = 1795251600
UTC_ZONE = ZoneInfo("UTC")
# Every line that a Mermaid text may hold; free text has no character but letters, digits, spaces and numeric codes.
FREE = r"(?:[A-Za-z0-9 ]|#\d+;)*"
GRAMMAR = re.compile(
    rf"sequenceDiagram|    %% {FREE}|    participant a\d+ as {FREE}"
    rf"|    Note over a\d+: {FREE}|    a\d+--?(?:>>|x)a\d+: {FREE}"
)


def say(number: int, **said: object) -> bytes:
    """A CLowl line of the conversation `c`: each answers the one before, two agents in turns."""
    record = {
        "clowl": "0.2",
        "mid": f"m{number}",
        "ts": START + number,
        "pid": f"m{number - 1}" if number else None,
        "p": "INF" if number % 2 else "REQ",
        "from": "radar" if number % 2 else "oscar",
        "to": "oscar" if number % 2 else "radar",
        "cid": "c",
        "body": {"t": "search", "d": {"q": f"question {number}"}},
    }
    return json.dumps({**record, **said}).encode() + b"\n"


def address(name: str = "sequence") -> str:
    return page_of(f"{name}", Conversation.objects.get(native_id="c").pk)


def open_page(client: Client, name: str = "sequence", **query: str) -> str:
    response = client.get(address(name), query)
    assert response.status_code == 200
    return response.content.decode()


def step(number: int, **said: object) -> Step:
    """A message of a drawing, made by hand."""
    values = {
        "id": uuid.UUID(int=number),
        "position": number,
        "record_id": uuid.uuid4(),
        "part": 1,
        "conversation_id": uuid.uuid4(),
        "at": datetime.fromtimestamp(START + number, UTC),
        "at_basis": "wire",
        "dialect": "clowl",
        "performative": "inform",
        "native_act": "INF",
        "sender": "oscar",
        "receivers": ("radar",),
        "is_broadcast": False,
        "topic": "search",
        "topic_digest": "",
        "english": "",
        "english_length": 0,
        "native_id": "",
        "parent": None,
        "parent_basis": "",
        "parent_why": "",
        "is_sealed": False,
        "severity": 0,
        "run": 1,
        "order_source": b"source",
        "order_index": number,
    }
    return Step(**{**values, **said})  # type: ignore[arg-type]


def draw_steps(*steps: Step, agents: tuple[str, ...] = ("oscar", "radar", "muse")) -> list[Any]:
    lanes = choose_lanes(steps=steps, agents=agents, cast=Marks(agents))
    shapes = draw([Arrow([one], None) for one in steps], lanes, UTC_ZONE, {})["shapes"]
    return [SimpleNamespace(**shape) for shape in shapes if shape["kind"] == "arrow"]


def test_every_arrow_leads_to_its_message_and_every_bucket_opens(viewer: Client, cast: Cast) -> None:
    same = [say(number, pid=None, p="PROG", **{"from": "ink", "to": "muse"}) for number in range(2, 39)]
    take_in(cast, say(0), say(1), *same)
    page = open_page(viewer)
    assert "3 arrows for 39 messages: 36 hidden in 1 bucket of messages alike" in page
    drawn = page[page.index('<svg class="sequence"') : page.index("</figure>")]
    links = [html.unescape(link) for link in re.findall(r'data-item href="([^"]*)"', drawn)]
    messages = dict(enumerate(Message.objects.order_by("place").values_list("pk", flat=True)))
    assert links[:2] == [page_of("message", messages[place]) for place in (0, 1)]
    assert links[2] == "?open=3#s-3"
    assert ">×37<" in drawn
    opened = open_page(viewer, open="3")
    assert "39 arrows for 39 messages" in opened
    assert opened.count("data-item") == 39
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert table.count("<tr>") == 39


def test_windows_are_linked_and_a_number_leads_to_its_own(viewer: Client, cast: Cast) -> None:
    take_in(cast, *(say(number) for number in range(230)))
    for name, size in (("sequence", 100), ("conversation-raw", 50)):
        first, last = open_page(viewer, name), open_page(viewer, name, offset="200")
        assert f"Messages 1–{size} of 230" in first
        (later,) = set(re.findall(r'rel="next" href="([^"]+)"', first))
        assert 'href="?offset=200"' in first
        assert first.count("data-item") == size
        assert last.count("data-item") == 30
        second = viewer.get(address(name) + later).content.decode()
        assert f"Messages {size + 1}–{2 * size} of 230" in second
        (earlier,) = set(re.findall(r'rel="prev" href="([^"]+)"', second))
        assert f"Messages 1–{size} of 230" in viewer.get(address(name) + earlier).content.decode()
        assert "End of the conversation" in last
        assert open_page(viewer, name, offset="5000").count("data-item") == 0
        jump = viewer.get(address(name), {"at": "157"})
        assert jump.status_code == 302
        assert jump["Location"].endswith("?offset=100#s-157" if name == "sequence" else "?offset=150#r-157")
    jump = viewer.get(address("conversation"), {"at": "157", "order": "time"})
    place = Message.objects.order_by("place")[156].pk.hex
    assert jump["Location"].endswith(f"?order=time&offset=150#m-{place}")


def test_queries_do_not_grow_with_the_messages(viewer: Client, cast: Cast) -> None:
    counts = []
    for number in (10, 400):
        take_in(cast, *(say(index, **({"pid": f"lost{index}"} if index % 7 == 3 else {})) for index in range(number)))
        count = []
        for name in ("sequence", "conversation-raw", "sequence-mermaid"):
            page = address(name)
            with CaptureQueriesContext(connection) as queries:
                assert viewer.get(page).status_code == 200
            count.append(len(queries))
        counts.append(count)
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 12


def test_what_an_arrow_looks_like() -> None:
    direct, everyone, itself, nobody, failed, inferred, many = draw_steps(
        step(0),
        step(1, receivers=(), is_broadcast=True),
        step(2, receivers=("oscar",)),
        step(3, receivers=()),
        step(4, performative="failure"),
        step(5, parent_basis="turn", parent_why="it spoke next"),
        step(6, sender="radar", receivers=("oscar", "muse")),
    )
    assert (direct.form, direct.heads) == ("direct", [("50%", "right")])
    assert (everyone.cast, len(everyone.heads)) == ("broadcast", 2)
    assert (itself.form, nobody.form) == ("loop", "stub")
    assert (failed.state, failed.act) == ("failed", "! failure")
    assert inferred.basis == "inferred"
    assert "it spoke next" in inferred.title
    assert many.heads == [("16.67%", "left"), ("83.33%", "right")]
    assert [shape.y for shape in (direct, everyone, itself)] == sorted({direct.y, everyone.y, itself.y})


def test_columns_stand_in_the_order_of_first_appearance_and_the_rest_is_counted() -> None:
    agents = tuple(f"agent{number}" for number in range(2000))
    few = [step(0, sender="agent900", receivers=("agent3",))]
    lanes = choose_lanes(steps=few, agents=agents, cast=Marks(agents))
    assert [lane.mark.name for lane in lanes.lanes if lane.mark] == ["agent3", "agent900"]
    assert lanes.folded_count == 1998
    whole = choose_lanes(steps=few, agents=agents, cast=Marks(agents), is_everyone_shown=True)
    assert len(whole.lanes) == MAX_LANES
    assert whole.lanes[-1].agent_count == 2000 - MAX_LANES + 1
    assert whole.find("agent900") == MAX_LANES - 1
    everyone = draw_steps(step(0, receivers=agents), agents=agents)
    assert len(everyone[0].heads) <= MAX_LANES


EVIL = (
    'x"]; click a1 "javascript:alert(1)"',
    "a\nb->>c: injected",
    "a; end",
    "end",
    "%% gone",
    "<script>alert(1)</script>",
    "#35;#quot;",
    "wrap: yes",
    "ﬂ°°60¶ß",
    "\u202eevil\u0000",
    "$$\\href{x}$$",
    "participant a1 as other",
    "",
)


def test_nothing_that_a_log_says_becomes_mermaid() -> None:
    steps = [
        step(
            number,
            sender=name,
            receivers=(EVIL[number - 1], name),
            topic=name,
            performative="failure" if number % 3 else "inform",
            missing="00" * 32 if number % 4 == 0 else "",
            missing_name=name,
            is_broadcast=number % 2 == 0,
            parent_basis="turn",
        )
        for number, name in enumerate(EVIL)
    ]
    text = write_mermaid([Arrow([one], None) for one in steps], cast=Marks(EVIL), zone=UTC_ZONE, heading="1 to 9; of 9")
    for line in text.splitlines():
        assert GRAMMAR.fullmatch(line), line
        assert not re.search(r"\bend\b", line, re.IGNORECASE), line
    assert len(re.findall(r"^    participant", text, re.MULTILINE)) == len(EVIL)
    assert all(ord(character) < 128 for character in text)


def test_mermaid_is_a_download_of_the_window_or_of_all(viewer: Client, cast: Cast) -> None:
    take_in(cast, *(say(number) for number in range(130)))
    part = viewer.get(address("sequence-mermaid"), {"offset": "100"})
    assert part["Content-Disposition"].startswith("attachment")
    assert part.content.decode().count("->>") == 30
    whole = viewer.get(address("sequence-mermaid"), {"all": ""}).content.decode()
    assert whole.count("->>") == 130
    assert "participant a1 as oscar" in whole


def test_no_page_is_heavy_however_a_machine_calls_itself(viewer: Client, cast: Cast) -> None:
    long = "\u202e\u200b<q>&" * 40
    names = [f"{number}{long}" for number in range(60)]
    take_in(
        cast,
        *(
            say(number, **{"from": names[number], "to": names}, body={"t": long * 9, "d": {"q": long * 20}})
            for number in range(60)
        ),
    )
    for name in ("sequence", "conversation-raw", "conversation"):
        page = open_page(viewer, name, order="time")
        assert "<q>&" not in page, name
        assert "\u202e" not in page, name
        # Three hundred kilobytes are for what people send; such names cost a page at most twice that.
        assert len(page.encode()) < 450_000, name


def test_ghosts_stand_before_who_cites_them(viewer: Client, cast: Cast) -> None:
    take_in(cast, say(0), say(1, pid="never"), say(2, pid="never"))
    page = open_page(viewer)
    anchor = re.findall(r'id="(ghost-[0-9a-f]{16})"', page)
    assert len(anchor) == 1
    shows(page, "never not received", "1 missing message")
    timeline = viewer.get(address("conversation"), {"order": "time"}).content.decode()
    assert timeline.count(f'id="{anchor[0]}"') == 1
    chip = re.search(r'<a class="chip" data-severity="warning" href="([^"]+)"', timeline)
    assert chip is not None
    assert chip[1].endswith(f"#{anchor[0]}")


def test_the_raw_view_masks_secrets_and_says_where_a_record_was_seen(
    viewer: Client, auditor: Client, cast: Cast
) -> None:
    take_in(cast, say(0, auth={"issuer": "gate", "token": "hunter2-hunter2"}), name="gate.log")
    page = open_page(viewer, "conversation-raw")
    shows(page, 'class="masked"', "gate.log</a>, line 1", never=["hunter2", "exact bytes"])
    assert "exact bytes" in open_page(auditor, "conversation-raw")


def join(cast: Cast, name: str, same_as: str) -> None:
    agents = {agent.name: agent for agent in Agent.objects.filter(workspace=cast.workspace)}
    join_agents(membership=cast.auditor, agent=agents[name], same_as=agents[same_as], reason="one machine")


def read_heads(page: str) -> list[str]:
    """The heads of the columns, as words."""
    lanes = page.partition('class="lanes"')[2].partition("<svg")[0]
    return [" ".join(re.sub(r"<[^>]+>", " ", head).split()) for head in lanes.split("<div>")[1:]]


def test_those_who_are_joined_are_one_column_one_participant_and_one_name(viewer: Client, cast: Cast) -> None:
    take_in(
        cast,
        say(0),
        say(1, **{"from": "radar-2"}),
        say(2, to=["radar", "radar-2"]),
        say(3, **{"from": "radar", "to": "radar-2"}),
    )
    join(cast, "radar-2", "radar")
    page = open_page(viewer)
    assert read_heads(page) == ["Os oscar sent 2", "Ra radar raw name radar , radar-2 sent 2"]
    assert page.count('class="lane"') == 2
    # What one says to the other is a loop, and to both of them one arrow.
    arrows = {number: page.partition(f'id="s-{number}"')[2].partition("</a>")[0] for number in (3, 4)}
    assert arrows[3].count("<use") == 1
    assert "M0 0h" in arrows[4]
    table = re.findall(r"<td><bdi>([^<]*)</bdi></td><td><bdi>([^<]*)</bdi></td>", page)
    assert table == [
        ("oscar", "radar"),
        ("radar (radar-2)", "oscar"),
        ("oscar", "radar, radar (radar-2)"),
        ("radar", "radar (radar-2)"),
    ]
    text = viewer.get(address("sequence-mermaid")).content.decode()
    assert re.findall("participant (.*)", text) == ["a1 as oscar", "a2 as radar #40;radar#44; radar#45;2#41;"]
    assert re.findall(r"(a\d)--?>>(a\d)", text) == [("a1", "a2"), ("a2", "a1"), ("a1", "a2"), ("a2", "a2")]
    assert all(GRAMMAR.fullmatch(line) for line in text.splitlines())


def test_who_is_known_by_another_name_alone_keeps_both_at_its_head(viewer: Client, cast: Cast) -> None:
    take_in(cast, say(0), say(1, **{"from": "radar-2"}), say(2, cid="other", **{"from": "station"}))
    join(cast, "radar-2", "station")
    page = open_page(viewer)
    assert read_heads(page) == ["Os oscar sent 1", "Ra radar sent nothing", "St station raw name radar-2 sent 1"]
    assert "participant a3 as station #40;radar#45;2#41;" in viewer.get(address("sequence-mermaid")).content.decode()


def test_an_agent_of_many_names_says_how_many_more_there_are(cast: Cast) -> None:
    take_in(cast, *(say(number, **{"from": f"ink{number}", "to": "oscar"}) for number in range(8)))
    for number in range(1, 8):
        join(cast, f"ink{number}", "ink0")
    conversation = Conversation.objects.get()
    steps = read_sequence(conversation=conversation)[1].rows
    lanes = choose_lanes(steps=steps, agents=conversation.agents, cast=cast_conversation(conversation))
    (ink, oscar) = lanes.lanes
    assert ink.mark is not None
    assert (ink.mark.shown, list(ink.names), ink.more_names) == ("ink0", ["ink0", "ink1", "ink2", "ink3"], 4)
    assert (ink.sent_count, oscar.sent_count, lanes.folded_count) == (8, 0, 0)
    assert {lanes.find(f"ink{number}") for number in range(8)} == {0}
