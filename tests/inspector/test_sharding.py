"""What stands between the schema and shards or partitions by workspace is what docs/scaling.md lists, and no more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from bench.partitions import LARGE, is_large, list_keys

PAGE = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text()


def execute(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


@pytest.mark.django_db
def test_the_keys_without_a_workspace_are_the_documented_ones() -> None:
    told = list_keys(execute)
    rows = told.splitlines()[2:]
    assert f"it is {sum(row.count('(') for row in rows)} keys of {len(rows)} tables" in PAGE
    assert f"\n{told}\n\n" in PAGE, f"docs/scaling.md has other keys than the schema:\n{told}"


@pytest.mark.django_db
def test_large_tables_have_the_workspace_of_each_row_but_for_the_documented_ones() -> None:
    having = {
        table
        for (table,) in execute(
            "SELECT relname FROM pg_attribute JOIN pg_class t ON t.oid = attrelid"
            " WHERE attname = 'workspace_id' AND attnotnull AND relkind = 'r'"
        )
    }
    large = {table for (table,) in execute("SELECT relname FROM pg_class WHERE relkind = 'r'") if is_large(table)}
    assert large >= set(LARGE)
    without = re.search(r"^No `workspace_id` in: (.+)\.$", PAGE, re.MULTILINE)
    assert without
    assert large - having == set(re.findall(r"`(\w+)`", without[1]))


@pytest.mark.django_db
def test_what_a_search_walks_along_begins_with_the_workspace() -> None:
    """The newest, and words and terms, each of which has its workspace before it (`test_indexed_words`)."""
    columns = dict(
        execute(
            "SELECT i.relname, attname FROM pg_index JOIN pg_class i ON i.oid = indexrelid"
            " JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]"
            " WHERE indrelid = 'threads_message'::regclass"
        )
    )
    assert columns["message_newest"] == columns["message_of_trace"] == "workspace_id"
    assert columns["message_search"] == "words"
