"""Sessions, and how a sign-in begins and ends: the second factor between, then a session and an entry in the audit log.

The sessions are Django's, in the database, each row with whose it is, which makes this the engine that `SESSION_ENGINE`
names. The person that one belongs to is read together with their memberships, which every page asks for, in one
statement. A session ends by itself: unused for too long, or too long after its sign-in.

A sign-in that failed is an entry in the trail of each workspace whose member was named, and a line in the log.
Passwords are long, on no list, and not among those guessed first: of few different characters, or of words that lie
near.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.utils import perform_login
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.contrib.sessions.backends.base import SessionBase, UpdateError
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.core.exceptions import ValidationError
from django.db import OperationalError
from django.db.models import QuerySet
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone

from inspector.tokens import hide_tokens
from inspector.trail.acting import find_address

from .models import Membership, Session, User, Workspace, make_id
from .selectors import list_memberships
from .services import make_cipher, note_account, note_failed_sign_in


class SessionBackend(BaseBackend):
    """Finds the person of a session. It lets nobody in: that is done by who checks a password or a link.

    The person carries their memberships as they are at this request, oldest first, each with its workspace.
    """

    def get_user(self, user_id: Any) -> User | None:
        """The person of that id, or None for one who does not exist or may not enter any more."""
        memberships = list(list_memberships(user_id=user_id))
        user = memberships[0].user if memberships else User.objects.filter(pk=user_id).first()
        if user is None or not user.is_active:
            return None
        for membership in memberships:
            membership.user = user
        user.read_memberships = memberships
        return user


def recall_memberships(user: Any) -> list[Membership]:
    """The memberships of a person who is signed in: what came with the session, else asked for."""
    known: list[Membership] | None = getattr(user, "read_memberships", None)
    return list(list_memberships(user_id=user.pk)) if known is None else known


BACKEND = f"{SessionBackend.__module__}.{SessionBackend.__qualname__}"


# In a session: its name on pages, seconds since 1970 of its sign-in and of its last use, its address and program.
PUBLIC_ID: Final = "public_id"
STARTED: Final = "started"
LAST_USED: Final = "last_used"
ADDRESS: Final = "address"
PROGRAM: Final = "program"
MAX_PROGRAM_LENGTH: Final = 400
# The first that is found in a User-Agent names it: most name their ancestors too.
_BROWSERS: Final = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
_NAMES: Final = {"Edg": "Edge", "OPR": "Opera"}
_SYSTEMS: Final = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows", "Mac OS": "macOS"}


class SessionStore(DatabaseStore):
    """The store of the framework, with the columns of `Session` written beside the data."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        """The table."""
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        """The row of the session, as it holds `data` now."""
        row = cast(Session, super().create_model_instance(data))
        row.public_id = data.get(PUBLIC_ID) or row.public_id
        row.user_id = data.get(SESSION_KEY)
        row.started_at, row.last_used_at = _read_time(data, STARTED), _read_time(data, LAST_USED)
        row.address, row.program = data.get(ADDRESS, ""), data.get(PROGRAM, "")
        return row

    def save(self, must_create: bool = False) -> None:
        """As the framework does, but that a database which is away is no session that has ended: 503, and not 400."""
        try:
            super().save(must_create)
        except UpdateError as error:
            if isinstance(error.__context__, OperationalError):
                raise error.__context__ from None
            raise


def _read_time(data: Mapping[str, Any], name: str) -> datetime | None:
    seconds = data.get(name)
    return None if seconds is None else datetime.fromtimestamp(seconds, tz=UTC)


def list_sessions(*, user: User) -> QuerySet[Session]:
    """The sessions of a person that may go on, the last used first."""
    now = timezone.now()
    used_since = now - timedelta(minutes=settings.SESSION_IDLE_MINUTES)
    rows: QuerySet[Session] = Session.objects.filter(user=user, expire_date__gt=now, last_used_at__gt=used_since)
    return rows.order_by("-last_used_at", "-started_at", "public_id")


def name_program(user_agent: str) -> str:
    """A browser in a few words, by what it calls itself: `Firefox on Linux`."""
    browser = next((name for name in _BROWSERS if f"{name}/" in user_agent), None)
    if browser is None:
        return re.split(r"[/ (]", user_agent, maxsplit=1)[0][:40] or "unknown program"
    system = next((name for mark, name in _SYSTEMS.items() if mark in user_agent), None)
    system = system or ("Linux" if "Linux" in user_agent else "an unknown system")
    return f"{_NAMES.get(browser, browser)} on {system}"


# In a session: a secret that was made just now, sealed, with the address that shows it; and for so many seconds it can
# be shown. What makes it leads there, so that to reload the page does not make it again.
_SHOWN_ONCE: Final = "shown_once"
_SHOWN_ONCE_SECONDS: Final = 300
_PURPOSE: Final = b"shown once"


def keep_to_show(session: SessionBase, address: str, made: Mapping[str, Any]) -> None:
    """Keep what was made just now until a page shows it, this once; the session holds it sealed.

    Args:
        address: of that page, with its query.
        made: what JSON can hold.
    """
    session[_SHOWN_ONCE] = make_cipher(_PURPOSE).encrypt(json.dumps([address, made]).encode()).decode()


def take_to_show(session: SessionBase, address: str) -> dict[str, Any]:
    """What was kept for the page of this address; it is not kept any more. Empty where there is nothing."""
    sealed = session.get(_SHOWN_ONCE)
    if sealed is None:
        return {}
    try:
        wanted, made = json.loads(make_cipher(_PURPOSE).decrypt(sealed.encode(), ttl=_SHOWN_ONCE_SECONDS))
    except InvalidToken:
        wanted, made = address, {}
    if wanted != address:
        return {}
    del session[_SHOWN_ONCE]
    return dict(made)


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


# In a session, how it began: by a link, which proves as much as the old password; by a link that stands for the second
# factor too; at the provider of single sign-on, which asked for a second factor.
CAME_BY_LINK: Final = "came_by_link"
CAME_BY_BREAK_GLASS: Final = "came_by_break_glass"
CAME_BY_PROVIDER: Final = "came_by_provider"


def begin_session(
    request: HttpRequest, user: User, *, by: str, wanted: str = "", mark: str = "", asks_for_factor: bool = True
) -> HttpResponse:
    """Sign in somebody who has proven who they are, or ask for their second factor first.

    Args:
        request: of theirs. A session that it has ends.
        user: who.
        by: what they came with, in words, for the audit log.
        wanted: the path to lead to.
        mark: one of the names above, to be in the session.
        asks_for_factor: whether a second factor is asked for, where the account has one.
    """
    if request.user.is_authenticated:
        logout(request)
    told = {"by": by, "mark": mark}
    answer: HttpResponse
    if asks_for_factor:
        answer = perform_login(request, user, redirect_url=wanted, signal_kwargs=told)
    else:
        adapter = get_adapter(request)
        adapter.login(request, user)
        answer = adapter.post_login(request, user, redirect_url=wanted, signal_kwargs=told)
    return answer


def refuse_sign_in(request: HttpRequest, why: str, *, status: int = 403) -> HttpResponse:
    """The page that says in a sentence why nobody is signed in."""
    return render(request, "sign_in/refused.html", {"why": why}, status=status)


def _is_strong(claims: Mapping[str, Any]) -> bool:
    """Whether the provider's signed token says that a second factor was asked for, where it is known how it would.

    Its `acr` is a text, its `amr` a list of them (OpenID Connect Core 1.0, section 2).
    """
    ways = claims.get("amr")
    said = [claims.get("acr"), *(ways if isinstance(ways, list) else ())]
    return not settings.OIDC_SECOND_FACTOR or any(each in said for each in settings.OIDC_SECOND_FACTOR)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """What allauth is told of accounts: nobody signs up, and a session is one of ours."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Never: an account is made by an invitation, the operator or a group of the provider."""
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """The address that the other limits count by too."""
        return find_address() or "unknown"

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        """Somebody who was deactivated is told so."""
        return refuse_sign_in(request, "This account is closed.")

    def login(self, request: HttpRequest, user: User) -> None:
        """Begin the session."""
        user.backend = BACKEND
        super().login(request, user)

    def post_login(
        self, request: HttpRequest, user: User, *, redirect_url: str, signal_kwargs: Mapping[str, Any], **_: Any
    ) -> HttpResponse:
        """Record how they came, and lead on."""
        by, mark = signal_kwargs.get("by", settings.OIDC_NAME), signal_kwargs.get("mark")
        if mark is None and _is_strong(signal_kwargs["sociallogin"].account.extra_data.get("id_token") or {}):
            mark = CAME_BY_PROVIDER
        if mark:
            request.session[mark] = True
        kinds = [each["type"] for each in get_authentication_records(request, user) if each["method"] == "mfa"]
        factor = {"second factor": kinds[-1].replace("_", " ")} if kinds else {}
        note_account(user=user, code="account.signed-in", details={"by": by, **factor})
        return redirect(redirect_url or resolve_url(settings.LOGIN_REDIRECT_URL))


MAX_NAME_LENGTH: Final = 150

logger = logging.getLogger(__name__)


@receiver(user_login_failed, dispatch_uid="note failed sign-ins")
def note_failure(sender: object, credentials: Mapping[str, Any], **_: object) -> None:
    """Keep the name that was tried and the address it came from. A password is in neither."""
    name = hide_tokens(str(credentials.get("username") or ""))[:MAX_NAME_LENGTH]
    logger.warning("sign-in failed for %r from %s", name, find_address() or "an unknown address")
    note_failed_sign_in(name=name)


MIN_DIFFERENT: Final = 5
# Words of this product and of who uses it; docs/signing-in.md lists them. Names of workspaces come to them.
NEAR_WORDS: Final = ("inspector", "auditor", "conversation", "dashboard", "password", "administrator", "welcome")
MIN_BESIDE: Final = 8


class DifferentCharactersValidator:
    """As `AUTH_PASSWORD_VALIDATORS` takes them."""

    def validate(self, password: str, user: Any = None) -> None:
        """Refuse a password of fewer than five different characters.

        Raises:
            ValidationError: with what to do.
        """
        if len(set(password)) < MIN_DIFFERENT:
            raise ValidationError(self.get_help_text(), code="password_monotonous")

    def get_help_text(self) -> str:
        """The rule in a sentence."""
        return f"Your password must contain at least {MIN_DIFFERENT} different characters."


class NearWordsValidator:
    """As `AUTH_PASSWORD_VALIDATORS` takes them."""

    def validate(self, password: str, user: Any = None) -> None:
        """Refuse a password that is little more than such words, than this person's name, or than a workspace's.

        Raises:
            ValidationError: with what to do.
        """
        named = Workspace.objects.filter(memberships__user=user) if getattr(user, "pk", None) else ()
        names = [name for each in named for name in (each.slug, each.name)]
        names += [user.get_username()] if isinstance(user, User) else []
        words = {*NEAR_WORDS, *(name.casefold() for name in names if len(name) > 3)}
        left = re.sub("|".join(map(re.escape, sorted(words, key=len, reverse=True))), "", password.casefold())
        if len(left) < min(MIN_BESIDE, len(password)):
            raise ValidationError(self.get_help_text(), code="password_near")

    def get_help_text(self) -> str:
        """The rule in a sentence."""
        return (
            "Your password must contain at least "
            f"{MIN_BESIDE} characters besides the product’s words, your name and your workspaces’ names."
        )
