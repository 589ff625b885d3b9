"""Live: a page that is open is told how many new messages there are of what it shows, and loads them when asked to.

The page carries where it stands in the feed. Its script asks an address of the pages for what came since, or listens to
a stream, which says the same. Nothing of the page moves until its reader wants it.

The stream is a small ASGI application beside the pages, and knows one address. A stream holds no worker and no
transaction: between two looks it only waits. All streams of a workspace wait for one look a second at the feed's end.
Before each look the reader's session and membership are asked for anew, so that whoever signs out or is taken out hears
no more. Every event carries as its id where the page stands then. A browser whose line was cut hands in the last one it
got, and goes on there; nothing is remembered here.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, TypeVar
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth import get_user
from django.db import DatabaseError, close_old_connections, connection
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.cookie import parse_cookie
from django.http.request import split_domain_port, validate_host
from django.template.loader import render_to_string
from django.urls import reverse

from inspector.accounts.models import Membership, User
from inspector.accounts.second_factors import lacks_second_factor
from inspector.accounts.selectors import find_membership
from inspector.accounts.sessions import is_over
from inspector.browsing.activity import find_latest
from inspector.database import or_404
from inspector.search.language import QueryError
from inspector.search.news import News, Since, Watch, begin, look, read_since, write_since
from inspector.search.selectors import CursorError, read_query
from inspector.threads.models import Conversation
from inspector.threads.timeline import load_places
from inspector.trail.row_security import enter_workspace

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
    """Where the stream of a workspace is: see `EventStream`, which a process of its own serves."""
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


Scope = MutableMapping[str, Any]

Receive = Callable[[], Awaitable[Mapping[str, Any]]]

Send = Callable[[Mapping[str, Any]], Awaitable[None]]

T = TypeVar("T")

LOOK_SECONDS: Final = 1.0

# A stream that has nothing to say shows that it lives, and looks whether its reader may still listen.
BEAT_SECONDS: Final = 15.0

# It ends after a while, and its reader comes again: so that streams spread anew over processes that were restarted.
MAX_SECONDS: Final = 15 * 60

# A reader who does not read is left.
PATIENCE_SECONDS: Final = 20.0

AGAIN_MS: Final = 3000

MAX_OF_ONE: Final = 12

_ADDRESS: Final = re.compile(r"/w/([-\w]+)/events/")

_HEADERS: Final = (
    (b"cache-control", b"no-store, private"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),
)

_WORDS: Final = {
    400: "This host name is not served here.",
    401: "Sign in first.",
    404: "There is nothing here.",
    405: "Only GET is understood here.",
    503: "Too many are listening: ask again later.",
}

logger = logging.getLogger(__name__)


class Refusal(Exception):  # noqa: N818  # it is an answer
    """That a request is answered with this status and no stream."""

    def __init__(self, status: int) -> None:
        super().__init__(_WORDS[status])
        self.status = status


@dataclass(slots=True)
class Bell:
    """Rings when the feed of a workspace has grown, for all who listen to it: one look a second for all of them."""

    workspace_id: uuid.UUID
    listeners: int = 0
    rings: int = 0
    rung: asyncio.Event = field(default_factory=asyncio.Event)
    watching: asyncio.Task[None] | None = None

    async def watch(self, ask: Callable[..., Awaitable[Any]]) -> None:
        """Look at the feed's end until nobody listens any more."""
        latest: object = None
        while True:
            try:
                found = await ask(_look_at_end, self.workspace_id)
            except DatabaseError:
                logger.warning("the feed's end cannot be seen now", exc_info=True)
            else:
                if found != latest:
                    latest = found
                    self.rings += 1
                    self.rung.set()
                    self.rung = asyncio.Event()
            await asyncio.sleep(LOOK_SECONDS)

    async def wait(self, rings: int, seconds: float) -> None:
        """Wait until it has rung since it had rung so often, or for so long."""
        if self.rings == rings:
            try:
                await asyncio.wait_for(self.rung.wait(), seconds)
            except TimeoutError:
                return


@dataclass(frozen=True, kw_only=True, slots=True)
class Ear:
    """Who listens: a browser's session, the slug of the workspace, what the address says of its page."""

    session_key: str
    slug: str
    given: QueryDict


class EventStream:
    """The application. Call it as ASGI says; it serves streams, `/healthz` and `/readyz`."""

    def __init__(self) -> None:
        # Questions to the database, which are short; each of these threads keeps a connection.
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="events")
        self._bells: dict[uuid.UUID, Bell] = {}
        self._listeners: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            ValueError: for a scope that is no HTTP request, as servers that ask for lifespan events expect.
        """
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, and no {scope['type']}")
        try:
            if scope["path"] in ("/healthz", "/readyz"):
                if scope["path"] == "/readyz":
                    await self._ask(_reach_database)
                await _answer(send, 200, "alive\n")
                return
            ear, since_text = _read_request(scope)
            membership, since = await self._ask(_admit, ear, since_text)
            with self._count(ear):
                await self._serve(ear, membership, since, receive, send)
        except Refusal as refusal:
            await _answer(send, refusal.status, f"{refusal}\n")
        except DatabaseError:
            logger.warning("the database cannot be asked now", exc_info=True)
            await _answer(send, 503, "Ask again later.\n")

    async def _ask(self, work: Callable[..., T], *arguments: Any, **names: Any) -> T:
        """Do something with the database, in a thread of ours."""

        def ask() -> T:
            close_old_connections()
            return work(*arguments, **names)

        return await asyncio.get_running_loop().run_in_executor(self._pool, ask)

    @contextmanager
    def _count(self, ear: Ear) -> Iterator[None]:
        """Let a listener in, if there is room.

        Raises:
            Refusal: where there is none, here or for this session.
        """
        if self._listeners.total() >= settings.EVENT_LISTENERS or self._listeners[ear.session_key] >= MAX_OF_ONE:
            raise Refusal(503)
        self._listeners[ear.session_key] += 1
        try:
            yield
        finally:
            self._listeners[ear.session_key] -= 1
            if not self._listeners[ear.session_key]:
                del self._listeners[ear.session_key]

    @contextmanager
    def _hear(self, workspace_id: uuid.UUID) -> Iterator[Bell]:
        bell = self._bells.setdefault(workspace_id, Bell(workspace_id))
        bell.listeners += 1
        if bell.watching is None:
            bell.watching = asyncio.create_task(bell.watch(self._ask))
        try:
            yield bell
        finally:
            bell.listeners -= 1
            if not bell.listeners:
                bell.watching.cancel()
                del self._bells[workspace_id]

    async def _serve(self, ear: Ear, membership: Membership, since: Since, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), *_HEADERS]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        with self._hear(membership.workspace.pk) as bell:
            tasks = [
                asyncio.create_task(_wait_for_end(receive)),
                asyncio.create_task(self._tell(ear, since, bell, send)),
            ]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                logger.info("a stream ended: %r", outcome)
        if not isinstance(outcomes[0], asyncio.CancelledError):
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, ear: Ear, since: Since, bell: Bell, send: Send) -> None:
        """Tell what comes until the time is over or the reader may not listen any more."""
        until = time.monotonic() + MAX_SECONDS
        text = f"retry: {AGAIN_MS}\n\n"
        while time.monotonic() < until:
            rings = bell.rings
            said = await self._ask(_look, ear, since)
            if said is None:
                await _write(send, f"{text}event: bye\ndata: You are not let in any more.\n\n")
                return
            since, event_id, chip, has_more = said
            # An event without data moves the reader's id, and is heard by nobody else.
            text += _write_event(event_id, chip) if chip else f"id: {event_id}\n\n"
            await _write(send, text)
            text = ""
            if not has_more:
                await bell.wait(rings, BEAT_SECONDS)


def _look_at_end(workspace_id: uuid.UUID) -> Any:
    """The end of a workspace's feed."""
    enter_workspace(workspace_id)
    return find_latest(workspace_id=workspace_id)


def _reach_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _read_request(scope: Scope) -> tuple[Ear, str]:
    """Who asks for what, and where their page stands: by the last event that reached it, else by its address.

    Raises:
        Refusal: for anything that is no request for a stream.
    """
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    host, _ = split_domain_port(headers.get("host", ""))
    if not validate_host(host, settings.ALLOWED_HOSTS):
        raise Refusal(400)
    found = _ADDRESS.fullmatch(scope["path"])
    if found is None:
        raise Refusal(404)
    if scope["method"] != "GET":
        raise Refusal(405)
    key = parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME, "")
    if not key:
        raise Refusal(401)
    given = QueryDict(scope["query_string"].decode("latin-1"))
    return Ear(session_key=key, slug=found[1], given=given), headers.get("last-event-id") or given.get("after", "")


def _find_reader(ear: Ear) -> Membership | None:
    """The member whose session it is, as of now: not signed out, not taken out, with the password they signed in by."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(ear.session_key)
    if is_over(request.session):
        return None
    user = get_user(request)
    found = find_membership(user=user, slug=ear.slug) if isinstance(user, User) else None
    if found is None or lacks_second_factor(request.session, found):
        return None
    enter_workspace(found.workspace_id)
    return found


def _admit(ear: Ear, since_text: str) -> tuple[Membership, Since]:
    """The reader, and where their page stands.

    Raises:
        Refusal: for whoever is not signed in, and for a stranger, as if the workspace did not exist.
    """
    membership = _find_reader(ear)
    if membership is None:
        raise Refusal(404)
    try:
        since = read_since(since_text, membership.workspace.pk)
    except CursorError as error:
        raise Refusal(404) from error
    page = read_page(ear.given, membership)
    news = find_news(page, None) if page else None
    if news is None:
        raise Refusal(404)
    return membership, since or news.since


def _look(ear: Ear, since: Since) -> tuple[Since, str, str, bool] | None:
    """What has come since: where the page stands, that as an id, the chip or "" for nothing more to say, whether there
    is more; None where the reader may not know any more."""
    membership = _find_reader(ear)
    page = read_page(ear.given, membership) if membership else None
    news = find_news(page, since) if page else None
    if membership is None or page is None or news is None:
        return None
    event_id = write_since(news.since, membership.workspace.pk)
    return news.since, event_id, write_chip(page, news) if news.is_fresh else "", news.has_more


def _write_event(event_id: str, chip: str) -> str:
    data = "".join(f"data: {line}\n" for line in chip.strip().splitlines())
    return f"id: {event_id}\nevent: news\n{data}\n"


async def _write(send: Send, text: str) -> None:
    body = {"type": "http.response.body", "body": text.encode(), "more_body": True}
    await asyncio.wait_for(send(body), PATIENCE_SECONDS)


async def _wait_for_end(receive: Receive) -> None:
    """Return when the reader has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(send: Send, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    if status == 503:
        headers.append((b"retry-after", b"30"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode(), "more_body": False})
