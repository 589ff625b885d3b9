"""Live: a page that is open is told how many new messages there are of what it shows, and loads them when asked to.

The page carries where it stands in the feed. Its script asks the address below for what came since, or listens to
the stream of `events`, which says the same. Nothing of the page moves until its reader wants it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.database import or_404
from inspector.search.language import QueryError
from inspector.search.news import News, Since, Watch, begin, look, read_since, write_since
from inspector.search.selectors import read_query
from inspector.threads.models import Conversation
from inspector.threads.timeline import load_places

from .shell import within_workspace

# The header that carries where the page stands now: an answer without it is none of ours.
AFTER: Final = "Live-After"
# The pages that are watched, and what narrows each of them down. Longer values match nothing that a page shows.
FILTERS: Final = {
    "overview": ("channel",),
    "conversations": ("dialect", "agent", "state", "channel"),
    "conversation": ("id",),
    "search": ("q",),
}
MAX_FILTER_LENGTH: Final = 2000


def watch(
    membership: Membership, *, of: str, load: bool = True, snapshot: str = "", since: str | None = None, **filters: str
) -> dict[str, Any]:
    """What `_live.html` shows; call it before the page reads what it shows, so that nothing falls between the two.

    Args:
        of: the name of the page's address.
        load: whether the page itself is where the new messages would stand; otherwise its chip leads to that.
        snapshot: what the page's first statement saw, where that said so.
        since: of a further page of a list, where the first one stood: what moved up from then on is news on all.

    Raises:
        Http404: for a `since` that no page of this workspace wrote.
        filters: what narrows the page down, see `FILTERS`.
    """
    slug = membership.workspace.slug
    began = read_since(since, membership.workspace.pk)
    query = urlencode({"of": of, **{name: value for name, value in filters.items() if value}})
    return {
        "after": write_since(began or begin(snapshot), membership.workspace.pk),
        "url": f"{reverse('pages:live', args=[slug])}?{query}",
        "events_url": f"{write_events_path(slug)}?{query}" if settings.EVENT_STREAM else "",
        "every": settings.LIVE_POLL_SECONDS,
        "load": load,
    }


def write_events_path(slug: str) -> str:
    """Where the stream of a workspace is: see `events`, which is served by a process of its own."""
    return f"/w/{slug}/events/"


@within_workspace("GET")
def show_news(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The chip that says what is new since `after`; 204 where there is nothing more to say than before."""
    since = read_since(request.GET.get("after"), membership.workspace.pk)
    page = read_page(request.GET, membership)
    news = or_404(find_news(page, since) if page else None)
    response = HttpResponse(write_chip(page, news)) if page and news.is_fresh else HttpResponse(status=204)
    response[AFTER] = write_since(news.since, membership.workspace.pk)
    return response


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page that is watched: whose reader, what it is about, and where it begins."""

    membership: Membership
    about: Watch
    address: str

    def find_url(self, news: News) -> str:
        """Where the new messages stand: the page from its beginning; of a conversation the first of them."""
        if self.about.conversation_id is None or not news.since.first:
            return self.address
        places = load_places(Conversation(pk=self.about.conversation_id))
        position = places.find_position(bytes.fromhex(news.since.first))
        return f"{self.address}?{urlencode({'order': 'time', 'at': position + 1})}"


def read_page(given: Mapping[str, Any], membership: Membership) -> Page | None:
    """The page that an address describes as `watch` wrote it; None where it describes none."""
    of = given.get("of", "overview")
    filters = {name: given.get(name, "") for name in FILTERS.get(of, ())}
    if of not in FILTERS or any(len(value) > MAX_FILTER_LENGTH or "\x00" in value for value in filters.values()):
        return None
    place = [membership.workspace.slug]
    try:
        if of == "conversation":
            conversation_id = uuid.UUID(filters["id"])
            place.append(str(conversation_id))
            about, written = Watch(conversation_id=conversation_id), ""
        else:
            about = Watch(**{"query" if name == "q" else name: value for name, value in filters.items()})
            written = urlencode({name: value for name, value in filters.items() if value})
    except ValueError:
        return None
    address = reverse(f"pages:{of}", args=place)
    return Page(membership=membership, about=about, address=f"{address}?{written}" if written else address)


def find_news(page: Page, since: Since | None) -> News | None:
    """What has come since; None for a query that cannot be understood. A page that stands nowhere yet begins here."""
    try:
        read_query(page.about.query)
        if since is None:
            return News(since=begin())
        return look(
            workspace=page.membership.workspace,
            since=since,
            watch=page.about,
            zone=ZoneInfo(page.membership.user.time_zone),
            may_see_secrets=page.membership.is_auditor,
        )
    except QueryError:
        return None


def write_chip(page: Page, news: News) -> str:
    """The chip, as it is put into the page."""
    return render_to_string("_live_chip.html", {"news": news, "url": page.find_url(news)})
