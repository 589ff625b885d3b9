"""When a session ends by itself: unused for too long, or too long after its sign-in."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends.base import SessionBase
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from inspector.trail.acting import find_address

from .models import make_id
from .session_store import ADDRESS, LAST_USED, MAX_PROGRAM_LENGTH, PROGRAM, PUBLIC_ID, STARTED

# A session is written at most this often: reading pages must not write to the database at each request.
WRITE_SECONDS: Final = 60
# What an open page asks by itself: that nobody closed a window does not mean that somebody sits before it.
ASKED_BY_PAGES: Final = frozenset({"live", "progress"})


@receiver(user_logged_in, dispatch_uid="note the start of a session")
def note_start(sender: object, request: HttpRequest, **_: object) -> None:
    """Both times begin at the sign-in, which also says from where and by which program."""
    request.session[PUBLIC_ID] = str(make_id())
    request.session[STARTED] = request.session[LAST_USED] = int(time.time())
    request.session[ADDRESS] = find_address()
    request.session[PROGRAM] = request.headers.get("User-Agent", "")[:MAX_PROGRAM_LENGTH].replace("\x00", "")


def is_over(session: SessionBase) -> bool:
    """Whether the session has ended by itself. One from before these times were noted has none, and is over."""
    now = int(time.time())
    idle, age = now - session.get(LAST_USED, 0), now - session.get(STARTED, 0)
    return bool(idle > settings.SESSION_IDLE_MINUTES * 60 or age > settings.SESSION_HOURS * 3600)


class IdlenessMiddleware:
    """Ends a session that is over before anything asks whose it is. It stands after Django's session middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        """End the session, or note that it is in use."""
        # Without its cookie there is no session; answers of the API must not come to depend on one.
        if settings.SESSION_COOKIE_NAME not in request.COOKIES or SESSION_KEY not in request.session:
            return
        session = request.session
        if is_over(session):
            session.flush()
        elif request.resolver_match and request.resolver_match.url_name not in ASKED_BY_PAGES:
            now = int(time.time())
            if now - session[LAST_USED] >= WRITE_SECONDS:
                session[LAST_USED] = now
