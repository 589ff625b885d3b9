"""The newest of many messages by the index of search: spans of time beside the words, and a sample."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inspector.accounts.models import Workspace
from inspector.search import selectors
from inspector.search.selectors import IsWithin, narrow, read_query, write_sample, write_spans
from inspector.search.sql import is_of_terms
from inspector.threads.models import Message, MessageQuerySet
from inspector.threads.terms import SIZES, Spans
from tests.each import for_each

from ..conftest import Cast, deliver, resolve_all

FIRST = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
LATEST = FIRST + timedelta(hours=11)
MOMENTS = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 11, 20, 9, 3, 0, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)


@pytest.fixture
def log(cast: Cast) -> Cast:
    """Twelve messages, an hour apart."""
    lines = ({"raw": "Look at billing", "at": (FIRST + timedelta(hours=at)).isoformat()} for at in range(12))
    deliver(cast, b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    resolve_all(is_examined=False)
    return cast


def sample(*hours: int) -> None:
    """Put the messages of these hours into the sample; whatever else would be in it is not."""
    for number, message in enumerate(Message.objects.order_by("order_time")):
        end = bytes(4) if number in hours else b"\xff" * 4
        Message.objects.filter(pk=message.pk).update(id=uuid.UUID(bytes=message.pk.bytes[:12] + end))


def select(workspace: Workspace, query: str = "billing") -> MessageQuerySet:
    return narrow(workspace=workspace, query=query, zone=None, may_see_secrets=True).order_by("-order_time", "-id")


def find(workspace: Workspace, limit: int, until: datetime = LATEST) -> tuple[list[uuid.UUID], int]:
    """What is found, and by how many statements."""
    rows = select(workspace).filter(order_time__lte=until)
    with CaptureQueriesContext(connection) as statements:
        found = list(selectors._find_newest(rows, workspace.pk, until, limit))
    assert found == list(rows.values_list("pk", flat=True)[:limit])
    return found, len(statements)


def list_entries() -> list[list[str]]:
    return list(Message.objects.annotate(entries=Spans()).order_by("order_time").values_list("entries", flat=True))


@pytest.mark.django_db
def test_a_message_has_a_span_of_each_size_and_always_those_of_its_time(log: Cast) -> None:
    pk = Message.objects.order_by("order_time")[0].pk
    for moment in MOMENTS:
        Message.objects.filter(pk=pk).update(order_time=moment)
        (entries,) = Message.objects.filter(pk=pk).annotate(entries=Spans()).values_list("entries", flat=True)
        assert len(set(entries) - set(write_sample(log.workspace.pk))) == len(SIZES)
        assert write_spans(log.workspace.pk, moment, moment)[0] in entries, moment
        assert Message.objects.filter(IsWithin(write_spans(log.workspace.pk, moment, moment))).count() == 1, moment


@pytest.mark.django_db
@for_each([(0, 11), (0, 0), (3, 4), (5, 11), (0, 7)], of=("since", "until"))
def test_the_spans_between_two_moments_hold_these_messages_once_and_no_others(
    log: Cast, since: int, until: int
) -> None:
    moments = [FIRST + timedelta(hours=at) for at in (since, until)]
    spans = write_spans(log.workspace.pk, *moments)
    assert len(spans) == len(set(spans)) < 2**7
    held = [sum(entry in spans for entry in entries) for entries in list_entries()]
    assert held == [int(since <= at <= until) for at in range(12)]


@pytest.mark.django_db
def test_one_in_the_sample_says_since_when_a_page_is_looked_for(log: Cast) -> None:
    sample(2, 7)
    assert find(log.workspace, 5)[1] == 2
    # What is older than the newest of the sample is looked for from the next one on, and then everywhere.
    assert find(log.workspace, 6)[1] == 3
    assert find(log.workspace, 11)[1] == 4
    assert len(find(log.workspace, 50)[0]) == 12
    # A page further back: nothing newer is in its spans.
    assert find(log.workspace, 5, until=FIRST + timedelta(hours=6))[1] == 2


@pytest.mark.django_db
def test_looking_by_the_sample_has_an_end(log: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    sample(2, 5, 7)
    assert find(log.workspace, 12)[1] == 5
    # Once its time is over no more of the sample is tried: one statement looks at all.
    monkeypatch.setattr(selectors, "BY_TERMS_MS", 0)
    assert find(log.workspace, 12)[1] == 3


@pytest.mark.django_db
@for_each([(), (4,), (2, 7), (0, 3, 5, 11), range(12)], of=("sampled",))
def test_a_crowded_span_is_walked_down_and_gives_the_same(
    log: Cast, monkeypatch: pytest.MonkeyPatch, sampled: Sequence[int]
) -> None:
    for at, message in enumerate(Message.objects.order_by("order_time")):
        # The hours three to five lie in one span, with ties.
        moment = FIRST + timedelta(seconds=at // 2 if 3 <= at <= 5 else at * 3600 if at > 5 else at - 3600)
        Message.objects.filter(pk=message.pk).update(order_time=moment)
    sample(*sampled)
    for crowded in (1, 2, 3, 8):
        monkeypatch.setattr(selectors, "CROWDED", crowded)
        for limit in (1, 2, 3, 5, 8, 12, 13):
            for until in (LATEST, FIRST + timedelta(hours=7, minutes=1), FIRST + timedelta(seconds=1), FIRST):
                find(log.workspace, limit, until=until)


@pytest.mark.django_db
def test_a_crowded_span_is_not_asked_of_the_index(log: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "CROWDED", 1)
    sample(7)
    rows = select(log.workspace)
    with CaptureQueriesContext(connection) as statements:
        assert len(list(selectors._find_newest(rows, log.workspace.pk, LATEST, 5))) == 5
    _, newer, walks, walk = (each["sql"] for each in statements)
    spans = write_spans(log.workspace.pk, FIRST + timedelta(hours=7), FIRST + timedelta(hours=7))
    assert ("&&" in newer, spans[0] in newer) == (True, False)
    assert ("enable_bitmapscan" in walks, "&&" in walk) == (True, False)


@pytest.mark.django_db
def test_what_comes_meanwhile_is_not_found_and_hides_nothing(log: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    sample(0, 2, 7)
    first, *others = Message.objects.order_by("order_time").values_list("pk", flat=True)
    find_newest, fetch = selectors._find_newest, selectors.fetch

    def come_late(*given: Any) -> Iterator[uuid.UUID]:
        Message.objects.filter(pk=first).update(order_time=LATEST + timedelta(hours=3))
        return find_newest(*given)

    def never_walk(rows: Any, patience_ms: int, *, walks: bool = True) -> list[Any] | None:
        return None if walks else fetch(rows, patience_ms, walks=False)

    monkeypatch.setattr(selectors, "_find_newest", come_late)
    monkeypatch.setattr(selectors, "fetch", never_walk)
    found = selectors.search(workspace=log.workspace, query="billing").rows
    assert [message.pk for message in found] == others[::-1]


@pytest.mark.django_db
def test_without_a_sample_all_are_looked_at(log: Cast) -> None:
    sample()
    assert find(log.workspace, 5)[1] == 2


@pytest.mark.django_db
def test_a_stranger_has_neither_spans_nor_a_sample_of_others(log: Cast) -> None:
    sample(2, 7)
    stranger = log.stranger.workspace
    assert find(stranger, 5) == ([], 2)
    entries = {entry for entries in list_entries() for entry in entries}
    assert entries.isdisjoint(write_spans(stranger.pk, FIRST, LATEST) + write_sample(stranger.pk))


@for_each(
    [
        ("billing", True),
        ('"at billing" from:ada', True),
        ("billin* (from:ada OR dialect:clowl)", True),
        ("attributes.det:1", True),
        ("", False),
        ("billing -ada", False),
        ("billing from:ad*", False),
        ("billing attributes.offer:>3", False),
        ("billing channel:main", False),
        ("billing OR after:7d", False),
        ('raw:"x"', False),
    ],
    of=("query", "expected"),
)
def test_some_queries_are_of_words_and_terms_alone(query: str, expected: bool) -> None:
    assert is_of_terms(read_query(query)) is expected
