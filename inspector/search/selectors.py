"""Searching messages: newest first, by keyset, within a time that a reader is willing to wait.

The whole timeline is asked for at once, which is nearly always quick. Where it is not (PostgreSQL takes what is common
elsewhere to be common here, and walks through everything newer), the indexes of words and terms are asked alone: what
is rare here is found by them at once. What is neither is looked for in windows of the timeline that widen, newest
first, until the time is up; the answer then says how far back it looked.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

from django.db import OperationalError, connection, models, transaction

from inspector.accounts.models import Workspace
from inspector.intake.withdrawals import has_hidden
from inspector.lookups import IsAny
from inspector.threads.models import Message, MessageQuerySet

from . import registry
from .language import Group, parse
from .values import zone_of_query
from .writing import as_filter

Place = tuple[datetime, uuid.UUID]

AT_ONCE_MS, BY_TERMS_MS = 150, 550
PATIENCE_MS: Final = 2500
WINDOWS: Final = tuple(timedelta(days=days) for days in (1, 7, 30, 120, 400, 1500))
_CANCELLED: Final = "57014"


@dataclass(frozen=True, slots=True)
class Found:
    """Messages that a query means, newest first.

    `searched_back_to` is the time to which the search came before its patience ended; None where it came to the end
    of the timeline, or found as many as were asked for.
    """

    messages: list[Message]
    searched_back_to: datetime | None = None


def read_query(text: str) -> Group:
    """The tree of a query in all names that are registered.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    return parse(text, names=registry.names(), is_path=registry.is_name, literals=registry.list_literals())


def find_messages(
    *,
    workspace: Workspace,
    query: str,
    before: Place | None = None,
    limit: int = 50,
    zone: tzinfo | None = None,
    may_see_secrets: bool = False,
) -> list[Message]:
    """The messages of `search`, for whom it is enough to have them; see there."""
    return search(
        workspace=workspace, query=query, before=before, limit=limit, zone=zone, may_see_secrets=may_see_secrets
    ).messages


def search(
    *,
    workspace: Workspace,
    query: str,
    before: Place | None = None,
    limit: int = 50,
    zone: tzinfo | None = None,
    may_see_secrets: bool = False,
) -> Found:
    """Messages that a query means, each with its conversation and channel.

    Args:
        workspace: whose messages.
        query: in the search language; empty for all.
        before: (order_time, id) of the last message seen.
        limit: at most this many.
        zone: whose days the days of the query are; UTC where none is given.
        may_see_secrets: whether the reader may see masked characters; without it `raw:` looks at the masked text.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    rows = narrow(workspace=workspace, query=query, zone=zone, may_see_secrets=may_see_secrets)
    rows = rows.select_related("conversation", "channel").defer("body", "words")
    if before:
        at, message_id = before
        rows = rows.filter(models.Q(order_time__lt=at) | models.Q(order_time=at, pk__lt=message_id))
    rows = rows.order_by("-order_time", "-id")
    messages = fetch(rows[:limit], AT_ONCE_MS)
    if messages is None:
        messages = _search_by_terms(rows, limit)
    return Found(messages) if messages is not None else _search_windows(rows, workspace, before, limit)


def narrow(*, workspace: Workspace, query: str, zone: tzinfo | None, may_see_secrets: bool) -> MessageQuerySet:
    """The shown messages that a query means.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    with days_of(zone):
        return _select(workspace, query, may_see_secrets=may_see_secrets).shown()


def _select(workspace: Workspace, query: str, *, may_see_secrets: bool) -> MessageQuerySet:
    meant = as_filter(read_query(query), workspace, may_see_secrets=may_see_secrets)
    return Message.objects.filter(workspace=workspace).filter(meant)


def _search_by_terms(rows: models.QuerySet[Message], limit: int) -> list[Message] | None:
    """The messages by the indexes of words and terms, whatever the planner expects; None where they are too many."""
    ids = fetch(rows.values_list("pk", flat=True)[:limit], BY_TERMS_MS, walks=False)
    return None if ids is None else list(rows.filter(IsAny("id", ids))) if ids else []


def _search_windows(rows: models.QuerySet[Message], workspace: Workspace, before: Place | None, limit: int) -> Found:
    """Window by window back in time, each as long as there is patience left."""
    until = time.monotonic() + PATIENCE_MS / 1000
    newest = before[0] if before else find_newest(workspace=workspace)
    found: list[Message] = []
    reached = newest
    for width in WINDOWS if newest else ():
        left_ms = int((until - time.monotonic()) * 1000)
        start = newest - width if newest else None
        window = rows.filter(order_time__gte=start)
        if found or width != WINDOWS[0]:
            window = window.filter(order_time__lt=reached)
        more = fetch(window[: limit - len(found)], left_ms) if left_ms > 0 else None
        if more is None:
            break
        found += more
        reached = start
        if len(found) >= limit:
            return Found(found[:limit])
    return Found(found, reached)


def fetch(rows: models.QuerySet[Any, Any], patience_ms: int, *, walks: bool = True) -> list[Any] | None:
    """The rows, or None where they take longer than this.

    Args:
        rows: what is asked for.
        patience_ms: how long may be waited for it.
        walks: whether an index may be gone through in its order until there are enough.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('statement_timeout', %s, TRUE), set_config('enable_indexscan', %s, TRUE)",
                [str(patience_ms), "on" if walks else "off"],
            )
            found = list(rows)
            # Nothing was written: to go back is the shortest way to the limit that held before.
            transaction.set_rollback(True)
            return found
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _CANCELLED:
            raise
        return None


def find_newest(*, workspace: Workspace) -> datetime | None:
    """The order time of the workspace's newest message; None where there is none."""
    rows = Message.objects.filter(workspace=workspace).order_by("-order_time", "-id")
    return rows.values_list("order_time", flat=True).first()


def count_hidden(*, workspace: Workspace, query: str, may_see_secrets: bool, limit: int = 1001) -> int:
    """How many messages that a query means are hidden because their deliveries were withdrawn, up to a limit.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    if not has_hidden(workspace=workspace):
        return 0
    return _select(workspace, query, may_see_secrets=may_see_secrets).hidden().values("pk")[:limit].count()


@contextmanager
def days_of(zone: tzinfo | None) -> Iterator[None]:
    """Within this, the days of a query are days of that time zone; of UTC where none is given."""
    token = zone_of_query.set(zone) if zone else None
    try:
        yield
    finally:
        if token:
            zone_of_query.reset(token)
