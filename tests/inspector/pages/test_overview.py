"""The overview: its numbers are those of the rows behind them."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse

from inspector.intake.models import Delivery
from inspector.pages import overview
from inspector.search.selectors import find_messages
from inspector.threads.activity import SLOTS, count_all, count_over_time, fill_slots, find_span
from tests.inspector.conftest import Cast, deliver, settle_all

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
    for address in re.findall(r'href="([^"]+)"', page.partition("stats")[2].partition("</dl>")[0]):
        assert viewer.get(html.unescape(address)).status_code == 200
    assert numbers.unanswered == len(find_messages(workspace=cast.workspace, query="is:unanswered"))
    assert f">{numbers.unanswered}</a>" in page
    assert "story.log" in page


def test_messages_over_time_are_all_there_and_each_bar_finds_its_own(viewer: Client, cast: Cast) -> None:
    lines = [f'{{"raw":"Step {n}.","at":{DAY + n * 3600},"from":"a"}}' for n in range(30)]
    deliver(cast, "\n".join(lines).encode())
    settle_all()
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
    assert viewer.get("/")["Location"] == reverse("pages:overview", args=["acme"])
