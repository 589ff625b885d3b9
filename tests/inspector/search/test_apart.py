"""Workspaces apart in the index of search: what strangers write costs nobody time, so that no time tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from inspector.accounts.models import Workspace
from inspector.search.selectors import IsWithin, narrow, write_spans
from inspector.threads.models import Message

from ..conftest import Cast, deliver, resolve_all

pytestmark = pytest.mark.django_db

INDEX = "message_search"
QUERIES = {
    "a word": "billing",
    "the beginning of a word": "billin*",
    "a phrase": '"billing now"',
    "a name": "from:ada",
    "one of several names": "from:ada,bob",
    "a sign": "🚀",
    "a field": "has:content",
}


@pytest.fixture
def log(cast: Cast) -> Cast:
    prose = '{"raw": "Look at billing now 🚀", "from": "ada", "to": ["bob"]}\n'
    deliver(cast, prose.encode(), b'{"clowl": "0.5", "op": "REQ", "p": {"a": 1}}\n')
    resolve_all(is_examined=False)
    return cast


def list_scans(plan: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The looks of a plan into the index of search, each with how many rows it found there."""
    if plan.get("Index Name") == INDEX:
        yield plan["Index Name"], plan["Actual Rows"]
    for part in plan.get("Plans", ()):
        yield from list_scans(part)


def explain(workspace: Workspace, query: str, spans: list[str] | None = None) -> list[tuple[str, int]]:
    """What the index finds for a query, perhaps of some spans, where nothing else may be gone through."""
    rows = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=True).order_by().values_list("pk")
    sql, values = (rows.filter(IsWithin(spans)) if spans else rows).query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        # No index but that of search may serve: another would find few rows in so small a table.
        cursor.execute(
            "SELECT string_agg(indexname, ', ') FROM pg_indexes WHERE tablename = 'threads_message'"
            " AND indexname <> ALL(%s)",
            [[INDEX, "message_once", "threads_message_pkey"]],
        )
        cursor.execute(f"DROP INDEX {cursor.fetchone()[0]}")  # type: ignore[index]
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", values)
        (plan,) = cursor.fetchone()[0]  # type: ignore[index]
    return list(list_scans(plan["Plan"]))


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_index_holds_nothing_of_strangers_for_a_query(log: Cast, query: str) -> None:
    scans = explain(log.stranger.workspace, query)
    assert scans
    assert [found for _, found in scans] == [0] * len(scans)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_index_finds_the_own_messages(log: Cast, query: str) -> None:
    # An index has earlier versions of a row too until they are vacuumed.
    assert all(found for _, found in explain(log.workspace, query))


@pytest.mark.parametrize(("query", "days"), [("billing", 0), ("billing", 9), ("from:ada", 0), ("from:ada", 9)])
def test_the_index_has_the_times_beside_words_and_terms(log: Cast, query: str, days: int) -> None:
    (at,) = Message.objects.filter(dialect="prose").values_list("order_time", flat=True)
    spans = write_spans(log.workspace.pk, at - timedelta(days=days), at - timedelta(days=days))
    ((_, found),) = explain(log.workspace, query, spans)
    assert bool(found) is (days == 0)
