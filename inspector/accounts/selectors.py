"""Reads of accounts: who a key or a session is, and what they may see."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet

from inspector.database import Written

from .models import ApiKey, Channel, Invitation, Membership, User, Workspace

# So many channels are offered where one is chosen; an address may name any.
MAX_NAMED: Final = 200
# Each message that is posted asks for both.
_FIND_KEY: Final = """
SELECT {apikey}, {workspace}, {channel}, {user} FROM accounts_apikey apikey
  JOIN accounts_workspace workspace ON workspace.id = apikey.workspace_id
  LEFT JOIN accounts_channel channel ON channel.id = apikey.channel_id
  LEFT JOIN accounts_user "user" ON "user".id = apikey.created_by_id WHERE apikey.prefix = %s
"""
_KEY: Final = Written(_FIND_KEY, ApiKey, Workspace, Channel, User)
_FIND_CHANNEL: Final = "SELECT {channel} FROM accounts_channel channel WHERE workspace_id = %s AND name = %s"
_CHANNEL: Final = Written(_FIND_CHANNEL, Channel)


def find_membership(*, user: User, slug: str) -> Membership | None:
    """The person's membership in the workspace of that slug, or None: a stranger learns nothing."""
    return (
        Membership.objects.select_related("workspace", "user")
        .filter(user_id=user.pk, workspace__slug=slug, user__is_active=True)
        .first()
    )


def list_memberships(*, user_id: int) -> QuerySet[Membership]:
    """The memberships of a person, oldest first, with their workspaces and the first `channel_names` of each."""
    channels = Channel.objects.filter(workspace=OuterRef("workspace")).order_by("name").values("name")
    rows = Membership.objects.select_related("workspace", "user").filter(user_id=user_id)
    return rows.annotate(channel_names=ArraySubquery(channels[:MAX_NAMED])).order_by("created_at")


def list_members(*, workspace: Workspace) -> QuerySet[Membership]:
    """The members of a workspace, by name."""
    return Membership.objects.select_related("user").filter(workspace=workspace).order_by("user__username")


def find_member(*, workspace: Workspace, name: str) -> Membership | None:
    """The member of a workspace with that user name, or None."""
    # PostgreSQL holds no NUL, not even in a question.
    return None if "\x00" in name else list_members(workspace=workspace).filter(user__username=name).first()


def list_invitations(*, workspace: Workspace) -> QuerySet[Invitation]:
    """The open and the expired invitations of a workspace, by name."""
    return Invitation.objects.filter(workspace=workspace).order_by("name")


def find_api_key(*, token: str) -> ApiKey | None:
    """The usable key of this token, or None. The hashes are compared in constant time."""
    parts = token.split("_")
    if len(parts) != 3 or parts[0] != "aci" or not (parts[1] + parts[2]).isalnum() or not token.isascii():
        return None
    found = _KEY.find([parts[1]])
    if not found:
        return None
    key: ApiKey = found[0]
    _, key.workspace, key.channel, key.created_by = found
    digest = hashlib.sha256(token.encode()).digest()
    if not hmac.compare_digest(bytes(key.digest), digest) or not key.is_usable:
        return None
    return key


def list_api_keys(*, workspace: Workspace) -> QuerySet[ApiKey]:
    """The keys of a workspace, newest first, revoked ones included."""
    return ApiKey.objects.select_related("channel", "created_by").filter(workspace=workspace).order_by("-created_at")


def list_channels(*, workspace: Workspace) -> QuerySet[Channel]:
    """The channels of a workspace, by name."""
    return Channel.objects.filter(workspace=workspace).order_by("name")


def find_channel(*, workspace: Workspace, name: str) -> Channel | None:
    """The channel of that name, or None."""
    # PostgreSQL holds no NUL, not even in a question.
    found = [] if "\x00" in name else _CHANNEL.find([workspace.pk, name])
    return found[0] if found else None


def count_channels(*, workspace: Workspace) -> int:
    """How many channels a workspace has."""
    return Channel.objects.filter(workspace=workspace).count()
