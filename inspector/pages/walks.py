"""Going through a list whose order moves: what moves behind the reader is shown at the end, so that nothing is lost.

A list that begins with the latest or the busiest loses what moves up past whoever reads a further page. Its first page
therefore says since when it is read, and behind its last one follows the rest: every row that was written from then on,
in an order in which none moves. Some of them have been seen before, and the rest says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Model, QuerySet
from django.http import HttpRequest

from inspector.accounts.models import Membership
from inspector.lookups import WrittenSince, find_oldest_transaction
from inspector.search.cursors import read_key, write_cursor, write_key
from inspector.search.selectors import fetch

from .shell import write_query

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
