"""Conversations and traces that a query means: those that hold a shown message which it finds."""

from __future__ import annotations

from typing import Final, TypeVar

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.lookups import IsNull

from inspector.accounts.models import Workspace
from inspector.lookups import go_on
from inspector.threads.models import Trace
from inspector.threads.placing.keys import RANDOM

from .selectors import Found, Place, fetch, narrow, search_back

AT_ONCE_MS: Final = 700
# As `find_traces_of` has it: an id that is random by its form is in the trace across channels, any other in that of its
# channel where there is one.
_OF_ITS_CHANNEL: Final = Trace.objects.filter(
    workspace=OuterRef("workspace"), key=OuterRef("trace_key"), channel=OuterRef("channel"), last_at__isnull=False
)
_OF_TRACE: Final = Q(trace_key=OuterRef("key")) & (
    Q(channel=OuterRef("channel")) & ~Q(trace_basis=RANDOM)
    | Q(IsNull(OuterRef("channel"), True)) & (Q(trace_basis=RANDOM) | ~Q(Exists(_OF_ITS_CHANNEL)))
)
Row = TypeVar("Row", bound=models.Model)


def mean_conversations(*, workspace: Workspace, query: str, may_see_secrets: bool) -> Exists | None:
    """The condition on conversations that a query is; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    return mean(Q(conversation=OuterRef("pk")), workspace=workspace, query=query, may_see_secrets=may_see_secrets)


def mean_traces(*, workspace: Workspace, query: str, may_see_secrets: bool) -> Exists | None:
    """The condition on traces that a query is; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    return mean(_OF_TRACE, workspace=workspace, query=query, may_see_secrets=may_see_secrets)


def mean(own: Q, *, workspace: Workspace, query: str, may_see_secrets: bool) -> Exists | None:
    """The condition that one of the shown messages of a row is found; None for an empty query.

    Args:
        own: says of a message whether it is the row's, to which it refers by `OuterRef`.
        query: in the search language.
        may_see_secrets: as in `selectors.search`.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    if not query.strip():
        return None
    rows = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=may_see_secrets)
    return Exists(rows.filter(own).order_by())


def find_meant(
    rows: models.QuerySet[Row], meant: Exists | None, *, at: str, before: Place | None, limit: int
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
    wanted = every.filter(meant)
    found = fetch(wanted[:limit], AT_ONCE_MS)
    return Found(found) if found is not None else search_back(wanted, every, at=at, before=before, limit=limit)
