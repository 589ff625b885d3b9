"""Following an invitation: somebody signed in joins as who they are, anybody else makes an account."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from inspector.accounts.invitations import accept_as_new, accept_invitation, find_invitation
from inspector.accounts.models import Invitation, Membership, User
from inspector.accounts.signing_in import begin_session

from ..forms import InvitedForm
from .sign_in import ask_for_code, hash_in_turn, read_code

_ENDED: Final = (
    "This invitation has ended: it was accepted, withdrawn, or is older than a week."
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
        return _answer(request, invitation, token, InvitedForm(initial={"name": _suggest_name(invitation)}))
    if isinstance(request.user, User):
        return _join(request, invitation, token, request.user)
    form = InvitedForm(request.POST)
    membership = form.hand_to(lambda: accept_as_new(token=token, **form.cleaned_data))
    if form.errors:
        return _answer(request, invitation, token, form, status=422)
    if membership is None:
        return ask_for_code(request, "Join a workspace", _ENDED)
    begin_session(request, membership.user, by="an invitation")
    return _welcome(request, membership)


def _join(request: HttpRequest, invitation: Invitation, token: str, user: User) -> HttpResponse:
    try:
        membership = accept_invitation(token=token, user=user)
    except ValidationError as error:
        return _answer(request, invitation, token, problem=". ".join(error.messages), status=422)
    if membership is None:
        return ask_for_code(request, "Join a workspace", _ENDED)
    return _welcome(request, membership)


def _suggest_name(invitation: Invitation) -> str:
    return "" if User.objects.filter(username=invitation.name).exists() else invitation.name


def _welcome(request: HttpRequest, membership: Membership) -> HttpResponse:
    flashes.success(request, f"You are {membership.get_role_display().lower()} of {membership.workspace} now.")
    return redirect("pages:overview", membership.workspace.slug)


def _answer(
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
