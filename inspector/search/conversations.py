"""Conversations and traces that a query means: those that hold a shown message which it finds."""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

from django.db import models
from django.db.models.expressions import RawSQL

from inspector.accounts.models import Workspace
from inspector.threads.placing.keys import RANDOM

from .selectors import Found, Place, fetch, go_on, narrow, search_back

AT_ONCE_MS: Final = 700
_OF_CONVERSATION: Final = '"threads_message"."conversation_id" = "threads_conversation"."id"'
# As `find_traces_of` has it: an id that is random by its form is in the trace across channels, any other in that of its
# channel where there is one.
_OF_TRACE: Final = """
    "threads_message"."trace_key" = "threads_trace"."key" AND (
        "threads_trace"."channel_id" = "threads_message"."channel_id" AND "threads_message"."trace_basis" <> %s
     OR "threads_trace"."channel_id" IS NULL AND ("threads_message"."trace_basis" = %s OR NOT EXISTS (
            SELECT FROM "threads_trace" "own" WHERE "own"."workspace_id" = "threads_message"."workspace_id"
            AND "own"."key" = "threads_message"."trace_key"
            AND "own"."channel_id" = "threads_message"."channel_id" AND "own"."last_at" IS NOT NULL)))
"""
Row = TypeVar("Row", bound=models.Model)


def mean_conversations(*, workspace: Workspace, query: str, may_see_secrets: bool) -> RawSQL | None:
    """The condition on conversations that a query is; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    return mean(_OF_CONVERSATION, workspace=workspace, query=query, may_see_secrets=may_see_secrets)


def mean_traces(*, workspace: Workspace, query: str, may_see_secrets: bool) -> RawSQL | None:
    """The condition on traces that a query is; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    return mean(_OF_TRACE, RANDOM, RANDOM, workspace=workspace, query=query, may_see_secrets=may_see_secrets)


def mean(own: str, *values: object, workspace: Workspace, query: str, may_see_secrets: bool) -> RawSQL | None:
    """The condition that one of the shown messages of a row is found; None for an empty query.

    Args:
        own: SQL that says of a message, by the name of its table, whether it is the row's.
        values: its parameters.
        query: in the search language.
        may_see_secrets: as in `selectors.search`.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    if not query.strip():
        return None
    rows = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=may_see_secrets)
    rows = rows.filter(cast("Any", RawSQL(own, values, output_field=models.BooleanField())))  # noqa: S611
    # The query is written for the table of messages by its own name, which it keeps only in a statement of its own.
    statement, given = rows.order_by().values("pk").query.sql_with_params()
    return RawSQL(f"EXISTS ({statement})", given, output_field=models.BooleanField())  # noqa: S611


def find_meant(
    rows: models.QuerySet[Row], meant: RawSQL | None, *, at: str, before: Place | None, limit: int
) -> Found[Row]:
    """The first of these rows that a query means, newest first.

    Args:
        rows: in the order of `at` and the primary key.
        meant: the condition that the query is; None for all of them.
        at: the name of the time that they are ordered by.
        before: the place after which to look.

    Raises:
        SlowQueryError: where nothing at all could be looked through.
    """
    every = go_on(rows, at, before)
    if meant is None:
        return Found(list(every[:limit]))
    wanted = every.filter(cast("Any", meant))
    found = fetch(wanted[:limit], AT_ONCE_MS)
    return Found(found) if found is not None else search_back(wanted, every, at=at, before=before, limit=limit)
