"""What owners do with the members of a workspace: invite, give another role, deactivate, remove."""

from __future__ import annotations

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.invitations import invite_member, withdraw_invitation
from inspector.accounts.models import Invitation, Membership
from inspector.accounts.selectors import list_invitations, list_members
from inspector.accounts.services import add_member, check_ownership, remove_member, set_active
from inspector.lookups import or_404

from ..forms import MemberForm, RoleForm
from ..shell import within_workspace
from .views import render_settings


@within_workspace("POST", needs="owner")
def invite(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Offer somebody a role; the link to accept it is shown this once, in the answer itself."""
    form = MemberForm(request.POST, prefix="member")
    made = form.hand_to(lambda: invite_member(workspace=membership.workspace, **form.cleaned_data), field="name")
    if made is None:
        return render_settings(request, membership, member_form=form, status=422)
    return _show_invitation(request, membership, *made)


@within_workspace("POST", needs="owner")
def act_on_invitation(request: HttpRequest, membership: Membership, invitation_id: int) -> HttpResponse:
    """A new link for somebody who never came, or none any more."""
    invitation = or_404(list_invitations(workspace=membership.workspace).filter(pk=invitation_id).first())
    name = invitation.name
    if request.POST.get("action") == "withdraw":
        withdraw_invitation(invitation=invitation)
        flashes.success(request, f"The invitation of {name} is withdrawn: its link leads nowhere.")
        return redirect(_settings_of(membership))
    try:
        renewed, token = invite_member(workspace=membership.workspace, name=name, role=invitation.role)
    except ValidationError as error:
        return _refuse(request, membership, error)
    return _show_invitation(request, membership, renewed, token)


@within_workspace("POST", needs="owner")
def switch(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Deactivate a person, or let them in again."""
    member = _find(membership, membership_id)
    name, is_active = member.user.get_username(), not member.user.is_active
    try:
        check_ownership(owner=membership, user=member.user)
        set_active(user=member.user, is_active=is_active)
    except ValidationError as error:
        return _refuse(request, membership, error)
    flashes.success(request, f"{name} can sign in again." if is_active else f"{name} is deactivated and signed out.")
    return redirect(_settings_of(membership))


@within_workspace("POST", needs="owner")
def change(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Give a member another role."""
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


@within_workspace("POST", needs="owner")
def remove(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Take somebody out; what they did stays under their name."""
    member = _find(membership, membership_id)
    name = member.user.get_username()
    try:
        remove_member(membership=member)
    except ValidationError as error:
        return _refuse(request, membership, error)
    flashes.success(request, f"{name} is no member any more. Their verdicts stay; the API keys they made are revoked.")
    return redirect("pages:home" if member.user_id == membership.user_id else _settings_of(membership))


def _find(membership: Membership, wanted: int) -> Membership:
    return or_404(list_members(workspace=membership.workspace).filter(pk=wanted).first())


def _settings_of(membership: Membership) -> str:
    return reverse("pages:settings", args=[membership.workspace.slug])


def _refuse(request: HttpRequest, membership: Membership, error: ValidationError) -> HttpResponse:
    said = "; ".join(error.messages)
    flashes.error(request, f"{said[:1].upper()}{said[1:]}{'' if said.endswith('.') else '.'}")
    return redirect(_settings_of(membership))


def _show_invitation(request: HttpRequest, reader: Membership, invited: Invitation, token: str) -> HttpResponse:
    url = request.build_absolute_uri(f"{reverse('pages:invitation')}#{token}")
    return render_settings(request, reader, invitation={"name": invited.name, "url": url}, status=201)
