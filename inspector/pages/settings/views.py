"""Settings of a workspace: API keys, members and channels; and what owners do: invite, give another role, deactivate
and remove members, rename, archive and restore the workspace, make another.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import ApiKey, Channel, Invitation, Membership, Role, Workspace
from inspector.accounts.second_factors import has_second_factor
from inspector.accounts.selectors import list_api_keys, list_channels, list_invitations, list_members
from inspector.accounts.services import (
    add_member,
    check_ownership,
    create_api_key,
    remove_member,
    revoke_api_key,
    set_active,
    take_over_api_key,
)
from inspector.accounts.sessions import recall_memberships
from inspector.accounts.workspaces import (
    archive_workspace,
    invite_member,
    make_workspace,
    rename_workspace,
    restore_workspace,
    set_second_factor,
    withdraw_invitation,
)
from inspector.database import or_404
from inspector.keyring.periods import set_indexing, set_sealing
from inspector.keyring.services import set_two_for_keys
from inspector.search.refining import can_be_asked, write_term

from ..forms import KeyForm, MemberForm, RenameForm, RoleForm, WorkspaceForm
from ..shell import render_page, require_owner, within_workspace

# So many channels are listed, by name.
MAX_CHANNELS: Final = 100


@within_workspace("GET", "HEAD", "POST")
def show_settings(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Keys and members; an owner makes a key here and sees its token this once, in the answer itself."""
    if request.method != "POST":
        return render_settings(request, membership)
    require_owner(membership)
    form = _make_form(membership, request.POST)
    made = form.hand_to(
        lambda: create_api_key(workspace=membership.workspace, created_by=membership.user, **form.read())
    )
    if made is None:
        return render_settings(request, membership, key_form=form, status=422)
    return render_settings(request, membership, new_token=made[1], status=201)


def _make_form(membership: Membership, data: Any = None) -> KeyForm:
    return KeyForm(data, channels=list(list_channels(workspace=membership.workspace)))


@within_workspace("POST", needs="owner")
def revoke_key(request: HttpRequest, membership: Membership, key_id: uuid.UUID) -> HttpResponse:
    """Refuse a key from now on."""
    key = or_404(list_api_keys(workspace=membership.workspace).filter(pk=key_id).first())
    revoke_api_key(key=key)
    flashes.success(request, f"The key {key.name} is refused from now on.")
    return redirect("pages:settings", membership.workspace.slug)


@within_workspace("POST", needs="owner")
def take_over_key(request: HttpRequest, membership: Membership, key_id: uuid.UUID) -> HttpResponse:
    """Answer for a key that somebody else made, so that it goes on when they leave."""
    key = or_404(list_api_keys(workspace=membership.workspace).filter(pk=key_id).first())
    try:
        take_over_api_key(key=key, owner=membership)
    except ValidationError as error:
        flashes.error(request, "; ".join(error.messages))
    else:
        flashes.success(request, f"The key {key.name} is yours now, and acts in your name.")
    return redirect("pages:settings", membership.workspace.slug)


def render_settings(
    request: HttpRequest,
    membership: Membership,
    *,
    key_form: KeyForm | None = None,
    member_form: MemberForm | None = None,
    rename_form: RenameForm | None = None,
    workspace_form: WorkspaceForm | None = None,
    new_token: str = "",
    invitation: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page, with the forms as they were filled in, and what is shown this once: a token or an invitation."""
    workspace = membership.workspace
    channels = list_channels(workspace=workspace)[: MAX_CHANNELS + 1]
    context = {
        "keys": [_describe_key(key, membership) for key in list_api_keys(workspace=workspace)],
        "members": list(list_members(workspace=workspace)),
        "invitations": list(list_invitations(workspace=workspace)) if membership.is_owner else [],
        "channels": [_describe_channel(channel, workspace.slug) for channel in channels[:MAX_CHANNELS]],
        "has_more_channels": len(channels) > MAX_CHANNELS,
        "key_form": (key_form or _make_form(membership)) if membership.is_owner else None,
        "member_form": (member_form or MemberForm(prefix="member")) if membership.is_owner else None,
        "rename_form": rename_form or RenameForm(prefix="rename", initial={"name": workspace.name}),
        "workspace_form": (workspace_form or WorkspaceForm(prefix="workspace")) if membership.is_owner else None,
        "archived": [
            each.workspace
            for each in recall_memberships(request.user)
            if each.workspace.archived_at is not None and each.workspace_id != workspace.pk
        ],
        "roles": Role.choices,
        "new_token": new_token,
        "invitation": invitation,
    }
    return render_page(request, membership, "settings/settings.html", context, section="settings", status=status)


def _describe_channel(channel: Channel, slug: str) -> dict[str, Any]:
    query = urlencode({"q": write_term("channel", (channel.name,))})
    return {
        "row": channel,
        "is_default": channel.name == Channel.DEFAULT,
        "url": f"{reverse('pages:search', args=[slug])}?{query}" if can_be_asked(channel.name) else "",
    }


def _describe_key(key: ApiKey, membership: Membership) -> dict[str, Any]:
    scopes = dict(ApiKey.Scope.choices)
    return {
        "row": key,
        "scopes": ", ".join(str(scopes.get(scope, scope)).lower() for scope in key.scopes),
        "state": _name_state(key, membership.workspace),
        "may_revoke": membership.is_owner and key.revoked_at is None,
    }


def _name_state(key: ApiKey, workspace: Workspace) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.created_by is not None and not key.created_by.is_active:
        return "maker deactivated"
    if workspace.archived_at is not None:
        return "workspace archived"
    return "expired" if key.expires_at is not None and key.expires_at <= timezone.now() else "active"


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
def switch_access(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Deactivate a person, or let them in again."""
    member = _find_member(membership, membership_id)
    name, is_active = member.user.get_username(), not member.user.is_active
    try:
        check_ownership(owner=membership, user=member.user)
        set_active(user=member.user, is_active=is_active)
    except ValidationError as error:
        return _refuse(request, membership, error)
    flashes.success(request, f"{name} can sign in again." if is_active else f"{name} is deactivated and signed out.")
    return redirect(_settings_of(membership))


@within_workspace("POST", needs="owner")
def change_role(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Give a member another role."""
    member = _find_member(membership, membership_id)
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
def take_out(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Take somebody out; what they did stays under their name."""
    member = _find_member(membership, membership_id)
    name = member.user.get_username()
    try:
        remove_member(membership=member)
    except ValidationError as error:
        return _refuse(request, membership, error)
    flashes.success(request, f"{name} is no member any more. Their verdicts stay; the API keys they made are revoked.")
    return redirect("pages:home" if member.user_id == membership.user_id else _settings_of(membership))


def _find_member(membership: Membership, wanted: int) -> Membership:
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


_SWITCHES: Final[Mapping[str, tuple[Callable[..., None], str]]] = {
    "archive": (archive_workspace, "The workspace is archived: it takes no messages, and its API keys are refused."),
    "restore": (restore_workspace, "The workspace is restored: it takes messages, and its API keys work again."),
    "require-factor": (
        partial(set_second_factor, is_required=True),
        "Members without a second factor are asked to add one.",
    ),
    "waive-factor": (partial(set_second_factor, is_required=False), "Members need no second factor from now on."),
    "two-for-keys": (
        partial(set_two_for_keys, is_required=True),
        "Keys that are added from now on wait until a second owner releases them.",
    ),
    "one-for-keys": (partial(set_two_for_keys, is_required=False), "Keys open messages as soon as an owner adds them."),
    "seal": (partial(set_sealing, is_sealed=True), "The exact bytes of new records are sealed from now on."),
    "unseal": (partial(set_sealing, is_sealed=False), "Records are not sealed any more; sealed ones stay so."),
    "index": (partial(set_indexing, is_indexed=True), "Words of new sealed records are searched."),
    "leave-out": (partial(set_indexing, is_indexed=False), "No words of new sealed records are indexed or searched."),
}


@within_workspace("POST", needs="owner")
def change_workspace(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Rename the workspace, or archive or restore it, as `action` says."""
    workspace = membership.workspace
    switch, said = _SWITCHES.get(request.POST.get("action", ""), (None, ""))
    if request.POST.get("action") == "require-factor" and not has_second_factor(membership.user):
        flashes.error(request, "Nothing was done: first add a second factor to your own account.")
        return redirect("pages:settings", workspace.slug)
    if switch is not None:
        try:
            switch(workspace=workspace, by=membership)
        except ValidationError as error:
            flashes.error(request, f"Nothing was done: {'; '.join(error.messages)}.")
        else:
            flashes.success(request, said)
        return redirect("pages:settings", workspace.slug)
    form = RenameForm(request.POST, prefix="rename")
    form.hand_to(lambda: rename_workspace(workspace=workspace, name=form.cleaned_data["name"], by=membership))
    if form.errors:
        return render_settings(request, membership, rename_form=form, status=422)
    flashes.success(request, f"The workspace is called {workspace.name} from now on.")
    return redirect("pages:settings", workspace.slug)


@within_workspace("POST", needs="owner")
def make_another(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Make another workspace, which whoever makes it owns."""
    form = WorkspaceForm(request.POST, prefix="workspace")
    made = form.hand_to(lambda: make_workspace(**form.cleaned_data, owner=membership.user, by=membership))
    if made is None:
        return render_settings(request, membership, workspace_form=form, status=422)
    flashes.success(request, f"{made.name} is made, and you own it: invite its members here.")
    return redirect("pages:settings", made.slug)
