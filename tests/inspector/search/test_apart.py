"""Workspaces apart in the indexes of search: what strangers write costs nobody time, so that no time tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from inspector.accounts.models import Workspace
from inspector.search.apart import name_workspace
from inspector.search.selectors import narrow

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db

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
    settle_all()
    return cast


def list_scans(plan: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The indexes of search that a plan looks into, each with how many entries it found there."""
    if "_workspace_" in plan.get("Index Name", ""):
        yield plan["Index Name"], plan["Actual Rows"]
    for part in plan.get("Plans", ()):
        yield from list_scans(part)


def explain(workspace: Workspace, query: str) -> list[tuple[str, int]]:
    """What the indexes find for a query where nothing else may be gone through."""
    rows = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=True).order_by().values_list("pk")
    sql, values = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        # No index but those of search may serve: the workspace's own would find few rows in so small a table.
        cursor.execute("DROP INDEX message_newest, message_newest_of_channel, message_sealed, message_of_trace")
        cursor.execute("DROP INDEX message_by_its_id, message_ghosts")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", values)
        (plan,) = cursor.fetchone()[0]  # type: ignore[index]
    return list(list_scans(plan["Plan"]))


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_indexes_hold_nothing_of_strangers_for_a_query(log: Cast, query: str) -> None:
    scans = explain(log.stranger.workspace, query)
    assert scans
    assert [found for _, found in scans] == [0] * len(scans)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_indexes_find_the_own_messages(log: Cast, query: str) -> None:
    # An index has earlier versions of a row too until they are vacuumed.
    assert all(found for _, found in explain(log.workspace, query))


def test_the_database_marks_a_workspace_as_the_query_does(cast: Cast) -> None:
    for workspace in (cast.workspace, cast.stranger.workspace):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT words_of_workspace(%s, 'a b'::tsvector)::text, terms_of_workspace(%s, '{a}')",
                [workspace.pk, workspace.pk],
            )
            mark = name_workspace(workspace)
            assert cursor.fetchone() == (f"'{mark}a' '{mark}b'", [f"{mark}a"])
