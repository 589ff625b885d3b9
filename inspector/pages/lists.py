"""Lists: what one is narrowed to besides its own filters, the channel of the top bar and a delivery; and going through
one whose order moves: what moves behind the reader is shown at the end, so that nothing is lost.

A list that begins with the latest or the busiest loses what moves up past whoever reads a further page. Its first page
therefore says since when it is read, and behind its last one follows the rest: every row that was written from then on,
in an order in which none moves. Some of them have been seen before, and the rest says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from django import forms
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest

from inspector.accounts.models import Channel, Membership, Workspace
from inspector.accounts.selectors import find_channel
from inspector.audit.findings.selectors import of_channel, of_delivery
from inspector.database import WrittenSince, find_oldest_transaction, or_404
from inspector.intake.selectors import find_delivery
from inspector.search.selectors import Place, fetch, read_cursor, read_key, write_cursor, write_key
from inspector.threads.models import Conversation
from inspector.threads.selectors import select_messages_of_delivery

from .shell import Elsewhere, PageForm, list_dialects, read_id, write_query
from .shown.told import name_delivery

Row = TypeVar("Row")
Rows = TypeVar("Rows", bound=Model)
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
    delivery = None
    if (wanted := read_id(request, "delivery")) is not None:
        found = or_404(find_delivery(workspace=membership.workspace, delivery_id=wanted))
        delivery = {"id": found.pk, "name": name_delivery(found)}
    return Scope(channel, delivery, vars(membership)["channel_names"], kept, membership.workspace)


PATIENCE_MS: Final = 300
# The names in the address: since when the list is read, and how far the rest of it was.
_SINCE, _REST = "walk", "rest"


@dataclass(kw_only=True, slots=True)
class Walk:
    """Where a reader stands in such a list.

    Attributes:
        since: the transaction from which on what is written may have moved.
        is_first: whether this is the first page.
        after: the key of the last row that was seen of the rest; empty at its beginning, None before it.
        rest_url: where the rest is, if it follows on this page; known when the page is cut.
    """

    request: HttpRequest
    membership: Membership
    since: int
    is_first: bool
    after: Sequence[Any] | None
    places: Sequence[str]
    rest_url: str | None = None

    @property
    def is_rest(self) -> bool:
        """Whether the page is one of the rest."""
        return self.after is not None

    @property
    def written(self) -> WrittenSince:
        """The condition that the rows of the rest meet."""
        return WrittenSince(self.since)

    def narrow(self, rows: QuerySet[Rows], after: str) -> QuerySet[Rows]:
        """Those of the rest, from where the reader stands in it; `after` is the condition on their primary key."""
        return rows.filter(self.written, **({after: self.after[0]} if self.after else {}))

    def cut(self, found: Iterable[Row], size: int, rows: QuerySet[Any, Any]) -> tuple[list[Row], Row | None]:
        """A page and its last row, as `cut_page` gives them; behind the last page follows the rest, if it holds
        something, or nobody knows that in time.

        Args:
            rows: all that the list holds.

        Raises:
            Elsewhere: where the page is empty and the rest is not.
        """
        page, last = cut_page(found, size)
        if not (self.is_first or self.is_rest or last):
            moved = fetch(rows.order_by().filter(self.written).values_list("pk")[:1], PATIENCE_MS)
            self.rest_url = None if moved == [] else self._write_next(rest=())
            if self.rest_url and not page:
                raise Elsewhere(self.rest_url)
        return page, last

    def _write_next(self, rest: Sequence[str | int | bool] | None = None, **places: str | None) -> str:
        """The address of the next page: of the rest after the row with this key, or before it at these places."""
        if rest is not None:
            places = {**dict.fromkeys(self.places), _REST: self._write(rest, _REST)}
        return write_query(self.request, **{_SINCE: self._write([self.since], _SINCE)}, **places)

    def write_on(self, key: Sequence[str | int | bool], **places: str | None) -> str:
        """The address of the next page: of the rest after the row with this key, or before it at these places."""
        return self._write_next(rest=key) if self.is_rest else self._write_next(**places)

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


FAULTS = {"errors": "decoding errors", "missing": "missing messages"}
# What the addresses of a list name besides its filters.
PAGING = ("before", "grade", "since")


class TraceFilter(PageForm):
    """Which traces are listed; an unknown value filters nothing, and the page says so."""

    state = forms.ChoiceField(required=False, choices=[("", "any"), *Conversation.State.choices])
    dialect = forms.ChoiceField(required=False, choices=partial(list_dialects, "any"))
    agent = forms.CharField(
        required=False, max_length=200, widget=forms.TextInput(attrs={"size": 14, "placeholder": "whole name"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "filter-%s")
        super().__init__(*args, **kwargs)

    def read(self) -> dict[str, str]:
        """The filters that are set and valid, as `select_conversations` and `select_traces` take them."""
        self.is_valid()
        return {name: str(value) for name, value in self.cleaned_data.items() if value and name != "order"}

    def list_unknown(self) -> list[str]:
        """What the address asks for and no list can be filtered by: `state:`, a name, or `state:openn`, a value."""
        values = [f"{name}:{self.data.get(name)}" for name in self.errors]
        return [f"{name}:" for name in self.data if name not in {*self.fields, *PAGING}] + values


class ConversationFilter(TraceFilter):
    """Which conversations are listed, and in which order; whether its delivery exists is the page's to say."""

    fault = forms.ChoiceField(label="Problem", required=False, choices=[("", "any"), *FAULTS.items()])
    delivery = forms.UUIDField(required=False, widget=forms.HiddenInput)
    channel = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    order = forms.ChoiceField(
        label="Sort",
        required=False,
        choices=[("", "latest activity"), ("worst", "most severe finding")],
    )

    def read_order(self) -> str:
        """The order that is chosen, empty for the usual one."""
        self.is_valid()
        return str(self.cleaned_data.get("order", ""))


def read_place(request: HttpRequest, membership: Membership) -> Place | None:
    """The place in a keyset list that the address names, or None for its beginning.

    Raises:
        Http404: for a cursor that was not made for this workspace.
    """
    return read_cursor(request.GET.get("before"), membership.workspace.pk)


def cut_page(found: Iterable[Row], size: int) -> tuple[list[Row], Row | None]:
    """The rows of a page, and the last of them where others follow.

    Args:
        found: the rows from the page's place on: one more than it holds, where there are so many.
        size: how many it holds.
    """
    rows = list(found)
    return rows[:size], rows[size - 1] if len(rows) > size else None


def list_page(
    request: HttpRequest, membership: Membership, rows: Callable[..., Iterable[Rows]], size: int, at: str
) -> tuple[list[Rows], dict[str, str | None]]:
    """A page of a list by time and primary key, and the addresses of the next page and of the first one.

    Args:
        rows: gives those `before` a place, or all for None, at most so many (`limit`).
        at: the name of the time.

    Raises:
        CursorError: for a cursor that was not made for this workspace.
    """
    before = read_place(request, membership)
    page, last = cut_page(rows(before=before, limit=size + 1), size)
    older = write_cursor((getattr(last, at), last.pk), membership.workspace.pk) if last else None
    return page, {
        "older_url": write_query(request, before=older) if older else None,
        "newest_url": write_query(request, before=None) if request.GET.get("before") else None,
    }
