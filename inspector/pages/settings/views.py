"""Settings of a workspace: API keys, members and channels. The acts of owners are in `members` and `workspaces`."""

from __future__ import annotations

import uuid
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import ApiKey, Channel, Membership, Role, Workspace
from inspector.accounts.selectors import list_api_keys, list_channels, list_invitations, list_members
from inspector.accounts.services import create_api_key, revoke_api_key, take_over_api_key
from inspector.accounts.sessions import recall_memberships
from inspector.lookups import or_404
from inspector.search.parts import can_be_asked, write_term

from ..forms import KeyForm, MemberForm, RenameForm, WorkspaceForm
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
