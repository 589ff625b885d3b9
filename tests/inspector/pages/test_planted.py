"""A log with planted faults: what an auditor sees of them first, and that no page calls a reversed outcome done."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import Channel
from inspector.audit.models import Finding
from inspector.audit.reviews.queues import create_queue, fill_from_source
from inspector.intake import jobs
from inspector.intake.models import Delivery, Job
from inspector.threads.models import Agent, Conversation, Message
from tests.inspector.conftest import Cast, deliver, resolve_all, take_in
from tests.inspector.keyring.conftest import LINES as SEALED

from .conftest import page_of, shows

pytestmark = pytest.mark.django_db

START = int(datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp())
KEY = "sk_live_9f8e7d6c5b4a39281706fedcba987654"


def say(number: int, after: int, act: str, who: str, body: dict[str, object], answers: str = "") -> bytes:
    sender, receiver = who.split(">")
    wire = {"clowl": "0.2", "mid": f"p{number}", "ts": START + after, "p": act, "from": sender, "to": receiver}
    wire |= {"cid": "pay-77", "body": body} | ({"pid": answers} if answers else {})
    at = datetime.fromtimestamp(START + after + 2, UTC).isoformat()
    return json.dumps({"raw": json.dumps(wire), "at": at}).encode() + b"\n"


# A question that nobody answered, a refusal that was overridden, a key in clear, and an answer to what is missing.
PLANTED = (
    say(1, 0, "REQ", "clerk>payer", {"t": "pay", "d": {"amount": 48200}}),
    say(2, 10, "ACK", "payer>clerk", {"t": "pay", "d": {"eta": "5m"}}, "p1"),
    say(3, 30, "QRY", "payer>controller", {"t": "approve", "d": {"q": "May I pay 48200?"}}, "p1"),
    say(4, 60, "ERR", "payer>clerk", {"t": "pay", "d": {"code": "E005", "msg": "too much", "retry": False}}, "p1"),
    say(5, 420, "DONE", "payer>clerk", {"t": "pay", "d": {"result": "paid"}}, "p1"),
    say(6, 430, "INF", "payer>bank", {"t": "login", "d": {"api_key": KEY}}),
    say(7, 500, "DONE", "bank>payer", {"t": "transfer", "d": {"result": "ok"}}, "p99"),
    # The channel goes on for long enough that silence is an answer.
    say(8, 9000, "INF", "clerk>bank", {"t": "note", "d": {"message": "end of the day"}}),
)
TITLES = (
    "Exposed secret",
    "Outcome reversed",
    "Done without waiting for an answer",
    "Request never answered",
    "Reply to a missing message",
)


@pytest.fixture
def conversation(cast: Cast) -> Conversation:
    take_in(cast, *PLANTED)
    return Conversation.objects.get(native_id="pay-77")


def read(client: Client, name: str, *args: object, **query: str) -> str:
    answer = client.get(page_of(f"{name}", *args), query)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def row_of(page: str, number: int) -> str:
    message = Message.objects.get(native_id=f"p{number}")
    return page.partition(f'id="m-{message.pk.hex}"')[2].partition("</article>")[0]


def test_what_matters_most_comes_first_everywhere(auditor: Client, conversation: Conversation) -> None:
    for page in (
        read(auditor, "overview").partition("Open findings by rule")[2],
        read(auditor, "findings"),
        read(auditor, "findings", order="worst"),
        read(auditor, "conversation-findings", conversation.pk).partition('class="findings bare"')[2],
    ):
        places = [page.index(title) for title in TITLES]
        assert places == sorted(places), [title for _, title in sorted(zip(places, TITLES, strict=True))]
    assert "Exposed secret" in read(auditor, "conversation", conversation.pk).partition("Problems")[2][:300]


def test_findings_stand_under_their_message_and_mark_the_drawings(auditor: Client, conversation: Conversation) -> None:
    transcript = read(auditor, "conversation", conversation.pk)
    sequence = read(auditor, "sequence", conversation.pk).partition("<table")[0]
    tree = read(auditor, "conversation-tree", conversation.pk)
    for number, title in ((3, TITLES[3]), (5, TITLES[1]), (5, TITLES[2]), (6, TITLES[0]), (7, TITLES[4])):
        row = row_of(transcript, number)
        assert f">{title}</a>" in row.partition("data-finding")[2], title
        arrow = sequence.partition(f'id="s-{number}"')[2].partition("</a>")[0]
        alarms = re.sub("<[^>]*>", "", arrow.partition('class="alarm"')[2])
        assert title in " ".join(alarms.split()), title
    for title in (TITLES[0], TITLES[1], TITLES[3], TITLES[4]):
        assert title in tree
    assert tree.count('class="flag"') == 4
    # What a finding says is not said again by the note behind it.
    secret = row_of(transcript, 6)
    assert len(re.findall("looks like an exposed service API key", secret, re.IGNORECASE)) == 1


def test_a_word_stands_beside_every_severity_icon(auditor: Client, conversation: Conversation) -> None:
    message = Message.objects.get(native_id="p6")
    pages = {
        **{name: read(auditor, name, conversation.pk) for name in ("conversation", "conversation-tree", "sequence")},
        **{name: read(auditor, name) for name in ("overview", "conversations", "findings", "traces")},
        "message": read(auditor, "message", message.pk),
        "search": read(auditor, "search", q="from:payer"),
    }
    for name, page in pages.items():
        shown = re.findall(r'<span class="severity" data-severity="(\w+)">(.*?</svg>.*?)</span>', page)
        assert shown or name == "traces", name
        assert [words for severity, words in shown if severity not in words.partition("</svg>")[2]] == [], name
        assert "sr" not in "".join(words for _, words in shown)
    alarms = re.findall(r'class="alarm" data-severity="(\w+)"[^>]*><tspan[^>]*>⚑ (\w+):', pages["sequence"])
    assert len(alarms) == len(TITLES)
    assert [severity for severity, word in alarms if severity != word] == []


def test_a_clock_that_is_off_by_seconds_is_told_once(auditor: Client, conversation: Conversation) -> None:
    transcript = read(auditor, "conversation", conversation.pk)
    assert [number for number in range(1, 9) if "apart: the message" in row_of(transcript, number)] == [1]
    assert "0:00:02 apart" in row_of(transcript, 1)
    message = Message.objects.get(native_id="p2")
    assert "0:00:02 apart" in read(auditor, "message", message.pk)


def test_a_reversed_outcome_is_nowhere_green(auditor: Client, conversation: Conversation) -> None:
    assert "done, after failing" in read(auditor, "conversation", conversation.pk)
    row = next(row for row in re.findall(r"<tr.*?</tr>", read(auditor, "agents")) if ">payer<" in row)
    shows(row, "1 done after another outcome", never=['data-state="done"'])
    tasks = read(auditor, "conversation-tasks", conversation.pk)
    chips = tasks.partition('aria-label="States"')[2].partition("As of")[0]
    assert "done, some after failing" in chips
    assert 'data-state="done"' not in chips
    pairs = read(auditor, "agents-graph")
    row = next(row for row in re.findall(r"<tr.*?</tr>", pairs) if ">clerk<" in row.partition(">payer<")[0])
    assert 'data-state="done"' not in row


def test_the_number_of_unanswered_requests_is_one_number(auditor: Client, conversation: Conversation) -> None:
    overview = read(auditor, "overview")
    assert '?rule=unanswered">1</a>' in overview
    listed = overview.partition('id="unanswered"')[2].partition("</section>")[0]
    assert listed.count("data-item") == 1
    # The units are words for a screen reader.
    spelled = '<span aria-hidden="true">2 h 29 min</span><span class="sr">2 hours 29 minutes</span>'
    assert f"no known answer for {spelled}" in listed
    assert Finding.objects.filter(rule="unanswered", state="open").count() == 1
    assert "1 message" in read(auditor, "search", q="is:unanswered")
    # One that is snoozed is in none of them.
    Finding.objects.filter(rule="unanswered").update(snoozed_until=timezone.now() + timedelta(days=1))
    assert "?rule=unanswered" not in read(auditor, "overview").partition("Open findings by rule")[2]
    assert "1 message" not in read(auditor, "search", q="is:unanswered")


@pytest.mark.long(seconds=2)
def test_what_a_delivery_brought_leads_to_its_findings(auditor: Client, cast: Cast, conversation: Conversation) -> None:
    delivery = Delivery.objects.latest("received_at")
    receipt = read(auditor, "delivery", delivery.pk)
    assert "5 findings</a> (1 error, 3 warnings, 1 notice)" in receipt
    address = re.search(r'href="([^"]+)">5 findings', receipt)
    assert address is not None
    listed = auditor.get(html.unescape(address[1])).content.decode()
    assert listed.count('class="sentence"') == 5
    assert "Only what" in listed
    other = take_in(cast, say(9, 9100, "INF", "clerk>bank", {"t": "note", "d": {"message": "still here"}}))
    assert "No findings." in read(auditor, "delivery", other.pk)
    # Nothing is counted before the rules have looked at everything, and what became due is noted.
    Finding.objects.filter(rule="unanswered").update(due_since=None)
    assert "Checking by rules" in read(auditor, "progress", delivery.pk)
    resolve_all()
    assert "5 findings</a>" in read(auditor, "progress", delivery.pk)
    jobs.ask(kind=Job.Kind.EXAMINE, subjects={conversation.pk}, workspace_id=cast.workspace.pk)
    page = read(auditor, "progress", delivery.pk)
    shows(page, "Checking by rules", never=["findings</a>"])
    resolve_all()
    assert "5 findings</a>" in read(auditor, "progress", delivery.pk)
    for query in ({"delivery": str(other.pk)}, {"delivery": str(other.pk), "order": "worst"}):
        assert 'class="sentence"' not in read(auditor, "findings", **query)


@pytest.mark.long(seconds=2)
def test_a_channel_narrows_the_lists_and_stays_in_the_address(
    auditor: Client, cast: Cast, conversation: Conversation
) -> None:
    assert 'name="channel"' not in read(auditor, "overview").partition("topbar")[2].partition("</header>")[0]
    second = Channel.objects.create(workspace=cast.workspace, name="night & day")
    take_in(cast, b'{"raw": "?Uk/co", "from": "a", "to": "b", "conversation": "quiet"}', channel=second)
    main = Channel.objects.exclude(pk=second.pk).get(workspace=cast.workspace).name
    for name, words in (
        ("overview", "Exposed secret"),
        ("findings", "Looks like an exposed service API key"),
        ("conversations", str(conversation.pk)),
    ):
        assert words in read(auditor, name, channel=main), name
        page = read(auditor, name, channel="night & day")
        assert words not in page, name
        assert "selected>night &amp; day</option>" in page
        assert "?channel=night+%26+day" in page.partition('id="nav"')[2].partition("</nav>")[0]
        assert auditor.get(page_of(f"{name}"), {"channel": "no such"}).status_code == 404
    queue = create_queue(membership=cast.owner, name="Errors", reviewers=1, source="findings", severity=4)
    fill_from_source(membership=cast.owner, queue=queue)
    assert "data-item" in read(auditor, "queue", queue.pk, channel=main)
    assert "data-item" not in read(auditor, "queue", queue.pk, channel="night & day")
    queues = read(auditor, "reviews", channel=main)
    assert f"{reverse('pages:queue', args=['acme', queue.pk])}?channel={main}" in queues
    assert "1 conversation waiting" in queues
    assert "No queue holds a conversation of this channel" in read(auditor, "reviews", channel="night & day")


@pytest.mark.long(seconds=2)
def test_requests_whose_reply_may_be_sealed_are_counted_apart(
    auditor: Client, cast: Cast, conversation: Conversation
) -> None:
    unanswered = read(auditor, "overview").partition('id="unanswered"')[2].partition("</section>")[0]
    take_in(cast, b"\n".join(SEALED), name="sealed.jsonl")
    # Two send each other sealed messages, and every request of theirs was answered in clear.
    sealed = Message.objects.filter(is_sealed=True)
    assert sealed.exists()
    assert unanswered == read(auditor, "overview").partition('id="unanswered"')[2].partition("</section>")[0]
    asked, told = sealed[0].sender, sealed[0].receivers[0]
    line = {"raw": "?Uk/co", "conversation": sealed[0].conversation.native_id, "dialect": "lambda_lang"}
    for number, (sender, receiver) in enumerate(((asked, told), (told, asked), (asked, "stranger"))):
        line |= {"from": sender, "to": receiver, "at": f"2026-11-19T23:00:0{number}Z", "id": f"q{number}"}
        deliver(cast, json.dumps(line).encode(), name=f"{number}.jsonl")
    resolve_all()
    page = read(auditor, "overview").partition('id="unanswered"')[2].partition("</section>")[0]
    assert "Not counted" in page
    address = re.search(r'href="([^"]+)">2 requests</a> whose reply may be in a sealed message', page)
    assert address is not None
    hits = auditor.get(html.unescape(address[1])).content.decode()
    assert "2 messages" in hits
    assert hits.count('class="hit"') == 2
    assert page.count("<li data-item") == unanswered.count("<li data-item") + 1
    channel = read(auditor, "overview", channel=cast.channel.name)
    assert ">2 requests</a> whose reply" in channel
    # A word in clear is a reply.
    line |= {"raw": "!Ik/co", "from": told, "to": asked, "at": "2026-11-19T23:00:09Z", "id": "a0", "parent": "q0"}
    take_in(cast, json.dumps(line).encode(), name="reply.jsonl")
    assert ">1 request</a> whose reply" in read(auditor, "overview")


@pytest.mark.parametrize(
    ("name", "query", "filled"),
    [
        ("search", {"q": "from:payer -topic:login"}, 'value="from:payer -topic:login"'),
        ("findings", {"rule": "token-in-clear"}, '<option value="token-in-clear" selected>'),
    ],
)
def test_what_is_found_can_be_queued(
    auditor: Client, viewer: Client, conversation: Conversation, name: str, query: dict[str, str], filled: str
) -> None:
    link = r'href="([^"]+)">(?:<svg[^>]*><use[^>]*/></svg>)?Queue these</a>'
    (address,) = re.findall(link, read(auditor, name, **query))
    form = " ".join(auditor.get(html.unescape(address)).content.decode().split())
    assert filled in form
    chosen = re.findall(r'name="source" value="(\w+)"[^>]*checked', form)
    assert chosen == ["findings" if name == "findings" else "search"]
    assert not re.search(link, read(viewer, name, **query))


def test_the_transcript_says_each_thing_once(auditor: Client, conversation: Conversation) -> None:
    transcript = read(auditor, "conversation", conversation.pk)
    answer, own = row_of(transcript, 2), row_of(transcript, 3)
    assert "answers <a" in answer
    assert "in reply to message" not in transcript
    # The payer asked while it worked on what the clerk wants; its failure is no answer to a question of its own.
    assert "answers <a" in own
    for usual in ("CLowl version", "in conversation pay-77", "sent 21 November"):
        assert usual not in transcript, usual
    message = Message.objects.get(native_id="p2")
    whole = read(auditor, "message", message.pk)
    assert "in conversation pay-77" in whole
    assert "in reply to message p1" in whole


def test_who_goes_on_from_a_message_of_its_own_follows_it(auditor: Client, cast: Cast) -> None:
    take_in(
        cast,
        say(1, 0, "REQ", "clerk>payer", {"t": "pay", "d": {"amount": 5}}),
        say(2, 60, "INF", "clerk>payer", {"t": "pay", "d": {"message": "it is urgent"}}, "p1"),
    )
    row = row_of(read(auditor, "conversation", Conversation.objects.get().pk), 2)
    shows(row, "follows <a", never=["answers <a"])


@pytest.mark.long(seconds=2)
def test_every_view_has_the_summary_and_the_agents_of_it_have_a_colour_each(
    auditor: Client, conversation: Conversation
) -> None:
    views = (
        "conversation",
        "sequence",
        "conversation-tree",
        "conversation-tasks",
        "conversation-findings",
        "conversation-raw",
    )
    for view in views:
        page = read(auditor, view, conversation.pk)
        assert 'class="answers"' in page, view
        assert "data-copy-link" in page, view
    for view in ("conversation", "sequence", "conversation-tree"):
        page = read(auditor, view, conversation.pk)
        marked = re.findall(r'data-agent="(\d)"[^>]*>(?:<i[^>]*>)?(\w\w)<', page)
        colours = {letters: number for number, letters in marked}
        assert len(set(colours.values())) == len(colours) >= 4, (view, colours)


def test_one_goes_from_finding_to_finding_the_most_severe_first(auditor: Client, conversation: Conversation) -> None:
    listed = re.findall(r'class="sentence"><a href="([^"]+)"', read(auditor, "findings", order="worst"))
    assert len(listed) == 5
    walked, address = [listed[0]], listed[0]
    for _ in range(4):
        page = auditor.get(address).content.decode()
        (address,) = re.findall(r'rel="next" href="([^"]+)"', page)
        walked.append(address)
    assert walked == listed
    last = auditor.get(listed[-1]).content.decode()
    assert 'rel="next"' not in last
    assert re.findall(r'rel="prev" href="([^"]+)"', last) == [listed[-2]]
    assert 'rel="prev"' not in auditor.get(listed[0]).content.decode()


def test_who_may_be_the_same_agent_is_offered(auditor: Client, cast: Cast) -> None:
    take_in(
        cast,
        say(1, 0, "REQ", "coordinator>payer", {"t": "pay", "d": {"amount": 5}}),
        b'{"raw": "@a3|f0|c1|S0|d1|T1|k4#"}\n',
    )
    named = Agent.objects.get(name="coordinator")
    assert '<option value="0">coordinator</option>' in read(auditor, "agent", named.pk)
    number = Agent.objects.get(name="0")
    assert '<option value="coordinator"></option>' in read(auditor, "agent", number.pk)
    assert "<datalist" not in read(auditor, "agent", Agent.objects.get(name="payer").pk)


def test_only_what_the_row_says_is_left_out(auditor: Client, cast: Cast) -> None:
    wire = {"clowl": "0.2", "mid": "p1", "ts": START, "p": "INF", "from": "a", "to": "b", "cid": "c", "zeta": "kept"}
    odd = json.dumps(wire | {"body": {"t": "note", "d": {"message": ", in reply to message p9"}}, "pid": "p9"})
    take_in(cast, json.dumps({"raw": odd}).encode())
    row = row_of(read(auditor, "conversation", Conversation.objects.get().pk), 1)
    assert "zeta" in row.partition("1 more field")[2].partition("</details>")[0]
    assert "“, in reply to message p9”" in row


def test_of_two_done_tasks_only_the_reversed_one_counts_so(
    auditor: Client, cast: Cast, conversation: Conversation
) -> None:
    take_in(
        cast,
        say(20, 9010, "REQ", "clerk>payer", {"t": "file", "d": {"year": 2026}}),
        say(21, 9020, "DONE", "payer>clerk", {"t": "file", "d": {"result": "ok"}}, "p20"),
        name="more.jsonl",
    )
    row = next(row for row in re.findall(r"<tr.*?</tr>", read(auditor, "agents")) if ">payer<" in row)
    shows(row, "1 done after another outcome", 'data-state="done"')


def test_an_agent_has_the_colour_of_its_transcript_everywhere(auditor: Client, conversation: Conversation) -> None:
    def find_colours(page: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for colour, name in re.findall(r'data-agent="(\d)"><i class="tile"[^>]*>\w+</i><bdi>(\w+)</bdi>', page):
            found.setdefault(name, set()).add(colour)
        return found

    transcript = find_colours(read(auditor, "conversation", conversation.pk))
    assert set(transcript) == {"clerk", "payer", "controller", "bank"}
    assert len({frozenset(colours) for colours in transcript.values()}) == len(transcript)
    lists = {
        **{name: read(auditor, name, conversation.pk) for name in ("conversation-findings", "sequence")},
        "findings": read(auditor, "findings", order="worst"),
        "search": read(auditor, "search", q="from:payer").partition('class="hit"')[2].partition("<aside")[0],
    }
    for where, page in lists.items():
        colours = find_colours(page)
        assert colours, where
        assert {name: colours[name] for name in colours} == {name: transcript[name] for name in colours}, where
