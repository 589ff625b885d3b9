"""How a sign-in begins and ends: the second factor between, then a session and an entry in the audit log.

One that failed is an entry in the trail of each workspace whose member was named, and a line in the log. Passwords are
long, on no list, and not among those guessed first: of few different characters, or of words that lie near.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from allauth.account.adapter import DefaultAccountAdapter, get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ValidationError
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url

from inspector.tokens import hide_tokens
from inspector.trail.acting import find_address

from .models import User, Workspace
from .services import note_account, note_failed_sign_in
from .sessions import BACKEND

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
