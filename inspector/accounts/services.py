"""Writes of accounts: workspaces, members, channels, keys and sign-in links. Each is one transaction."""

from __future__ import annotations

import base64
import hashlib
import secrets
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import available_timezones

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone
from django.utils.encoding import force_bytes

from inspector.tokens import hide_tokens
from inspector.trail.acting import Acting
from inspector.trail.row_security import across
from inspector.trail.services import Thing, record_deed

from .models import ApiKey, ApiKeyReads, Channel, Membership, Role, SignInLink, User, Workspace

# Of hours that are over, so many counts are recorded in one transaction; the others a minute later.
MAX_READS_AT_ONCE: Final = 1_000


def digest_token(token: str) -> bytes:
    """What is stored of a token."""
    # A token has 256 random bits: a plain hash of it cannot be searched, unlike one of a password.
    return hashlib.sha256(token.encode()).digest()


def make_cipher(purpose: bytes) -> MultiFernet:
    """What seals for a purpose with a key made from `SECRET_KEY`, and opens what an earlier one sealed."""
    given = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    keys = (HKDF(SHA256(), 32, salt=None, info=purpose).derive(force_bytes(each)) for each in given)
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])


@across()
@transaction.atomic
def create_workspace(*, slug: str, name: str, owner: User | None = None) -> Workspace:
    """A new workspace with its default channel and, if given, its first owner.

    Raises:
        ValidationError: for a slug that is taken or is none.
    """
    workspace = Workspace(slug=slug, name=name)
    workspace.full_clean()
    workspace.save()
    Channel.objects.create(workspace=workspace, name=Channel.DEFAULT)
    record_deed("workspace.made", workspace_id=workspace.pk, on=Thing("workspace", workspace.pk, name))
    if owner is not None:
        add_member(workspace=workspace, user=owner, role=Role.OWNER)
    return workspace


@transaction.atomic
def ensure_first_workspace() -> tuple[Workspace, User]:
    """The oldest workspace and its first owner, made when the installation is empty: `make run` calls this."""
    workspace = Workspace.objects.order_by("created_at").first()
    if workspace is None:
        owner = User.objects.filter(username="owner").first() or User(username="owner")
        owner.set_unusable_password()
        owner.save()
        return create_workspace(slug="default", name="Default workspace", owner=owner), owner
    membership = workspace.memberships.filter(role=Role.OWNER).select_related("user").order_by("created_at").first()
    if membership is None:
        raise ValidationError(f"the workspace {workspace.slug} has no owner")
    return workspace, membership.user


@transaction.atomic
def add_member(*, workspace: Workspace, user: User, role: str) -> Membership:
    """Give a person a role in a workspace, or change the role they have.

    Raises:
        ValidationError: for a role that does not exist, or if the last owner would lose that role.
    """
    if role not in Role.values:
        raise ValidationError(f"there is no role {role}")
    held = Membership.objects.select_for_update().filter(workspace=workspace, user=user).first()
    if held is None:
        made = Membership.objects.create(workspace=workspace, user=user, role=role)
        record_deed("member.added", workspace_id=workspace.pk, on=_name_member(made), details={"role": role})
        return made
    if held.is_owner and role != Role.OWNER:
        _keep_an_owner(held)
    before, held.role = held.role, role
    held.save(update_fields=["role"])
    record_deed(
        "member.role-changed", workspace_id=workspace.pk, on=_name_member(held), details={"from": before, "to": role}
    )
    return held


@transaction.atomic
def remove_member(*, membership: Membership) -> None:
    """Take a person out of a workspace. The API keys they made there are revoked with it, but for those that an owner
    has taken over.

    Raises:
        ValidationError: for the last owner.
    """
    if membership.is_owner:
        _keep_an_owner(membership)
    for key in ApiKey.objects.filter(workspace=membership.workspace, created_by=membership.user, revoked_at=None):
        revoke_api_key(key=key)
    # Somebody who takes themselves out is still named as who they were.
    named, role = _name_member(membership), membership.role
    membership.delete()
    record_deed("member.removed", workspace_id=membership.workspace_id, on=named, details={"role": role})


def _name_member(membership: Membership) -> Thing:
    return Thing("member", membership.user_id, membership.user.get_username())


def _keep_an_owner(leaving: Membership) -> None:
    owners = Membership.objects.select_for_update().filter(
        workspace=leaving.workspace, role=Role.OWNER, user__is_active=True
    )
    if not owners.exclude(pk=leaving.pk).exists():
        raise ValidationError("a workspace keeps at least one owner")


def check_channel_name(name: str) -> None:
    """Refuse what no channel can be called.

    Raises:
        ValidationError: for a name that is empty, over 64 characters, holds control characters or a secret.
    """
    check_printed_name(name, of="a channel", most=64)


def check_printed_name(name: str, *, of: str, most: int) -> None:
    """Refuse what cannot be called so by everybody who sees it.

    Raises:
        ValidationError: for a name that is empty or too long, holds control characters or a secret.
    """
    if not name or len(name) > most or not name.isprintable() or name != name.strip():
        raise ValidationError(f"{of}'s name has 1 to {most} printable characters")
    if hide_tokens(name) != name:
        raise ValidationError(f"{of}'s name is seen by everybody, and this looks like a secret: choose another")


@transaction.atomic
def ensure_channel(*, workspace: Workspace, name: str) -> Channel:
    """The channel of that name, made if it does not exist.

    Raises:
        ValidationError: for a name that no channel can have.
    """
    check_channel_name(name)
    channel, is_new = Channel.objects.get_or_create(workspace=workspace, name=name)
    if is_new:
        record_deed("channel.made", workspace_id=workspace.pk, on=Thing("channel", channel.pk, name))
    return channel


@transaction.atomic
def create_api_key(
    *,
    workspace: Workspace,
    name: str,
    scopes: Sequence[str],
    agents: Sequence[str] = (),
    channel: Channel | None = None,
    expires_at: datetime | None = None,
    created_by: User | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its token, which is never to be seen again.

    With `agents` it is that of a program that speaks under these names: what it sends under another is taken in all
    the same, and is a finding.

    Raises:
        ValidationError: for an empty name, no scope, an unknown scope, or another workspace's channel.
    """
    if not name.strip():
        raise ValidationError("a key needs a name")
    if not scopes or set(scopes) - set(ApiKey.Scope.values):
        raise ValidationError(f"scopes are {', '.join(ApiKey.Scope.values)}")
    if channel is not None and channel.workspace_id != workspace.pk:
        raise ValidationError("the channel belongs to another workspace")
    prefix = secrets.token_hex(6)
    token = f"aci_{prefix}_{secrets.token_hex(32)}"
    key = ApiKey.objects.create(
        workspace=workspace,
        name=name.strip()[:120],
        prefix=prefix,
        digest=digest_token(token),
        scopes=sorted(set(scopes)),
        agents=sorted({hide_tokens(each.strip()) for each in agents if each.strip()}),
        channel=channel,
        expires_at=expires_at,
        created_by=created_by,
    )
    record_deed(
        "api-key.made",
        workspace_id=workspace.pk,
        on=_name_key(key),
        details={
            "scopes": key.scopes,
            "agents": key.agents,
            "expires_at": expires_at.isoformat() if expires_at else None,
        },
    )
    return key, token


def _name_key(key: ApiKey) -> Thing:
    return Thing("API key", key.pk, str(key))


@transaction.atomic
def revoke_api_key(*, key: ApiKey) -> None:
    """Let the key be refused from now on; revoking twice keeps the first time."""
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        record_deed("api-key.revoked", workspace_id=key.workspace_id, on=_name_key(key))


@transaction.atomic
def take_over_api_key(*, key: ApiKey, owner: Membership) -> None:
    """Let an owner answer for a key that somebody else made: it goes on when they leave, and acts in the owner's name.

    Raises:
        ValidationError: for a key that is refused already, or by anybody but an owner of its workspace.
    """
    if owner.workspace_id != key.workspace_id or not owner.is_owner or key.revoked_at is not None:
        raise ValidationError("only owners take over a key, while it is not revoked")
    before = key.created_by.get_username() if key.created_by else ""
    key.created_by = owner.user
    key.save(update_fields=["created_by"])
    record_deed("api-key.taken-over", workspace_id=key.workspace_id, on=_name_key(key), details={"from": before})


def note_api_key_use(*, key: ApiKey) -> None:
    """Remember when the key was used, at most once a minute: a busy key must not write at each request."""
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > timedelta(minutes=1):
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def add_reads(*, key_id: uuid.UUID, what: str) -> None:
    """Count an answer that shows a key something, before it is given: the audit log has an entry for each key, hour
    and kind of thing, and not one a request. Of a key that is gone nothing is kept.

    Args:
        key_id: whose.
        what: it reads, in a word or two.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO accounts_apikeyreads AS held (key_id, what, hour, count)
            SELECT id, %s, date_trunc('hour', clock_timestamp()), 1
              FROM accounts_apikey WHERE id = %s FOR KEY SHARE
            ON CONFLICT (key_id, what, hour) DO UPDATE SET count = held.count + 1
            """,
            [what, key_id],
        )


@transaction.atomic
def record_reads() -> int:
    """Record what keys read in hours that are over, an action for each key, hour and kind of thing; how many."""
    over = ApiKeyReads.objects.select_for_update(of=("self",)).filter(hour__lt=timezone.now() - timedelta(minutes=61))
    # Each workspace's trail is locked until the transaction ends: in one order for all.
    rows = list(over.select_related("key").order_by("key__workspace_id", "hour", "key_id", "what")[:MAX_READS_AT_ONCE])
    for row in rows:
        record_deed(
            "api-key.read",
            workspace_id=row.key.workspace_id,
            by=row.key,
            details={"what": row.what, "hour": row.hour.isoformat(), "answers": row.count},
        )
    ApiKeyReads.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)


def choose_time_zone(*, user: User, time_zone: str) -> None:
    """Show this person times in a zone of the IANA database.

    Raises:
        ValidationError: for a zone that does not exist.
    """
    if time_zone not in available_timezones():
        raise ValidationError(f"there is no time zone {time_zone}")
    user.time_zone = time_zone
    user.save(update_fields=["time_zone"])


@across()
@transaction.atomic
def note_account(*, user: User, code: str, by: Acting | None = None, details: Mapping[str, str] | None = None) -> None:
    """Record what happened to a person's account in the trail of each workspace that they belong to.

    Args:
        user: whose account.
        code: of `inspector.trail.models.DEEDS`, of those that begin with `account.`.
        by: who did it, where it was not themselves.
        details: a few words on how.
    """
    # In one order for all, for each workspace's trail is locked until the transaction ends.
    for membership in user.memberships.select_related("user").order_by("workspace_id"):
        record_deed(
            code,
            workspace_id=membership.workspace_id,
            by=by or membership,
            on=_name_member(membership) if by else None,
            details=details,
        )


@across()
@transaction.atomic
def note_failed_sign_in(*, name: str) -> None:
    """Record that somebody tried to sign in under a name and could not, in the trail of each workspace of that member.

    A name that nobody here has is recorded in the oldest workspace, whose owners run the installation.
    """
    workspaces = Workspace.objects.filter(memberships__user__username=name) if name.isprintable() else None
    ids = list(workspaces.order_by("pk").values_list("pk", flat=True)) if workspaces is not None else []
    ids = ids or list(Workspace.objects.order_by("created_at").values_list("pk", flat=True)[:1])
    for workspace_id in ids:
        record_deed("account.refused", workspace_id=workspace_id, on=Thing("account", "", name))


@transaction.atomic
def create_sign_in_link(*, user: User, lasts: timedelta = timedelta(hours=12), is_break_glass: bool = False) -> str:
    """A token that signs this person in once; older unused ones of theirs stop working.

    Args:
        user: whom.
        lasts: how long it can be used.
        is_break_glass: it asks for no second factor, and enters workspaces that require one.

    Raises:
        ValidationError: for a break-glass link of somebody who owns no workspace.
    """
    if is_break_glass and not user.memberships.filter(role=Role.OWNER).exists():
        raise ValidationError(f"{user} owns no workspace: a break-glass link is for owners only")
    SignInLink.objects.filter(user=user).delete()
    token = secrets.token_urlsafe(32)
    SignInLink.objects.create(
        user=user, digest=digest_token(token), expires_at=timezone.now() + lasts, is_break_glass=is_break_glass
    )
    return token


def find_link_owner(*, token: str) -> User | None:
    """Whom a sign-in link would sign in, or None where it signs in nobody; it is not spent by asking."""
    link = SignInLink.objects.select_related("user").filter(digest=digest_token(token)).first()
    return link.user if link is not None and link.user.is_active and link.expires_at > timezone.now() else None


@transaction.atomic
def use_sign_in_link(*, token: str) -> SignInLink | None:
    """The link with the person it signs in, or None if it is unknown, used or expired. The link is spent."""
    link = SignInLink.objects.select_for_update().select_related("user").filter(digest=digest_token(token)).first()
    if link is None:
        return None
    link.delete()
    return link if link.user.is_active and link.expires_at > timezone.now() else None


@transaction.atomic
def end_sessions(*, user: User, but: str | None, session_id: uuid.UUID | None = None) -> int:
    """End one session of a person, or all of them; how many that were. Their next request is a stranger's.

    Args:
        user: whose; of nobody else any session is found.
        but: the key of the session that goes on.
        session_id: of the one to end; None for all.
    """
    ended = user.sessions.exclude(session_key=but)
    if session_id is not None:
        ended = ended.filter(public_id=session_id)
    count: int = ended.delete()[0]
    if count:
        note_account(user=user, code="account.sessions-ended", details={"sessions": str(count)})
    return count


@across()
@transaction.atomic
def set_active(*, user: User, is_active: bool) -> None:
    """Deactivate a person everywhere, or let them in again: sessions, links and API keys of theirs are refused
    meanwhile, and what they did stays under their name.

    Raises:
        ValidationError: where a workspace would be left without an owner who can sign in.
    """
    if not is_active:
        for membership in user.memberships.filter(role=Role.OWNER).select_related("workspace"):
            _keep_an_owner(membership)
        SignInLink.objects.filter(user=user).delete()
        user.sessions.all().delete()
    user.is_active = is_active
    user.save(update_fields=["is_active"])
    code = "member.reactivated" if is_active else "member.deactivated"
    for membership in user.memberships.select_related("user").order_by("workspace_id"):
        record_deed(code, workspace_id=membership.workspace_id, on=_name_member(membership))


def check_ownership(*, owner: Membership, user: User) -> None:
    """Refuse an owner who would close the account of somebody that belongs to a workspace of others too.

    Raises:
        ValidationError: with what can be done instead.
    """
    theirs = set(user.memberships.values_list("workspace_id", flat=True))
    own = set(owner.user.memberships.filter(role=Role.OWNER).values_list("workspace_id", flat=True))
    if not (owner.is_owner and theirs <= own):
        raise ValidationError(f"{user} belongs to another workspace too: remove them from this one instead")
