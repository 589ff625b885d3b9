"""The overview: its numbers are those of the rows behind them."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from inspector.accounts.models import Channel
from inspector.audit import overview as standing_counts
from inspector.audit.findings.services import judge
from inspector.audit.models import Finding, ReviewItem
from inspector.audit.overview import count_standing
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.browsing.activity import SLOTS, count_all, count_over_time, fill_slots, find_span
from inspector.browsing.directory import list_agents
from inspector.intake.models import Delivery, HiddenRecord, Record
from inspector.pages import overview, shell
from inspector.search.selectors import find_messages
from inspector.threads.models import Conversation
from tests.inspector.conftest import Cast, deliver, resolve_all, take_in
from tests.inspector.pages.conftest import STORY

from .conftest import page_of, shows

pytestmark = pytest.mark.django_db
ADDRESS = "/w/acme/overview/"
DAY = int(datetime(2026, 11, 20, tzinfo=UTC).timestamp())


def test_an_empty_workspace_says_what_to_do(auditor: Client, viewer: Client, cast: Cast) -> None:
    assert "Upload a log" in auditor.get(ADDRESS).content.decode()
    assert "Nothing has been received yet" in viewer.get(ADDRESS).content.decode()
    assert "No message falls" in viewer.get(f"{ADDRESS}activity/").content.decode()


def test_every_number_leads_to_as_many_rows(viewer: Client, cast: Cast, story: Delivery) -> None:
    page = viewer.get(ADDRESS).content.decode()
    numbers = count_all(workspace=cast.workspace)
    assert (numbers.messages, numbers.conversations) == (5, 3)
    for address in re.findall(r'<a [^>]*href="([^"]+)"', page.partition("stats")[2].partition("</dl>")[0]):
        assert viewer.get(html.unescape(address)).status_code == 200
    unanswered = len(find_messages(workspace=cast.workspace, query="is:unanswered"))
    assert unanswered == len(find_messages(workspace=cast.workspace, query="rule:unanswered"))
    shows(page, f'?rule=unanswered">{unanswered}</a>', "story.log")


def test_the_unanswered_begin_with_the_one_that_has_waited_longest(viewer: Client, cast: Cast) -> None:
    early = Channel.objects.create(workspace=cast.workspace, name="early")
    # The request of the other channel is the oldest, but its channel ended three hours later.
    for channel, asked_at, ends_at in ((early, [0], 3), (cast.channel, [20, 21, 22], 50)):
        words = '"p":"REQ","from":"oscar","to":"radar","body":{"t":"scan"}'
        asked = [(hour, f'"cid":"c{hour}",{words}') for hour in asked_at]
        log = [*asked, (ends_at, '"p":"INF","from":"eve","cid":"end","body":{"t":"end"}')]
        lines = (f'{{"clowl":"0.2","mid":"m{hour}","ts":{DAY + hour * 3600},{rest}}}' for hour, rest in log)
        deliver(cast, "\n".join(lines).encode(), channel=channel)
    resolve_all()
    page = viewer.get(ADDRESS).content.decode()
    card = page.partition('id="unanswered"')[2].partition("</section>")[0]
    waited = re.findall(r"no known answer for <span[^>]*>([^<]+)<", card)
    assert waited == ["1 d 6 h", "1 d 5 h", "1 d 4 h", "3 h"]
    only = viewer.get(f"{ADDRESS}?channel=early").content.decode().partition('id="unanswered"')[2]
    assert re.findall(r"no known answer for <span[^>]*>([^<]+)<", only) == ["3 h"]
    # Withdrawn, and its conversation not examined again yet.
    hidden = Record.objects.get(channel=cast.channel, order_index=0)
    HiddenRecord.objects.create(record=hidden, workspace=cast.workspace)
    page = viewer.get(ADDRESS).content.decode()
    card = page.partition('id="unanswered"')[2].partition("</section>")[0]
    assert re.findall(r"no known answer for <span[^>]*>([^<]+)<", card) == ["1 d 5 h", "1 d 4 h", "3 h"]


def test_what_a_delivery_came_to_leads_to_what_was_new_and_to_what_was_known(
    viewer: Client, cast: Cast, story: Delivery
) -> None:
    again = take_in(cast, STORY + b"all is well\n", name="again.log")
    again.refresh_from_db()
    assert (again.stored, again.duplicate > 1) == (1, True)
    page = viewer.get(ADDRESS).content.decode()
    card = page.partition('id="latest"')[2].partition("</section>")[0]
    links = dict(re.findall(r'<td class="number"><a href="([^"]+)"[^>]*>(\d+)</a>', card))
    search = f"{reverse('pages:search', args=['acme'])}?q="
    assert links == {
        f"{search}stored%3A{again.pk}": "1",
        f"{search}duplicate%3A{again.pk}": str(again.duplicate),
        f"{search}stored%3A{story.pk}": str(story.stored),
    }
    for address, count in links.items():
        assert viewer.get(address).content.decode().count('<li class="hit"') == int(count)
    receipt = viewer.get(page_of("delivery", again.pk)).content.decode()
    said = dict(re.findall(r'<strong><a href="([^"]+)">(\d+)</a></strong>', receipt))
    assert said == {address: count for address, count in links.items() if str(again.pk) in address}


def test_messages_over_time_are_all_there_and_each_bar_finds_its_own(viewer: Client, cast: Cast) -> None:
    lines = [f'{{"raw":"Step {n}.","at":{DAY + n * 3600},"from":"a"}}' for n in range(30)]
    take_in(cast, "\n".join(lines).encode())
    for period in (timedelta(hours=6), timedelta(days=1), None):
        span = find_span(workspace=cast.workspace, period=period)
        assert span is not None
        (numbers,) = fill_slots(list(count_over_time(workspace=cast.workspace, span=span))).values()
        expected = 30 if period is None else int(period.total_seconds()) // 3600
        assert (len(numbers), sum(numbers)) == (SLOTS, expected)
    part = viewer.get(f"{ADDRESS}activity/").content.decode()
    bars = re.findall(r'<a href="([^"]+)" aria-label="(\d+) message', part)
    assert sum(int(number) for _, number in bars) == 30
    for address, number in bars[:3]:
        query = Client().get(html.unescape(address)).wsgi_request.GET["q"]
        assert len(find_messages(workspace=cast.workspace, query=query)) == int(number)


def test_counting_that_takes_too_long_says_so(viewer: Client, story: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "fetch", lambda rows, patience_ms: None)
    assert "took too long" in viewer.get(f"{ADDRESS}activity/").content.decode()


def test_the_home_page_is_the_overview(viewer: Client, cast: Cast) -> None:
    assert viewer.get("/")["Location"] == page_of("overview")


def test_open_findings_stand_by_rule_the_gravest_first(viewer: Client, cast: Cast, story: Delivery) -> None:
    standing = count_standing(workspace=cast.workspace)
    assert sum(each.count for each in standing.rules) == sum(standing.findings.values()) > 2
    assert [each.severity for each in standing.rules] == sorted(
        (each.severity for each in standing.rules), reverse=True
    )
    page = viewer.get(ADDRESS).content.decode()
    card = page.partition('id="open-findings"')[2].partition("</section>")[0]
    rows = re.findall(r'<td><a href="([^"]+)" data-open>([^<]+)</a></td><td class="number">(\d+)</td>', card)
    assert [(title, int(count)) for _, title, count in rows] == [
        (each.rule.title, each.count) for each in standing.rules
    ]
    for address, _, count in rows:
        assert viewer.get(html.unescape(address)).status_code == 200
        rule = re.search(r"rule=([\w-]+)", address)
        assert rule is not None
        assert Finding.objects.filter(rule=rule[1], state="open", holds=True, is_suppressed=False).count() == int(count)


def test_more_rules_than_have_room_are_said(
    viewer: Client, cast: Cast, story: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MAX_RULES", 1)
    rules = count_standing(workspace=cast.workspace).rules
    more = len(rules) - 1
    assert f"{more} more rule{'s' if more > 1 else ''}</a>" in viewer.get(ADDRESS).content.decode()


def test_what_waits_for_review_is_counted_and_how_long_the_oldest_waits(
    viewer: Client, cast: Cast, story: Delivery
) -> None:
    assert "the oldest since" not in viewer.get(ADDRESS).content.decode()
    queue = create_queue(membership=cast.owner, name="q")
    fill_queue(queue=queue, conversations=list(Conversation.objects.values_list("pk", flat=True)), why="")
    standing = count_standing(workspace=cast.workspace)
    oldest = ReviewItem.objects.earliest("added_at").added_at
    assert (standing.waiting, standing.oldest) == (3, oldest)
    page = viewer.get(ADDRESS).content.decode()
    assert '>3</a></strong><span class="quiet">the oldest since' in page
    assert "3 conversations wait" in viewer.get(page_of("reviews")).content.decode()


def test_the_navigation_counts_what_its_lists_hold(viewer: Client, cast: Cast, story: Delivery) -> None:
    address = page_of("counts")
    counts = viewer.get(address).json()
    assert {name: counts.get(name) for name in ("conversations", "traces", "agents", "reviews", "comments")} == {
        "conversations": "3",
        "traces": "2",
        "agents": str(len(list_agents(workspace=cast.workspace))),
        "reviews": None,
        "comments": None,
    }
    assert counts["findings"] == str(sum(count_standing(workspace=cast.workspace).findings.values()))
    judge(membership=cast.auditor, findings=Finding.objects.values_list("pk", flat=True), state="accepted", reason="r")
    assert "findings" not in viewer.get(address).json()
    assert f'data-counts="{address}"' in viewer.get(ADDRESS).content.decode()


def test_no_count_of_the_navigation_walks_on_for_ever(
    viewer: Client, cast: Cast, story: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (standing_counts, shell):
        monkeypatch.setattr(module, "MAX_COUNTED", 2)
    with CaptureQueriesContext(connection) as asked:
        found = viewer.get(page_of("counts")).json()
    assert (found["conversations"], found["traces"]) == ("2+", "2")
    counted = [each["sql"] for each in asked.captured_queries if "COUNT(" in each["sql"]]
    assert len(counted) == 6
    assert all("LIMIT 3" in sql for sql in counted)


def test_tiles_compare_the_latest_day_with_the_day_before(viewer: Client, cast: Cast) -> None:
    hours = {"long": (0, 1, 20), "old": (0,), "yesterday": (30, 31), "today": (60, 61), "also": (70,)}
    other = Channel.objects.create(workspace=cast.workspace, name="other")
    for channel, names in ((cast.channel, ("long", "old", "yesterday", "today")), (other, ("also",))):
        lines = [
            f'{{"raw":"{hour}","at":{DAY + hour * 3600},"from":"a","conversation":"{name}","parent":"lost-{hour}"}}'
            for name in names
            for hour in hours[name]
        ]
        deliver(cast, "\n".join(lines).encode(), channel=channel)
    resolve_all()
    said = "+{} in the log’s last 24 h, +{} in the 24 before"

    def look(query: str) -> dict[str, str]:
        page = viewer.get(f"{ADDRESS}{query}").content.decode()
        tiles = re.findall(r"<dt>([^<]+)</dt>(.*?)</dd>", page, re.DOTALL)
        return {
            name: " ".join(re.findall(r"\+\d+ in the log’s last 24 h, \+\d+ in the 24 before", rest))
            for name, rest in tiles
        }

    # The newest message came in hour 70: a day before it is hour 46, two days are hour 22.
    tiles = look("")
    assert tiles["Conversations"] == said.format(2, 1)
    assert tiles["Open findings"] == said.format(3, 2)
    assert tiles["Waiting for review"] == ""
    assert said.format(3, 2) in viewer.get(f"{ADDRESS}activity/").content.decode()
    # In the other channel alone it is the only one.
    assert look("?channel=other")["Conversations"] == said.format(1, 0)
    assert look("?channel=other")["Open findings"] == said.format(1, 0)
    assert said.format(1, 0) in viewer.get(f"{ADDRESS}activity/?channel=other").content.decode()
