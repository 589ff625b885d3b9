"""A person's own account: the password they sign in with, their sessions, and the zone in which they read times."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, Final

from allauth.account.decorators import reauthentication_required
from allauth.socialaccount.models import SocialAccount
from django.contrib import messages as flashes
from django.contrib.auth import update_session_auth_hash
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from inspector.accounts.models import Membership, User
from inspector.accounts.second_factors import count_recovery_codes, has_second_factor, make_recovery_codes
from inspector.accounts.services import choose_time_zone, end_sessions, note_account
from inspector.accounts.sessions import CAME_BY_BREAK_GLASS, CAME_BY_LINK, list_sessions, name_program

from ..forms import PasswordForm, ZoneForm
from ..shell import render_page, within_workspace
from .sign_in import hash_in_turn

# As long as a password that was asked for again.
PROOF_LASTS: Final = timedelta(minutes=5)


@sensitive_post_parameters("old_password", "new_password1", "new_password2")
@within_workspace("GET", "HEAD", "POST")
def show_account(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The forms; each is sent alone, and `form` names which."""
    if request.POST.get("form") != "sessions":
        return _answer(request, membership)
    ask = reauthentication_required(app="allauth.mfa", enabled=_can_prove)
    answer: HttpResponse = ask(_end_sessions)(request, membership)
    return answer


@hash_in_turn
def _answer(request: HttpRequest, membership: Membership) -> HttpResponse:
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
        "sessions": _describe_sessions(user, request.session.session_key),
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
    try:
        session_id = uuid.UUID(request.POST["session"]) if request.POST.get("session") else None
    except ValueError as error:
        raise Http404 from error
    count = end_sessions(user=membership.user, but=request.session.session_key, session_id=session_id)
    if count:
        flashes.success(request, "1 session has ended." if count == 1 else f"{count:,} sessions have ended.")
    else:
        flashes.info(request, "No other session was open.")
    return redirect("pages:account", membership.workspace.slug)


def _describe_sessions(user: User, own: str | None) -> list[dict[str, Any]]:
    return [
        {
            "row": session,
            "program": name_program(session.program),
            "is_own": session.session_key == own,
        }
        for session in list_sessions(user=user)
    ]


@require_http_methods(["GET", "HEAD", "POST"])
def show_recovery_codes(request: HttpRequest) -> HttpResponse:
    """How many there are; the button makes new ones, which are shown this once, in the answer itself."""
    user = request.user
    if not isinstance(user, User) or not has_second_factor(user):
        return redirect("mfa_index")
    codes = make_recovery_codes(user) if request.method == "POST" else []
    return render(request, "mfa/recovery_codes.html", {"codes": codes, "count": count_recovery_codes(user)})
