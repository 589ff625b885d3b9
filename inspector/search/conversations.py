"""Conversations that a query means: those that hold a shown message which it finds."""

from __future__ import annotations

from typing import Any, Final, cast

from django.db import models
from django.db.models.expressions import RawSQL

from inspector.accounts.models import Workspace
from inspector.threads.models import Conversation

from .language import QueryError, list_terms
from .selectors import fetch, narrow, read_query

PATIENCE_MS: Final = 2500
_IS_MEANT: Final = '"threads_conversation"."id" IN ({})'


class SlowQueryError(Exception):
    """A query whose conversations take too long to find."""


def mean_conversations(*, workspace: Workspace, query: str, may_see_secrets: bool) -> RawSQL | None:
    """The condition on conversations that a query is; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood, or that asks for raw characters where the reader may not see
            all of them: that a conversation is found would tell what is masked in it.
    """
    if not query.strip():
        return None
    rows, needles = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=may_see_secrets)
    if needles:
        raw = next(term for term in list_terms(read_query(query)) if term.name == "raw")
        raise QueryError(
            "raw: is asked of messages by a key that may not see secrets, and of conversations by none such",
            raw.start,
            raw.end,
        )
    # The query is written for the table of messages by its own name, which it keeps only in a statement of its own.
    statement, values = rows.order_by().values("conversation").query.sql_with_params()
    return RawSQL(_IS_MEANT.format(statement), values, output_field=models.BooleanField())  # noqa: S611


def find_meant(rows: models.QuerySet[Conversation], meant: RawSQL, limit: int) -> list[Conversation]:
    """The first of these conversations that a query means, in their order.

    Raises:
        SlowQueryError: where that takes longer than anybody waits.
    """
    found = fetch(rows.filter(cast("Any", meant))[:limit], PATIENCE_MS)
    if found is None:
        raise SlowQueryError("the search takes too long: make it narrower, by time or by agent")
    return found
