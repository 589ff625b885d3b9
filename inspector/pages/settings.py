"""Settings of a workspace: API keys, members and channels; and what owners do: invite, give another role, deactivate
and remove members, rename, archive and restore the workspace, make another.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django import forms
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

from .shell import (
    PLAIN,
    PageForm,
    attempt,
    refuse,
    render_page,
    require_owner,
    show_once,
    take_shown,
    within_workspace,
)
from .shown.told import link_search


class MemberForm(PageForm):
    """Somebody to invite."""

    name = forms.CharField(
        max_length=150,
        label="Name",
        widget=forms.TextInput(attrs=PLAIN),
        help_text="For this list: letters, digits and @ . + - _ only. They choose their user name themselves.",
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.AUDITOR)


class RenameForm(PageForm):
    """Another name for the workspace."""

    name = forms.CharField(
        max_length=120,
        label="Name",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="Its address stays the same.",
    )


class WorkspaceForm(PageForm):
    """A new workspace."""

    name = forms.CharField(
        max_length=120,
        label="Name",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="You own it. It shares no member, key or message with this one.",
    )
    slug = forms.SlugField(
        max_length=64,
        label="Address",
        widget=forms.TextInput(attrs=PLAIN),
        help_text="A word for its addresses, such as night-shift: letters, digits, - and _. It cannot be changed.",
    )


class RoleForm(PageForm):
    """Another role for a member."""

    role = forms.ChoiceField(choices=Role.choices)


LIFETIMES = {"": None, "30": timedelta(days=30), "90": timedelta(days=90), "365": timedelta(days=365)}


class KeyForm(PageForm):
    """A new API key."""

    name = forms.CharField(max_length=120, help_text="The program that will use it.")
    scopes = forms.MultipleChoiceField(
        choices=ApiKey.Scope.choices, initial=[ApiKey.Scope.INGEST], widget=forms.CheckboxSelectMultiple
    )
    agents = forms.CharField(
        required=False,
        max_length=2000,
        label="Agent names",
        help_text="The names of its agents, separated by commas. A message under another name is a finding.",
    )
    channel = forms.ChoiceField(required=False, help_text="A key bound to a channel sends to no other.")
    expires_in = forms.ChoiceField(
        required=False,
        label="Expires",
        choices=[("", "never"), ("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year")],
    )

    def __init__(self, *args: Any, channels: list[Channel], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._channels = {channel.name: channel for channel in channels}
        self.offer("channel", [("", "any channel"), *((name, name) for name in self._channels)])

    def read(self) -> dict[str, Any]:
        """What `create_api_key` takes, of a valid form."""
        said = self.cleaned_data
        lifetime = LIFETIMES[said["expires_in"]]
        return {
            "name": said["name"],
            "scopes": said["scopes"],
            "agents": said["agents"].split(","),
            "channel": self._channels.get(said["channel"]),
            "expires_at": timezone.now() + lifetime if lifetime else None,
        }


# So many channels are listed, by name.
MAX_CHANNELS: Final = 100


@within_workspace("GET", "HEAD", "POST")
def show_settings(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Keys and members; an owner makes a key here and sees its token this once, on the page that follows."""
    if request.method != "POST":
        return render_settings(request, membership, **take_shown(request))
    require_owner(membership)
    form = _make_form(membership, request.POST)
    made = form.hand_to(
        lambda: create_api_key(workspace=membership.workspace, created_by=membership.user, **form.read())
    )
    if made is None:
        return render_settings(request, membership, key_form=form, status=422)
    return show_once(request, request.path, new_token=made[1])


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
    said = f"The key {key.name} is yours now, and acts in your name."
    attempt(request, lambda: take_over_api_key(key=key, owner=membership), said)
    return redirect("pages:settings", membership.workspace.slug)


def render_settings(request: HttpRequest, membership: Membership, *, status: int = 200, **given: Any) -> HttpResponse:
    """The page; `given` are its forms as they were filled in, and what is shown this once: `new_token`, or the
    `invitation`."""
    workspace = membership.workspace
    channels = list_channels(workspace=workspace)[: MAX_CHANNELS + 1]
    context = {
        "keys": [_describe_key(key, membership) for key in list_api_keys(workspace=workspace)],
        "members": list(list_members(workspace=workspace)),
        "invitations": list(list_invitations(workspace=workspace)) if membership.is_owner else [],
        "channels": [_describe_channel(channel, workspace.slug) for channel in channels[:MAX_CHANNELS]],
        "has_more_channels": len(channels) > MAX_CHANNELS,
        "rename_form": RenameForm(prefix="rename", initial={"name": workspace.name}),
        "archived": [
            each.workspace
            for each in recall_memberships(request.user)
            if each.workspace.archived_at is not None and each.workspace_id != workspace.pk
        ],
        "roles": Role.choices,
    }
    if membership.is_owner:
        context |= {"member_form": MemberForm(prefix="member"), "workspace_form": WorkspaceForm(prefix="workspace")}
        context |= {} if "key_form" in given else {"key_form": _make_form(membership)}
    context |= given
    return render_page(request, membership, "settings/settings.html", context, section="settings", status=status)


def _describe_channel(channel: Channel, slug: str) -> dict[str, Any]:
    query = write_term("channel", (channel.name,)) if can_be_asked(channel.name) else ""
    return {
        "row": channel,
        "is_default": channel.name == Channel.DEFAULT,
        "url": query and link_search(slug, query),
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


@within_workspace("GET", "HEAD", "POST", needs="owner")
def invite(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Offer somebody a role; the link to accept it is shown this once, on the page that follows."""
    if request.method != "POST":
        # The address stays where a form was refused.
        return redirect("pages:settings", membership.workspace.slug)
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
        return redirect("pages:settings", membership.workspace.slug)
    try:
        renewed, token = invite_member(workspace=membership.workspace, name=name, role=invitation.role)
    except ValidationError as error:
        refuse(request, error)
        return redirect("pages:settings", membership.workspace.slug)
    return _show_invitation(request, membership, renewed, token)


@within_workspace("POST", needs="owner")
def switch_access(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Deactivate a person, or let them in again."""
    member = _find_member(membership, membership_id)
    name, is_active = member.user.get_username(), not member.user.is_active

    def switch() -> None:
        check_ownership(owner=membership, user=member.user)
        set_active(user=member.user, is_active=is_active)

    attempt(request, switch, f"{name} can sign in again." if is_active else f"{name} is deactivated and signed out.")
    return redirect("pages:settings", membership.workspace.slug)


@within_workspace("POST", needs="owner")
def change_role(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Give a member another role."""
    member = _find_member(membership, membership_id)
    form = RoleForm(request.POST)

    def change() -> Membership:
        if not form.is_valid():
            raise ValidationError("Choose one of the roles.")
        return add_member(workspace=membership.workspace, user=member.user, role=form.cleaned_data["role"])

    attempt(request, change, lambda made: f"{made.user} is {made.get_role_display().lower()} from now on.")
    return redirect("pages:settings", membership.workspace.slug)


@within_workspace("POST", needs="owner")
def take_out(request: HttpRequest, membership: Membership, membership_id: int) -> HttpResponse:
    """Take somebody out; what they did stays under their name."""
    member = _find_member(membership, membership_id)
    name = member.user.get_username()
    said = f"{name} is no member any more. Their verdicts stay; the API keys they made are revoked."
    is_refused = attempt(request, lambda: remove_member(membership=member) or True, said) is None
    if member.user_id == membership.user_id and not is_refused:
        return redirect("pages:home")
    return redirect("pages:settings", membership.workspace.slug)


def _find_member(membership: Membership, wanted: int) -> Membership:
    return or_404(list_members(workspace=membership.workspace).filter(pk=wanted).first())


def _show_invitation(request: HttpRequest, reader: Membership, invited: Invitation, token: str) -> HttpResponse:
    url = request.build_absolute_uri(f"{reverse('pages:invitation')}#{token}")
    return show_once(
        request,
        reverse("pages:settings", args=[reader.workspace.slug]),
        invitation={"name": invited.name, "url": url},
    )


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
        attempt(request, lambda: switch(workspace=workspace, by=membership), said, refusal="Nothing was done: ")
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
