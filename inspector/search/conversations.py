"""Conversations and traces that a query means: those that hold a shown message which it finds."""

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

from django.db import models
from django.db.models.expressions import RawSQL

from inspector.accounts.models import Workspace
from inspector.threads.placing.keys import RANDOM

from .selectors import fetch, narrow

PATIENCE_MS: Final = 2500
_IS_MEANT: Final = '"threads_conversation"."id" IN ({})'
# As `find_traces_of` has it: an id that is random by its form is in the trace across channels, any other in that of its
# channel where there is one.
_IS_TRACE_MEANT: Final = """(
    "threads_trace"."channel_id" IS NOT NULL
    AND ("threads_trace"."key", "threads_trace"."channel_id") IN (
        SELECT "meant"."trace_key", "meant"."channel_id" FROM ({0}) "meant" WHERE "meant"."trace_basis" <> %s)
 OR "threads_trace"."channel_id" IS NULL
    AND "threads_trace"."key" IN (
        SELECT "meant"."trace_key" FROM ({0}) "meant" WHERE "meant"."trace_basis" = %s OR NOT EXISTS (
            SELECT FROM "threads_trace" "own" WHERE "own"."workspace_id" = %s AND "own"."key" = "meant"."trace_key"
            AND "own"."channel_id" = "meant"."channel_id" AND "own"."last_at" IS NOT NULL))
)"""
Row = TypeVar("Row", bound=models.Model)


class SlowQueryError(Exception):
    """A query whose conversations take too long to find."""


def mean_conversations(*, workspace: Workspace, query: str, may_see_secrets: bool) -> RawSQL | None:
    """The condition on conversations that a query is; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    if not query.strip():
        return None
    rows = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=may_see_secrets)
    # The query is written for the table of messages by its own name, which it keeps only in a statement of its own.
    statement, values = rows.order_by().values("conversation").query.sql_with_params()
    return RawSQL(_IS_MEANT.format(statement), values, output_field=models.BooleanField())  # noqa: S611


def mean_traces(*, workspace: Workspace, query: str, may_see_secrets: bool) -> RawSQL | None:
    """The condition on traces that a query is; None for an empty one.

    Raises:
        QueryError: as `mean_conversations` does.
    """
    if not query.strip():
        return None
    rows = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=may_see_secrets)
    named = rows.filter(trace_key__isnull=False).order_by().values("trace_key", "channel_id", "trace_basis").distinct()
    statement, values = named.query.sql_with_params()
    given = [*values, RANDOM, *values, RANDOM, workspace.pk]
    return RawSQL(_IS_TRACE_MEANT.format(statement), given, output_field=models.BooleanField())  # noqa: S611


def find_meant(rows: models.QuerySet[Row], meant: RawSQL, limit: int) -> list[Row]:
    """The first of these rows that a query means, in their order.

    Raises:
        SlowQueryError: where that takes longer than anybody waits.
    """
    found = fetch(rows.filter(cast("Any", meant))[:limit], PATIENCE_MS)
    if found is None:
        raise SlowQueryError("the search takes too long: make it narrower, by time or by agent")
    return found
