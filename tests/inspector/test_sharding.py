"""What shards and partitions by workspace need of the schema; of the keys `trail/test_partitions.py` sees to it."""

from __future__ import annotations

import pytest

from inspector.trail.partitions import LARGE, ask


@pytest.mark.django_db
def test_large_tables_and_those_that_refer_to_them_have_the_workspace_of_each_row() -> None:
    having = {
        table
        for (table,) in ask(
            "SELECT attrelid::regclass::text FROM pg_attribute WHERE attname = 'workspace_id' AND attnotnull"
        )
    }
    referring = {
        table
        for (table,) in ask(
            "SELECT DISTINCT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
            " AND confrelid = ANY(%s::regclass[]) AND conparentid = 0",
            [*LARGE],
        )
    }
    assert len(referring) > 15
    assert not ({*LARGE} | referring) - having


@pytest.mark.django_db
def test_what_a_search_walks_along_begins_with_the_workspace() -> None:
    """The newest, and words and terms, each of which has its workspace before it (`test_indexed_words`)."""
    columns = dict(
        ask(
            "SELECT i.relname, attname FROM pg_index JOIN pg_class i ON i.oid = indexrelid"
            " JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]"
            " WHERE indrelid = 'threads_message'::regclass"
        )
    )
    assert columns["message_newest"] == columns["message_of_trace"] == "workspace_id"
    assert columns["message_search"] == "words"
