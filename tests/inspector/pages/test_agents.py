"""The pages of agents: what they show, what they say of names, and that their cost does not grow with their rows."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from inspector.accounts.models import Channel
from inspector.audit.agents import name_agent
from inspector.audit.models import Finding
from inspector.browsing.directory import list_pairs
from inspector.intake.models import Delivery
from inspector.pages.agents import Gallery
from inspector.pages.graph import HEIGHT, draw
from inspector.pages.shown.agents import find_colour
from inspector.threads.models import Agent, AgentWord, Conversation, Message, make_agent_id
from tests.inspector.conftest import Cast, deliver, take_in

from .conftest import page_of, shows


def text_of(response: object) -> str:
    page = response.content.decode()
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def find(cast: Cast, name: str, channel: Channel | None = None) -> Agent:
    return Agent.objects.get(pk=make_agent_id(cast.workspace.pk, (channel or cast.channel).pk, name))


OPEN = (
    b'{"clowl":"0.2","mid":"open","ts":1795251600,"p":"REQ","cid":"open",'
    b'"from":"hub","to":"radar","body":{"t":"scan"}}\n'
)


def make_log(agents: int) -> bytes:
    """Everybody asks the hub for something and is answered; one agent's name looks like another's."""
    lines = []
    names = [f"worker-{number}" for number in range(agents - 2)] + ["r\u0430dar", "radar"]
    for number, name in enumerate(names):
        for act, sender, to in (("REQ", name, "hub"), ("ERR", "hub", name)):
            body = '{"t":"search"}' if act == "REQ" else '{"t":"error","d":{"code":"E003","msg":"no"}}'
            lines.append(
                f'{{"clowl":"0.2","mid":"{act}{number}","ts":{1795251600 + number},"p":"{act}","from":"{sender}",'
                f'"to":"{to}","cid":"c{number % 7}","body":{body}}}'
            )
    return "\n".join(lines).encode()


@pytest.mark.parametrize("name", ["agents", "agents-graph"])
def test_an_empty_workspace_says_what_to_do_next(name: str, viewer: Client, cast: Cast) -> None:
    page = text_of(viewer.get(page_of(f"{name}")))
    shows(page, "No agents yet", "Agents appear here by themselves")


def test_the_directory_tells_who_speaks_and_what_came_of_it(viewer: Client, story: Delivery) -> None:
    response = viewer.get(page_of("agents"))
    page = text_of(response)
    assert "4 agents on this page" in page
    for words in ("oscar", "radar", "coordinator raw name 0", "planner raw name 1", "CLowl", "nSLIP"):
        assert words in page
    radar = re.search(r"radar CLowl (\S+) (\S+)", page)
    assert radar is not None
    assert radar.groups() == ("2", "1")


def test_names_that_can_be_confused_are_flagged_with_the_reason(viewer: Client, cast: Cast) -> None:
    take_in(cast, make_log(4))
    page = text_of(viewer.get(page_of("agents")))
    assert page.count("looks alike, and") == 2
    assert "mixes Latin and Cyrillic letters" in page
    agent = text_of(viewer.get(page_of("agent", find(cast, "radar").pk)))
    assert "This name looks like another agent's" in agent


def test_an_agents_page_says_whom_it_talks_with_and_what_it_can(viewer: Client, cast: Cast) -> None:
    caps = (
        b'{"clowl":"0.2","mid":"k","ts":1795251700,"p":"CAPS","from":"hub","to":"*","cid":"x",'
        b'"body":{"t":"capabilities","d":{"supports":["search"]}}}\n'
    )
    take_in(cast, make_log(5), b"\n", caps)
    response = viewer.get(page_of("agent", find(cast, "hub").pk))
    page = text_of(response)
    shows(page, "11 pairs, 11 messages", "5 of them report failures")
    message = Message.objects.get(native_id="k")
    assert page_of("message", message.pk) in response.content.decode()
    assert "from%3Ahub" in response.content.decode() or "from:hub" in html.unescape(response.content.decode())


def test_what_is_not_drawn_is_said_and_follows_on_the_next_page(viewer: Client, cast: Cast) -> None:
    take_in(cast, make_log(60))
    address = page_of("agents-graph")
    first = viewer.get(address)
    assert "40 pairs of 120" in text_of(first)
    assert "Not drawn here: 80 pairs with 80 messages." in text_of(first)
    seen = 0
    url: str | None = address
    while url:
        page = viewer.get(url).content.decode()
        seen += page.count('class="flow"')
        more = re.search(r'rel="next" href="([^"]+)"', page)
        url = address + html.unescape(more[1]) if more else None
    assert seen == 120


def test_the_drawing_is_the_same_each_time_and_stays_within_its_frame(cast: Cast) -> None:
    take_in(cast, make_log(20))

    def make() -> dict[str, Any]:
        pairs = list_pairs(workspace=cast.workspace)
        gallery = Gallery(cast.workspace, [side for pair in pairs for side in (pair.sender, pair.receiver)])
        return draw(pairs, [gallery.make_pair(pair, {}) for pair in pairs])

    drawing = make()
    assert drawing == make()
    heights = [float(each) for flow in drawing["flows"] for each in re.findall(r"[ M,]\d+ ([\d.]+)", flow["path"])]
    assert len(heights) == 4 * 40 or heights
    assert all(0 < height < HEIGHT for height in heights)
    starts = [flow["path"].partition("C")[0] for flow in drawing["flows"]]
    assert len(set(starts)) == len(starts), "two lines begin at one point"


def test_who_waits_for_whom_is_told_before_who_talks(viewer: Client, cast: Cast) -> None:
    take_in(
        cast, make_log(4), OPEN, OPEN.replace(b"open", b"more"), OPEN.replace(b"open", b"else").replace(b"hub", b"x")
    )
    address = page_of("agents-graph")
    page = viewer.get(address).content.decode()
    waits = page.partition("Who waits for whom")[2].partition("</section>")[0]
    hub, radar = find(cast, "hub"), find(cast, "radar")
    rows = waits.split("<li data-item>")[1:]
    assert len(rows) == 2
    for agent in (hub, radar):
        assert page_of("agent", agent.pk) in rows[0]
    assert "2 open requests" in rows[0]
    assert "from%3Ahub+to%3Aradar" in rows[0]
    assert "1 open request<" in rows[1]
    assert 'title="2 still open"' in page.partition("as-table")[2]
    assert "Who waits for whom" in text_of(viewer.get(address, {"name": "hub"}))
    for narrow in ({"name": "worker"}, {"dialect": "clowl"}):
        assert "Who waits for whom" not in text_of(viewer.get(address, narrow))


@pytest.mark.parametrize("name", ["agents", "agents-graph"])
def test_the_number_of_statements_does_not_grow_with_the_rows(name: str, viewer: Client, cast: Cast) -> None:
    counts = []
    deliver(cast, OPEN, name="open.log")
    for agents in (3, 45):
        take_in(cast, make_log(agents), name=f"{agents}.log")
        viewer.get(page_of(f"{name}"))
        with CaptureQueriesContext(connection) as asked:
            viewer.get(page_of(f"{name}"))
        counts.append(len(asked))
    assert counts[0] == counts[1]
    assert counts[0] < 20


@pytest.mark.long(seconds=2)
def test_a_name_is_given_shown_everywhere_and_undone(
    auditor: Client, viewer: Client, cast: Cast, story: Delivery
) -> None:
    radar = find(cast, "radar")
    page = page_of("agent", radar.pk)
    assert "Add a friendly name" in text_of(auditor.get(page))
    assert "Add a friendly name" not in text_of(viewer.get(page))
    act = page_of("name-agent", radar.pk)
    assert viewer.post(act, {"friendly_name": "Listener"}).status_code == 403
    refused = auditor.post(act, {"friendly_name": "oscar"})
    assert refused.status_code == 422
    assert "another agent of this channel is called oscar" in text_of(refused)
    assert auditor.post(act, {"friendly_name": "Listener", "reason": "the rota"}).status_code == 302
    message = Message.objects.get(native_id="m2")
    for address in (
        page,
        page_of("agents"),
        page_of("agents-graph"),
        page_of("message", message.pk),
        page_of("conversation", message.conversation_id),
        page_of("search") + "?q=from:listener",
    ):
        assert "Listener raw name radar" in text_of(viewer.get(address)), address
    word = AgentWord.objects.get()
    assert "amir" in text_of(viewer.get(page))
    undo = page_of("undo-agent-word", word.pk)
    assert viewer.post(undo).status_code == 403
    assert auditor.post(undo).status_code == 302
    assert "undone by amir" in text_of(viewer.get(page))
    assert "Listener raw name" not in text_of(viewer.get(page_of("agents")))


def test_two_are_one_by_an_auditors_word(auditor: Client, cast: Cast, story: Delivery) -> None:
    radar, oscar = find(cast, "radar"), find(cast, "oscar")
    act = page_of("join-agent", radar.pk)
    for wrong, why in (
        ({"same_as": "nobody", "reason": "x"}, "no agent of the channel main has this name"),
        ({"same_as": "oscar", "reason": ""}, "Give the reason"),
        ({"same_as": "radar", "reason": "x"}, "it is that agent already"),
    ):
        refused = auditor.post(act, wrong)
        assert refused.status_code == 422
        assert why in text_of(refused)
    response = auditor.post(act, {"same_as": "oscar", "reason": "one key"}, follow=True)
    assert response.redirect_chain[-1][0] == page_of("agent", oscar.pk)
    assert "also radar" in text_of(response)
    again = auditor.get(page_of("agent", radar.pk))
    assert again["Location"] == page_of("agent", oscar.pk)
    assert "oscar raw name radar" in text_of(auditor.get(page_of("message", Message.objects.get(native_id="m2").pk)))


def test_agents_of_equal_names_in_two_channels_are_two(auditor: Client, cast: Cast, story: Delivery) -> None:
    second = Channel.objects.create(workspace=cast.workspace, name="second")
    take_in(cast, b'{"raw": "Hello.", "from": "radar", "to": ["oscar"]}\n', channel=second, name="b.log")
    name_agent(membership=cast.auditor, agent=find(cast, "radar", second), friendly_name="Other one")
    page = text_of(auditor.get(page_of("agents")))
    assert "6 agents on this page" in page
    assert page.count("Other one raw name radar") == 1
    narrow = text_of(auditor.get(page_of("agents") + "?channel=second"))
    assert "2 agents on this page" in narrow
    assert "No agent matches" in text_of(auditor.get(page_of("agents") + "?name=zebra"))


def test_a_cursor_from_elsewhere_finds_nothing(viewer: Client, story: Delivery) -> None:
    for name in ("agents", "agents-graph"):
        assert viewer.get(page_of(f"{name}") + "?after=forged").status_code == 404


@pytest.mark.long(seconds=3)
def test_an_agent_has_one_colour_on_every_page(auditor: Client, story: Delivery, cast: Cast) -> None:
    take_in(cast, b'{"raw":"Before all others.","from":"zoe","to":["radar","oscar"],"conversation":"z"}')
    conversation = Message.objects.filter(sender="oscar").latest("order_time").conversation
    pages = ("agents/", "search/?q=from:oscar", "overview/", "conversations/", f"conversations/{conversation.pk}/")
    more = ("sequence/", "tree/", "tasks/")
    addresses = [f"/w/acme/{page}" for page in (*pages, *(f"{pages[-1]}{each}" for each in more))]
    for name in ("oscar", "radar"):
        tile = rf'data-agent="(\d)"[^>]*title="{name}"'
        line = rf'data-agent="(\d)"[^>]*><i[^>]*>..?</i><bdi>{name}</bdi>'
        found = {address: auditor.get(address).content.decode() for address in addresses}
        seen = {address: {*re.findall(tile, page), *re.findall(line, page)} for address, page in found.items()}
        assert set().union(*seen.values()) == {str(find_colour(name))}, seen
        assert sum(map(bool, seen.values())) >= 6, seen


def test_a_list_colours_agents_as_their_transcript_does(auditor: Client, cast: Cast) -> None:
    assert find_colour("ada") == find_colour("bob")
    # In the one conversation Bob appears after Ada, whose colour is his own: there he has another than in the other.
    for mid, asking, asked in (("a", "ada", "bob"), ("b", "bob", "ada")):
        line = f'{{"clowl":"0.2","mid":"{mid}","ts":1795251600,"p":"REQ","cid":"of-{asking}","from":"{asking}",'
        deliver(cast, f'{line}"to":"{asked}","body":{{"t":"scan"}}}}\n'.encode())
    take_in(cast, b'{"clowl":"0.2","mid":"z","ts":1795351600,"p":"INFO","cid":"z","from":"zoe","body":{"t":"scan"}}\n')
    for asking in ("ada", "bob"):
        conversation = Conversation.objects.get(native_id=f"of-{asking}")
        message = conversation.messages.get()
        here = f"conversations/{conversation.pk}/"
        own = find_colours(auditor, here)
        assert sorted(own) == ["ada", "bob"]
        assert own[asking] == str(find_colour(asking))
        assert own["ada"] != own["bob"]
        finding = Finding.objects.get(conversation=conversation, rule="unanswered")
        inside = ("sequence/", "tree/", "tasks/", "raw/", "findings/")
        places = (*(here + each for each in inside), f"messages/{message.pk}/", f"findings/{finding.pk}/")
        for place in (*places, f"search/?q=conversation:of-{asking}", f"messages/{message.pk}/around/"):
            assert find_colours(auditor, place) == own, place
        rows = auditor.get("/w/acme/conversations/").content.decode().split("<tr ")
        assert read_colours(next(row for row in rows if f"conversation-{conversation.pk}" in row)) == own
        rows = auditor.get("/w/acme/findings/?rule=unanswered").content.decode().split("<li ")
        assert read_colours(next(row for row in rows if str(finding.pk) in row)) == own


def find_colours(client: Client, place: str) -> dict[str, str]:
    answer = client.get(f"/w/acme/{place}")
    assert answer.status_code == 200, place
    return read_colours(answer.content.decode())


def read_colours(page: str) -> dict[str, str]:
    """The colours of Ada and Bob on a page, or a part of it, which shows each of them in one."""
    tiles = re.findall(r'data-agent="(\d)"[^>]*title="(ada|bob)"', page)
    lines = re.findall(r'data-agent="(\d)"[^>]*><i[^>]*>..?</i><bdi>(ada|bob)</bdi>', page)
    found = {(name, number) for number, name in (*tiles, *lines)}
    assert len(dict(found)) == len(found), found
    return dict(found)
