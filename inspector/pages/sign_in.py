"""Coming in and going out: by name and password, a link or single sign-on, and the way to one's workspace; and by an
invitation, which somebody signed in takes as who they are, and anybody else with a new account.

Beside them a person's own account: the password they sign in with, their sessions, and the zone in which they read
times.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec
from zoneinfo import available_timezones

from allauth.account.decorators import reauthentication_required
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.openid_connect.views import login as ask_provider
from django import forms
from django.conf import settings
from django.contrib import messages as flashes
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from requests import RequestException

from inspector.accounts.limits import reserve
from inspector.accounts.models import Invitation, Membership, User
from inspector.accounts.second_factors import count_recovery_codes, has_second_factor, make_recovery_codes
from inspector.accounts.services import (
    choose_time_zone,
    end_sessions,
    find_link_owner,
    note_account,
    use_sign_in_link,
)
from inspector.accounts.sessions import (
    CAME_BY_BREAK_GLASS,
    CAME_BY_LINK,
    begin_session,
    list_sessions,
    name_program,
    recall_memberships,
    refuse_sign_in,
)
from inspector.accounts.workspaces import accept_as_new, accept_invitation, find_invitation
from inspector.database import or_404
from inspector.trail.acting import find_address

from .shell import PageForm, parse_id, render_page, show_once, take_shown, within_workspace


class SignInForm(PageForm, AuthenticationForm):
    """Name and password."""

    username = forms.CharField(
        max_length=150, widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}))
    error_messages = {  # noqa: RUF012 (as Django declares it)
        "invalid_login": "Wrong username or password (case-sensitive).",
        "inactive": "This account is closed.",
    }


def _list_zones() -> list[tuple[str, str]]:
    return [(name, name) for name in ("UTC", *sorted(available_timezones() - {"localtime", "UTC"}))]


class ZoneForm(PageForm):
    """The time zone in which a person is shown times."""

    time_zone = forms.ChoiceField(
        label="Time zone",
        choices=_list_zones,
        help_text="Times are shown in this zone. Stored and exported times stay in UTC.",
    )


class PasswordForm(PageForm, PasswordChangeForm):
    """A new password, by whoever knows the old one."""

    def __init__(self, *args: Any, asks_for_old: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not asks_for_old:  # There is none, or a link has just proven who this is.
            del self.fields["old_password"]


class InvitedForm(PageForm):
    """A new account for somebody who was invited."""

    name = forms.CharField(
        max_length=150,
        label="User name",
        widget=forms.TextInput(attrs={"autocomplete": "username", "spellcheck": "false"}),
        help_text="Letters, digits and @ . + - _ only. Your reviews are kept under this name.",
    )
    password = forms.CharField(
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 12 characters.",
    )


# Hashing a password takes a tenth of a second and much memory, on purpose: of the threads of a process, which answer
# everybody, no more are busy with it at a time, and nobody waits long for their turn.
HASHES_AT_ONCE: Final = 2

PATIENCE_SECONDS: Final = 2.0

_SPENT: Final = (
    "This link does not sign in any more: it works once and for a limited time. Ask the operator for a new one, which"
    " manage.py sign_in_link prints."
)

_hashing = threading.BoundedSemaphore(HASHES_AT_ONCE)

logger = logging.getLogger(__name__)

P = ParamSpec("P")

View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def hash_in_turn(view: View[P]) -> View[P]:
    """A view whose POST hashes passwords: it waits for its turn a moment, and answers 429 without one."""

    @wraps(view)
    def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        if not _hashing.acquire(timeout=PATIENCE_SECONDS):
            return _refuse_haste(request, wait=5)
        try:
            return view(request, *args, **kwargs)
        finally:
            _hashing.release()

    return answer


def within_pace(view: View[P]) -> View[P]:
    """A view whose POST counts as a sign-in of its address: too many are answered with 429."""

    @wraps(view)
    def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        most = settings.LIMITS["sign_ins_per_minute"]
        if request.method == "POST" and most and not reserve(find_address(), most=most):
            return _refuse_haste(request, wait=math.ceil(60 / most))
        return view(request, *args, **kwargs)

    return answer


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@within_pace
def sign_in(request: HttpRequest) -> HttpResponse:
    """The form, and signing in by it."""
    wanted = _choose_next(request)
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect(wanted)
        return _answer_form(request, SignInForm(request), wanted)
    return _check_password(request, wanted)


@hash_in_turn
def _check_password(request: HttpRequest, wanted: str) -> HttpResponse:
    form = SignInForm(request, data=request.POST)
    if not form.is_valid():
        return _answer_form(request, form, wanted, status=422)
    return begin_session(request, form.get_user(), by="name and password", wanted=wanted)


@never_cache
@require_POST
@within_pace
def go_to_provider(request: HttpRequest) -> HttpResponse:
    """Lead to the provider of single sign-on, which leads back."""
    try:
        answer: HttpResponse = ask_provider(request, provider_id="sso")
    except RequestException as error:
        logger.warning("the provider of single sign-on cannot be asked: %s", error)
        why = f"{settings.OIDC_NAME} cannot be reached. Try again in a minute, or sign in with a password."
        return refuse_sign_in(request, why, status=503)
    return answer


def ask_for_code(request: HttpRequest, title: str, failure: str = "") -> HttpResponse:
    """The page that a link leads to: a script or a person hands over the code behind its "#", which no browser sends.

    Args:
        request: answered with 410 where something failed.
        title: what the link is for.
        failure: a sentence on the code that was handed over.
    """
    context = {"title": title, "failure": failure, "address": request.path}
    return render(request, "sign_in/code.html", context, status=410 if failure else 200)


def read_code(request: HttpRequest) -> str:
    """The code that was handed over, also where it is the whole link; empty where there is none."""
    return request.POST.get("code", "").rpartition("#")[2].strip()


@never_cache
@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def use_link(request: HttpRequest) -> HttpResponse:
    """Sign in by a link that works once, as `make run` prints it: its code asks, and only the button spends it.

    Mail programs and chats open links by themselves, to show what is there.
    """
    token = read_code(request)
    if not token:
        return ask_for_code(request, "Sign in")
    link = use_sign_in_link(token=token) if "confirm" in request.POST else None
    if link is not None:
        by, mark = "a link that works once", CAME_BY_LINK
        if link.is_break_glass:
            by, mark = "a link without second factor", CAME_BY_BREAK_GLASS
        return begin_session(request, link.user, by=by, mark=mark, asks_for_factor=not link.is_break_glass)
    user = find_link_owner(token=token)
    if user is None:
        if request.user.is_authenticated:
            return redirect("pages:home")
        return ask_for_code(request, "Sign in", _SPENT)
    return render(request, "sign_in/link.html", {"name": user.get_username(), "token": token})


@require_http_methods(["GET", "HEAD", "POST"])
def refuse_old_link(request: HttpRequest) -> HttpResponse:
    """Links bore their codes in their paths up to release 0.2: no such code is taken."""
    why = "This link is of an earlier release, and is not taken any more. Ask for a new one where you got it."
    return refuse_sign_in(request, why, status=410)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    if request.user.is_authenticated:
        note_account(user=request.user, code="account.signed-out")
    logout(request)
    return redirect("pages:sign-in")


@require_GET
def show_home(request: HttpRequest) -> HttpResponse:
    """The reader's first workspace, an archived one only where there is no other; somebody in none is told so."""
    if not request.user.is_authenticated:
        return redirect("pages:sign-in")
    memberships = recall_memberships(request.user)
    if not memberships:
        return render(request, "sign_in/no_workspace.html", status=200)
    first = next((each for each in memberships if each.workspace.archived_at is None), memberships[0])
    return redirect("pages:overview", first.workspace.slug)


def _choose_next(request: HttpRequest) -> str:
    """The path that was wanted, if it is one of ours."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=False)
    return wanted if is_ours else resolve_url("pages:home")


def _refuse_haste(request: HttpRequest, wait: int) -> HttpResponse:
    response = render(request, "429.html", {"wait_s": wait}, status=429)
    response["Retry-After"] = str(wait)
    return response


def _answer_form(request: HttpRequest, form: SignInForm, wanted: str, *, status: int = 200) -> HttpResponse:
    context = {"form": form, "next": wanted, "provider": settings.OIDC_NAME if settings.SOCIALACCOUNT_PROVIDERS else ""}
    return render(request, "sign_in/sign_in.html", context, status=status)


_ENDED: Final = (
    "This invitation has ended: it was accepted or withdrawn, a newer link replaced it, or it is older than a week."
    " Ask an owner of the workspace for a new one."
)


@never_cache
@sensitive_post_parameters("password", "code")
@require_http_methods(["GET", "HEAD", "POST"])
@hash_in_turn
def follow_invitation(request: HttpRequest) -> HttpResponse:
    """Show what is offered to whoever has the code; the button accepts it."""
    token = read_code(request)
    invitation = find_invitation(token=token)
    if invitation is None:
        return ask_for_code(request, "Join a workspace", _ENDED if token else "")
    if "confirm" not in request.POST:
        is_taken = User.objects.filter(username=invitation.name).exists()
        form = InvitedForm(initial={"name": "" if is_taken else invitation.name})
        return _answer_invited(request, invitation, token, form)
    if isinstance(request.user, User):
        return _join(request, invitation, token, request.user)
    form = InvitedForm(request.POST)
    membership = form.hand_to(lambda: accept_as_new(token=token, **form.cleaned_data))
    if form.errors:
        return _answer_invited(request, invitation, token, form, status=422)
    if membership is None:
        return ask_for_code(request, "Join a workspace", _ENDED)
    begin_session(request, membership.user, by="an invitation")
    return _welcome(request, membership)


def _join(request: HttpRequest, invitation: Invitation, token: str, user: User) -> HttpResponse:
    try:
        membership = accept_invitation(token=token, user=user)
    except ValidationError as error:
        return _answer_invited(request, invitation, token, problem=". ".join(error.messages), status=422)
    if membership is None:
        return ask_for_code(request, "Join a workspace", _ENDED)
    return _welcome(request, membership)


def _welcome(request: HttpRequest, membership: Membership) -> HttpResponse:
    flashes.success(request, f"You are {membership.get_role_display().lower()} of {membership.workspace} now.")
    return redirect("pages:overview", membership.workspace.slug)


def _answer_invited(
    request: HttpRequest,
    invitation: Invitation,
    token: str,
    form: InvitedForm | None = None,
    *,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    offered = {
        "name": invitation.name,
        "role_name": invitation.get_role_display(),
        "workspace_name": invitation.workspace.name,
    }
    context: dict[str, Any] = {"invitation": offered, "token": token, "form": form, "problem": problem}
    return render(request, "sign_in/invitation.html", context, status=status)


# As long as a password that was asked for again.
PROOF_LASTS: Final = timedelta(minutes=5)


@sensitive_post_parameters("old_password", "new_password1", "new_password2")
@within_workspace("GET", "HEAD", "POST")
def show_account(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The forms; each is sent alone, and `form` names which."""
    if request.POST.get("form") != "sessions":
        return _answer_account(request, membership)
    ask = reauthentication_required(app="allauth.mfa", enabled=_can_prove)
    answer: HttpResponse = ask(_end_sessions)(request, membership)
    return answer


@hash_in_turn
def _answer_account(request: HttpRequest, membership: Membership) -> HttpResponse:
    user = membership.user
    sent = request.POST.get("form") if request.method == "POST" else None
    zone = ZoneForm(request.POST if sent == "zone" else None, initial={"time_zone": user.time_zone})
    came_by_link = request.session.get(CAME_BY_LINK) or request.session.get(CAME_BY_BREAK_GLASS)
    asks_for_old = user.has_usable_password() and not came_by_link
    # A password would let them in after the provider no longer does.
    is_of_provider = SocialAccount.objects.filter(user=user).exists()
    if sent == "password" and is_of_provider:
        raise PermissionDenied
    password = PasswordForm(user, request.POST if sent == "password" else None, asks_for_old=asks_for_old)
    if sent == "zone" and zone.is_valid():
        choose_time_zone(user=user, time_zone=zone.cleaned_data["time_zone"])
        flashes.success(request, f"Times are shown in {zone.cleaned_data['time_zone']} from now on.")
        return redirect("pages:account", membership.workspace.slug)
    if sent == "password" and password.is_valid():
        with transaction.atomic():
            password.save()
            note_account(user=user, code="account.password-set")
            end_sessions(user=user, but=request.session.session_key)
        # Other sessions of this person end; this one, which proved to be theirs, goes on.
        update_session_auth_hash(request, user)
        request.session.pop(CAME_BY_LINK, None)
        flashes.success(request, "The new password is in force. Every other session of yours has ended.")
        return redirect("pages:account", membership.workspace.slug)
    context = {
        "zone_form": zone,
        "password_form": password,
        "is_of_provider": is_of_provider,
        "has_password": user.has_usable_password() or is_of_provider,
        "has_second_factor": has_second_factor(user),
        "sessions": [
            {
                "row": session,
                "program": name_program(session.program),
                "is_own": session.session_key == request.session.session_key,
            }
            for session in list_sessions(user=user)
        ],
    }
    status = 422 if request.method == "POST" else 200
    return render_page(request, membership, "account/account.html", context, section="account", status=status)


def _can_prove(request: HttpRequest) -> bool:
    user = request.user
    return isinstance(user, User) and (user.has_usable_password() or has_second_factor(user))


def _end_sessions(request: HttpRequest, membership: Membership) -> HttpResponse:
    """End the session that `session` names, or all others where none is named.

    Somebody with a password or a second factor is asked for it; anybody else proves who they are by signing in anew.
    """
    own = membership.user.sessions.filter(session_key=request.session.session_key)
    if not _can_prove(request) and not own.filter(started_at__gt=timezone.now() - PROOF_LASTS).exists():
        flashes.error(request, "Sign out and in again first: only a new session ends others.")
        return redirect("pages:account", membership.workspace.slug)
    session_id = or_404(parse_id(request.POST["session"])) if request.POST.get("session") else None
    count = end_sessions(user=membership.user, but=request.session.session_key, session_id=session_id)
    if count:
        flashes.success(request, "1 session has ended." if count == 1 else f"{count:,} sessions have ended.")
    else:
        flashes.info(request, "No other session was open.")
    return redirect("pages:account", membership.workspace.slug)


@require_http_methods(["GET", "HEAD", "POST"])
def show_recovery_codes(request: HttpRequest) -> HttpResponse:
    """How many there are; the button makes new ones, which are shown this once, on the page that follows."""
    user = request.user
    if not isinstance(user, User) or not has_second_factor(user):
        return redirect("mfa_index")
    if request.method == "POST":
        return show_once(request, request.path, codes=make_recovery_codes(user))
    context = {"codes": [], "count": count_recovery_codes(user), **take_shown(request)}
    return render(request, "mfa/recovery_codes.html", context)
