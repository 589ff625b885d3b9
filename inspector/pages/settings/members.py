"""What owners do with the members of a workspace: invite, give another role, take out."""

from __future__ import annotations

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from inspector.accounts.models import Membership
from inspector.accounts.selectors import list_members
from inspector.accounts.services import add_member, invite_again, invite_member, remove_member

from ..forms import MemberForm, RoleForm
from ..shell import require_owner, within_workspace
from .views import render_settings


@require_POST
@within_workspace
def invite(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Make somebody a member; a person new here gets a link that is shown this once, in the answer itself."""
    require_owner(membership)
    form = MemberForm(request.POST, prefix="member")
    if not form.is_valid():
        return render_settings(request, membership, member_form=form, status=422)
    try:
        invited, token = invite_member(workspace=membership.workspace, **form.cleaned_data)
    except ValidationError as error:
        form.add_error("name", error.messages)
        return render_settings(request, membership, member_form=form, status=422)
    if token is not None:
        return _show_invitation(request, membership, invited, token)
    flashes.success(request, f"{invited.user} is a member now, and signs in as before.")
    return redirect("pages:settings", membership.workspace.slug)


@require_POST
@within_workspace
def invite_anew(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """A new link for somebody who never came."""
    require_owner(membership)
    awaited = _find(membership, membership_id)
    try:
        token = invite_again(membership=awaited)
    except ValidationError as error:
        return _refuse(request, membership, error)
    return _show_invitation(request, membership, awaited, token)


@require_POST
@within_workspace
def change(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Give a member another role."""
    require_owner(membership)
    member = _find(membership, membership_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _refuse(request, membership, ValidationError("Choose one of the roles."))
    try:
        changed = add_member(workspace=membership.workspace, user=member.user, role=form.cleaned_data["role"])
    except ValidationError as error:
        return _refuse(request, membership, error)
    flashes.success(request, f"{changed.user} is {changed.get_role_display().lower()} from now on.")
    return redirect("pages:settings", membership.workspace.slug)


@require_POST
@within_workspace
def remove(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Take somebody out; what they did stays under their name."""
    require_owner(membership)
    member = _find(membership, membership_id)
    name = member.user.get_username()
    try:
        remove_member(membership=member)
    except ValidationError as error:
        return _refuse(request, membership, error)
    flashes.success(request, f"{name} is no member any more. The verdicts they gave stay.")
    return redirect("pages:home" if member.user_id == membership.user_id else _settings_of(membership))


def _find(membership: Membership, wanted: int) -> Membership:
    member = list_members(workspace=membership.workspace).filter(pk=wanted).first()
    if member is None:
        raise Http404
    return member


def _settings_of(membership: Membership) -> str:
    return reverse("pages:settings", args=[membership.workspace.slug])


def _refuse(request: HttpRequest, membership: Membership, error: ValidationError) -> HttpResponse:
    said = "; ".join(error.messages)
    flashes.error(request, f"{said[:1].upper()}{said[1:]}{'' if said.endswith('.') else '.'}")
    return redirect(_settings_of(membership))


def _show_invitation(request: HttpRequest, reader: Membership, invited: Membership, token: str) -> HttpResponse:
    url = request.build_absolute_uri(reverse("pages:sign-in-link", args=[token]))
    invitation = {"name": invited.user.get_username(), "url": url}
    return render_settings(request, reader, invitation=invitation, status=201)
