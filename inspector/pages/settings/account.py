"""A person's own account: the password they sign in with, and the zone in which they read times."""

from __future__ import annotations

from django.contrib import messages as flashes
from django.contrib.auth import update_session_auth_hash
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from inspector.accounts.models import Membership
from inspector.accounts.services import choose_time_zone, note_account

from ..forms import PasswordForm, ZoneForm
from ..shell import render_page, within_workspace
from .sign_in import CAME_BY_LINK


@sensitive_post_parameters("old_password", "new_password1", "new_password2")
@require_http_methods(["GET", "HEAD", "POST"])
@within_workspace
def show_account(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Both forms; each is sent alone, and `form` names which."""
    user = membership.user
    sent = request.POST.get("form") if request.method == "POST" else None
    zone = ZoneForm(request.POST if sent == "zone" else None, initial={"time_zone": user.time_zone})
    asks_for_old = user.has_usable_password() and not request.session.get(CAME_BY_LINK)
    password = PasswordForm(user, request.POST if sent == "password" else None, asks_for_old=asks_for_old)
    if sent == "zone" and zone.is_valid():
        choose_time_zone(user=user, time_zone=zone.cleaned_data["time_zone"])
        flashes.success(request, f"Times are shown in {zone.cleaned_data['time_zone']} from now on.")
        return redirect("pages:account", membership.workspace.slug)
    if sent == "password" and password.is_valid():
        with transaction.atomic():
            password.save()
            note_account(user=user, code="account.password-set")
        # Other sessions of this person end; this one, which proved to be theirs, goes on.
        update_session_auth_hash(request, user)
        request.session.pop(CAME_BY_LINK, None)
        flashes.success(request, "The new password is in force. Every other session of yours has ended.")
        return redirect("pages:account", membership.workspace.slug)
    context = {"zone_form": zone, "password_form": password, "has_password": user.has_usable_password()}
    status = 422 if request.method == "POST" else 200
    return render_page(request, membership, "account/account.html", context, section="account", status=status)
