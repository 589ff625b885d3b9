"""News: how many messages have come since a page was made, of those that the page is about.

A page carries where it stands in the feed, and hands it in with each look. What it has counted so far goes with it, so
that a look reads only what was announced since the look before, whoever answers it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta, tzinfo
from typing import Any, Final

from django.db import models

from inspector.accounts.models import Workspace
from inspector.browsing.activity import Batch, LostPlaceError, Place, find_end, read_feed
from inspector.threads.models import Message
from inspector.threads.resolving.writing import KEPT
from inspector.threads.selectors import filter_conversations

from .selectors import CursorError, fetch, narrow, read_key, write_key

# So many announced messages are looked at in one look, and so many are counted for a page: "1,000+" says enough.
MAX_AT_ONCE: Final = 2000
MAX_COUNTED: Final = 1000
PATIENCE_MS: Final = 1500
# A transaction may have begun long before it was announced what it told.
GOOD_FOR: Final = KEPT - timedelta(hours=1)
LIST: Final = "news"


@dataclass(frozen=True, kw_only=True, slots=True)
class Since:
    """Where a page stands in the feed, when it stood there, how much it has counted since it was made, and the
    first of it in the timeline of its conversation, by the hexadecimal digits of its place."""

    place: Place
    at: int
    count: int = 0
    first: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Watch:
    """What a page is about: one conversation, what a query means, conversations of a kind; everything where nothing is
    given."""

    conversation_id: uuid.UUID | None = None
    query: str = ""
    dialect: str = ""
    agent: str = ""
    state: str = ""
    channel: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class News:
    """What a look came to: where the page stands now, whether there is something to say, and more to look at.

    `is_uncounted`: there is something new, and whether the page is about it took too long to find out.
    `is_lost`: the page is so old that nobody knows any more what has come since.
    """

    since: Since
    is_fresh: bool = False
    is_uncounted: bool = False
    is_lost: bool = False
    has_more: bool = False

    @property
    def is_full(self) -> bool:
        """Whether looking further would say nothing more."""
        return self.is_lost or self.since.count >= MAX_COUNTED

    @property
    def words(self) -> str:
        """What the page says of it."""
        if self.is_lost:
            return "Out of date"
        if self.is_full:
            return f"{MAX_COUNTED:,}+ new"
        return f"{self.since.count:,} new" if self.since.count else "New messages"


def begin(snapshot: str = "") -> Since:
    """Where a page begins that is read after this, or after the statement that said its snapshot."""
    return Since(place=find_end(snapshot), at=int(time.time()))


def write_since(since: Since, workspace_id: uuid.UUID) -> str:
    """As a text that a page carries: signed, and good in one workspace only."""
    key: list[str | int | bool] = [*since.place, since.at, since.count, since.first]
    return write_key(key, workspace_id, of=LIST)


def read_since(text: str | None, workspace_id: uuid.UUID) -> Since | None:
    """What such a text says; None for none, or an empty one.

    Raises:
        CursorError: for one that `write_since` did not write for this workspace.
    """
    key = read_key(text, workspace_id, of=LIST)
    if key is None:
        return None
    try:
        transaction, number, taken, known, at, count, first = key
    except ValueError as error:
        raise CursorError("the cursor is of another version: start again without it") from error
    place = Place(transaction, number, taken, known)
    return Since(place=place, at=at, count=count, first=first)


def look(
    *, workspace: Workspace, since: Since, watch: Watch, zone: tzinfo | None = None, may_see_secrets: bool = False
) -> News:
    """Look for what was announced since, and count what of it the page is about.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    batch = _read(workspace, since, MAX_AT_ONCE)
    if batch is None:
        return News(since=begin(), is_fresh=True, is_lost=True)
    places = _find_places(workspace, batch.messages, watch, zone, may_see_secrets) if batch.messages else []
    since = replace(since, place=batch.place, at=int(time.time()))
    if places is None:
        return News(since=since, is_fresh=True, is_uncounted=True, has_more=batch.has_more)
    if places:
        first = min(filter(None, [since.first, *places]), default="")
        since = replace(since, count=min(since.count + len(places), MAX_COUNTED), first=first)
    return News(since=since, is_fresh=bool(places), has_more=batch.has_more)


def list_news(
    *, workspace: Workspace, since: Since, query: str, limit: int, zone: tzinfo | None, may_see_secrets: bool
) -> tuple[list[Message], Since, bool] | None:
    """The messages themselves that a query means, in the order of their announcement, of the next `limit` that were
    announced; where to go on; whether there is more at once. None where nobody knows any more what has come since.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    batch = _read(workspace, since, limit)
    if batch is None:
        return None
    rows = narrow(workspace=workspace, query=query, zone=zone, may_see_secrets=may_see_secrets)
    found = rows.filter(pk__in=batch.messages).defer("body", "words").in_bulk() if batch.messages else {}
    messages = [found[message_id] for message_id in batch.messages if message_id in found]
    return messages, Since(place=batch.place, at=int(time.time())), batch.has_more


def _read(workspace: Workspace, since: Since, most: int) -> Batch | None:
    if since.at < time.time() - GOOD_FOR.total_seconds():
        return None
    try:
        return read_feed(workspace_id=workspace.pk, place=since.place, most=most)
    except LostPlaceError:
        return None


def _find_places(
    workspace: Workspace, message_ids: Sequence[uuid.UUID], watch: Watch, zone: tzinfo | None, may_see_secrets: bool
) -> list[str] | None:
    """The places of those among these messages that the page is about, in hexadecimal digits; None where it takes too
    long to find out."""
    rows = narrow(workspace=workspace, query=watch.query, zone=zone, may_see_secrets=may_see_secrets)
    rows = rows.filter(pk__in=message_ids)
    if watch.conversation_id is not None:
        rows = rows.filter(conversation_id=watch.conversation_id)
    if watch.dialect or watch.agent or watch.state or watch.channel:
        wanted = filter_conversations(
            workspace=workspace,
            dialect=watch.dialect,
            agent=watch.agent,
            state=watch.state,
            channel=watch.channel,
        ).filter(pk__in=rows.values("conversation_id"))
        rows = rows.filter(conversation_id__in=wanted.values("pk"))
    places: models.QuerySet[Any, Any] = rows.order_by().values_list("place", flat=True)
    found = fetch(places, PATIENCE_MS)
    return None if found is None else [bytes(place or b"").hex() for place in found]
