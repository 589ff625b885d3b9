"""Lists: what one is narrowed to besides its own filters, the channel of the top bar and a delivery; and going through
one whose order moves: what moves behind the reader is shown at the end, so that nothing is lost.

A list that begins with the latest or the busiest loses what moves up past whoever reads a further page. Its first page
therefore says since when it is read, and behind its last one follows the rest: every row that was written from then on,
in an order in which none moves. Some of them have been seen before, and the rest says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest

from inspector.accounts.models import Channel, Membership, Workspace
from inspector.accounts.selectors import find_channel
from inspector.audit.findings.selectors import of_channel, of_delivery
from inspector.database import WrittenSince, find_oldest_transaction
from inspector.search.selectors import fetch, read_key, write_cursor, write_key
from inspector.threads.selectors import select_messages_of_delivery

from .deliveries.views import describe_named
from .shell import write_query

# Parameters that another channel has no use for: places in a list.
_PLACES = ("channel", "before", "grade", "since", "offset")


@dataclass(frozen=True, slots=True)
class Scope:
    """A channel and a delivery that the address names, each None where it names none."""

    channel: Channel | None
    delivery: dict[str, Any] | None
    channels: Sequence[str]
    kept: Sequence[tuple[str, str]]
    workspace: Workspace

    @property
    def findings(self) -> Q:
        """The findings within it."""
        within = of_channel(self.channel.pk) if self.channel else Q()
        return within & of_delivery(self.delivery["id"]) if self.delivery else within

    @property
    def parameters(self) -> dict[str, str]:
        """What a link to a page of the same scope carries."""
        named = {"channel": self.channel.name} if self.channel else {}
        return named | ({"delivery": str(self.delivery["id"])} if self.delivery else {})

    @property
    def query(self) -> str:
        """What leads to another page of the same channel, behind its address."""
        return f"?{urlencode({'channel': self.channel.name})}" if self.channel else ""

    @property
    def conversations(self) -> Q:
        """What belongs to a conversation within it."""
        within = Q(conversation__channel=self.channel) if self.channel else Q()
        if not self.delivery:
            return within
        reached = select_messages_of_delivery(workspace=self.workspace, delivery_id=self.delivery["id"])
        return within & Q(conversation__in=reached.values("conversation"))


def read_scope(request: HttpRequest, membership: Membership) -> Scope:
    """What the address of a page narrows it to.

    Raises:
        Http404: for a channel or a delivery that is not there.
    """
    name = request.GET.get("channel", "")
    channel = find_channel(workspace=membership.workspace, name=name) if name else None
    if name and channel is None:
        raise Http404
    kept = [(key, str(value)) for key, value in request.GET.items() if value and key not in _PLACES]
    return Scope(
        channel, describe_named(request, membership), vars(membership)["channel_names"], kept, membership.workspace
    )


PATIENCE_MS: Final = 300
# The names in the address: since when the list is read, and how far the rest of it was.
_SINCE, _REST = "walk", "rest"


@dataclass(frozen=True, kw_only=True, slots=True)
class Walk:
    """Where a reader stands in such a list.

    Attributes:
        since: the transaction from which on what is written may have moved.
        is_first: whether this is the first page.
        after: the key of the last row that was seen of the rest; empty at its beginning, None before it.
    """

    request: HttpRequest
    membership: Membership
    since: int
    is_first: bool
    after: Sequence[Any] | None
    places: Sequence[str]

    @property
    def is_rest(self) -> bool:
        """Whether the page is one of the rest."""
        return self.after is not None

    @property
    def written(self) -> WrittenSince:
        """The condition that the rows of the rest meet."""
        return WrittenSince(self.since)

    def write_next(self, **places: str | None) -> str:
        """The address of the next page, of the rest or before it, which begins at these places."""
        return write_query(self.request, **{_SINCE: self._write([self.since], _SINCE)}, **places)

    def write_rest(self, key: Sequence[str | int | bool] = ()) -> str:
        """The address of the page of the rest that begins after the row with this key."""
        cleared = dict.fromkeys(self.places)
        return self.write_next(**{**cleared, _REST: self._write(key, _REST)})

    def write_on(self, key: Sequence[str | int | bool], **places: str | None) -> str:
        """The address of the next page: of the rest after the row with this key, or before it at these places."""
        return self.write_rest(key) if self.is_rest else self.write_next(**places)

    def write_older(self, last: Model | None, at: str, **places: str | None) -> str | None:
        """The address of the page after a row; None where there is none. `at` is the name of the time it stands by."""
        moment: datetime | None = getattr(last, at, None)
        if last is None or moment is None:
            return None
        before = write_cursor((moment, last.pk), self.membership.workspace.pk)
        return self.write_on([str(last.pk)], before=before, **places)

    @property
    def first_url(self) -> str | None:
        """The address of the first page; None on it."""
        cleared = dict.fromkeys((*self.places, _SINCE, _REST))
        return None if self.is_first else write_query(self.request, **cleared)

    def find_rest(self, rows: QuerySet[Any, Any], *, has_more: bool) -> str | None:
        """The address of the rest where it follows on this page and holds something, or nobody knows that in time.

        Args:
            rows: all that the list holds.
            has_more: whether another page comes first.
        """
        if self.is_first or self.is_rest or has_more:
            return None
        found = fetch(rows.order_by().filter(self.written).values_list("pk")[:1], PATIENCE_MS)
        return None if found == [] else self.write_rest()

    def _write(self, key: Sequence[str | int | bool], of: str) -> str:
        return write_key(key, self.membership.workspace.pk, of=of)


def read_walk(request: HttpRequest, membership: Membership, *, places: Sequence[str], snapshot: str = "") -> Walk:
    """Where the address says that the reader stands; call it before the rows are read.

    Args:
        places: the names of the address that say where a page before the rest begins.
        snapshot: one taken before the rows are read, in PostgreSQL's own form; without it, it is asked for.

    Raises:
        Http404: for what no page of this workspace wrote.
    """
    since = read_key(request.GET.get(_SINCE), membership.workspace.pk, of=_SINCE)
    after = read_key(request.GET.get(_REST), membership.workspace.pk, of=_REST) if since else None
    is_first = not any(name in request.GET for name in (*places, _REST))
    start = since[0] if since and not is_first else find_oldest_transaction(snapshot)
    return Walk(
        request=request, membership=membership, since=start, is_first=is_first, after=after, places=tuple(places)
    )
