"""What owners and the operator do with a whole workspace: make another, rename it, archive it and take it back out; and
invitations into one, an offer of a role, by a link, to whoever it is sent to.

Nothing of an archived workspace is deleted: its members read it as before, for its records and verdicts are evidence.

An invitation names nobody who has an account. Whoever has the link and is signed in joins as who they are; anybody else
makes an account, under a name that is free. So nobody comes into a workspace by what another workspace did.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from inspector.characters import make_skeleton
from inspector.trail.acting import act_as
from inspector.trail.services import Thing, record_deed

from .models import Invitation, Membership, Role, User, Workspace
from .services import add_member, check_printed_name, create_workspace, digest_token

ARCHIVED: Final = "This workspace is archived and takes no messages: an owner can restore it on its settings page."
_TAKEN: Final = "this address is taken: choose another"


def check_open(workspace: Workspace) -> None:
    """Refuse messages for an archived workspace.

    Raises:
        ValidationError: where it is archived.
    """
    if workspace.archived_at is not None:
        raise ValidationError(ARCHIVED)


@transaction.atomic
def make_workspace(*, slug: str, name: str, owner: User, by: Membership | None) -> Workspace:
    """A new workspace with its first owner.

    Args:
        slug: its part of every address, the same in upper and lower case for no two workspaces.
        name: as people read it.
        owner: who owns it.
        by: which owner, of any workspace, makes it; None where the operator does.

    Raises:
        PermissionDenied: for somebody who is no owner.
        ValidationError: by the field it is about; by none for somebody who owns as many as a person may.
    """
    if by is not None and not by.is_owner:
        raise PermissionDenied("only owners make workspaces")
    # Of two requests of one person the later one sees what the earlier one made.
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if by is not None:
        most = settings.LIMITS["workspaces"]
        if owner.memberships.filter(role=Role.OWNER).count() >= most:
            raise ValidationError(f"a person owns at most {most:,} workspaces")
    _check_name(name, by=by)
    Workspace(slug=slug, name=name).clean_fields()
    if Workspace.objects.filter(slug__iexact=slug).exists():
        raise ValidationError({"slug": _TAKEN})
    try:
        with transaction.atomic():
            return create_workspace(slug=slug, name=name, owner=owner)
    except IntegrityError as error:
        raise ValidationError({"slug": _TAKEN}) from error


@transaction.atomic
def rename_workspace(*, workspace: Workspace, name: str, by: Membership | None) -> None:
    """Call it something else; its address stays, for links lead there.

    Raises:
        PermissionDenied: for anybody but an owner of it, or the operator, who is None.
        ValidationError: for a name that cannot be one, or looks like that of another workspace of this owner.
    """
    require_owner(workspace, by)
    _check_name(name, by=by, but=workspace)
    before = Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk).name
    if name != before:
        workspace.name = name
        workspace.save(update_fields=["name"])
        _record("workspace.renamed", workspace, {"from": before})


def archive_workspace(*, workspace: Workspace, by: Membership | None) -> None:
    """Take no more messages in, and refuse its API keys.

    Raises:
        PermissionDenied: for anybody but an owner of it, or the operator, who is None.
        ValidationError: where it is archived already.
    """
    _switch(workspace, by, is_archived=True)


def restore_workspace(*, workspace: Workspace, by: Membership | None) -> None:
    """Take it back out of the archive: its API keys work again, but for those that ended meanwhile.

    Raises:
        PermissionDenied: for anybody but an owner of it, or the operator, who is None.
        ValidationError: where it is not archived.
    """
    _switch(workspace, by, is_archived=False)


@transaction.atomic
def set_second_factor(workspace: Workspace, by: Membership | None, *, is_required: bool) -> None:
    """Open its pages only to members whose account has a second factor, or to all of them again.

    Raises:
        PermissionDenied: for anybody but an owner of it, or the operator, who is None.
        ValidationError: where it is so already.
    """
    already = f"the workspace requires {'a second factor already' if is_required else 'none'}"
    code = "workspace.second-factor-required" if is_required else "workspace.second-factor-waived"
    set_choice(workspace, by, "requires_second_factor", is_required, code=code, already=already)


@transaction.atomic
def set_choice(
    workspace: Workspace, by: Membership | None, column: str, is_so: bool, *, code: str, already: str
) -> None:
    """Set a yes or no of a workspace, and record it under a code of the audit log.

    Raises:
        PermissionDenied: for anybody but an owner of it, or the operator, who is None.
        ValidationError: in the words of `already`, where it is so already.
    """
    require_owner(workspace, by)
    if not Workspace.objects.filter(pk=workspace.pk, **{column: not is_so}).update(**{column: is_so}):
        raise ValidationError(already)
    setattr(workspace, column, is_so)
    record_deed(code, workspace_id=workspace.pk, by=by, on=Thing("workspace", workspace.pk, workspace.name))


@transaction.atomic
def _switch(workspace: Workspace, by: Membership | None, *, is_archived: bool) -> None:
    require_owner(workspace, by)
    now = timezone.now() if is_archived else None
    if not Workspace.objects.filter(pk=workspace.pk, archived_at__isnull=is_archived).update(archived_at=now):
        raise ValidationError(f"the workspace is {'archived already' if is_archived else 'not archived'}")
    workspace.archived_at = now
    _record("workspace.archived" if is_archived else "workspace.restored", workspace)


def require_owner(workspace: Workspace, by: Membership | None) -> None:
    """Refuse anybody but an owner of it, or the operator, who is None.

    Raises:
        PermissionDenied: for such a one.
    """
    if by is not None and not (by.is_owner and by.workspace_id == workspace.pk):
        raise PermissionDenied("only owners of the workspace do this")


def _check_name(name: str, *, by: Membership | None, but: Workspace | None = None) -> None:
    """Names are told apart among the workspaces that whoever acts can see: nobody learns of others by a refusal."""
    try:
        check_printed_name(name, of="a workspace", most=120)
    except ValidationError as error:
        raise ValidationError({"name": error.messages}) from error
    seen = Workspace.objects.all() if by is None else Workspace.objects.filter(memberships__user=by.user_id)
    skeleton = make_skeleton(name)
    for known in (seen.exclude(pk=but.pk) if but else seen).values_list("name", flat=True):
        if known == name:
            raise ValidationError({"name": f"another workspace is called {name} already: choose another name"})
        if make_skeleton(known) == skeleton:
            raise ValidationError({"name": f"{name} looks like {known}, another workspace: choose another name"})


def _record(code: str, workspace: Workspace, details: Mapping[str, str] | None = None) -> None:
    record_deed(code, workspace_id=workspace.pk, on=Thing("workspace", workspace.pk, workspace.name), details=details)


LASTS: Final = timedelta(days=7)


@transaction.atomic
def invite_member(*, workspace: Workspace, name: str, role: str) -> tuple[Invitation, str]:
    """An invitation and the token of its link, to be seen this once. One that was open under this name is replaced.

    Raises:
        ValidationError: for a name that cannot be one or looks like a member's, or a role that does not exist.
    """
    name = name.strip()
    User._meta.get_field("username").run_validators(name)
    if not name or role not in Role.values:
        raise ValidationError("an invitation needs a name and a role")
    check_name(workspace=workspace, name=name)
    replaced, _ = Invitation.objects.filter(workspace=workspace, name=name).delete()
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        workspace=workspace, name=name, role=role, digest=digest_token(token), expires_at=timezone.now() + LASTS
    )
    record_deed(
        "member.invited-again" if replaced else "member.invited",
        workspace_id=workspace.pk,
        on=Thing("member", "", name),
        details={"role": role},
    )
    return invitation, token


def check_name(*, workspace: Workspace, name: str) -> None:
    """Refuse a name that readers of a workspace could take for a member's.

    Raises:
        ValidationError: with whose name it looks like.
    """
    skeleton = make_skeleton(name)
    for known in workspace.memberships.values_list("user__username", flat=True):
        if known == name:
            raise ValidationError(f"{name} is a member already")
        if make_skeleton(known) == skeleton:
            raise ValidationError(f"{name} looks like {known}, who is a member here: choose another name")


def find_invitation(*, token: str) -> Invitation | None:
    """The open invitation of that link, or None."""
    found = Invitation.objects.select_related("workspace").filter(digest=digest_token(token)).first()
    return found if found is not None and found.is_open else None


@transaction.atomic
def withdraw_invitation(*, invitation: Invitation) -> None:
    """Let its link lead nowhere."""
    thing = Thing("member", "", invitation.name)
    invitation.delete()
    record_deed("member.invitation-withdrawn", workspace_id=invitation.workspace_id, on=thing)


@transaction.atomic
def accept_invitation(*, token: str, user: User) -> Membership | None:
    """Join as somebody who has an account; None where the link leads nowhere any more.

    Raises:
        ValidationError: for a member, whose role no link changes, and for a name that looks like a member's.
    """
    invitation = _take(token)
    if invitation is None:
        return None
    check_name(workspace=invitation.workspace, name=user.get_username())
    return _join(invitation, user)


@transaction.atomic
def accept_as_new(*, token: str, name: str, password: str) -> Membership | None:
    """Join under a new account; None where the link leads nowhere any more.

    Raises:
        ValidationError: by the field it is about: a name that is taken, cannot be one or looks like a member's, and a
            password that is easily guessed.
    """
    invitation = _take(token)
    if invitation is None:
        return None
    user = User(username=name.strip())
    faults: dict[str, list[str]] = {}
    try:
        user.full_clean(exclude=["password"])
        check_name(workspace=invitation.workspace, name=user.username)
    except ValidationError as error:
        faults["name"] = error.messages
    try:
        validate_password(password, user)
    except ValidationError as error:
        faults["password"] = error.messages
    if faults:
        raise ValidationError(faults)
    user.set_password(password)
    user.save()
    return _join(invitation, user)


def _take(token: str) -> Invitation | None:
    """The invitation, locked: of two who follow one link, one joins."""
    held = Invitation.objects.select_for_update().filter(digest=digest_token(token)).first()
    return held if held is not None and held.is_open else None


def _join(invitation: Invitation, user: User) -> Membership:
    invitation.delete()
    joining = Membership(workspace=invitation.workspace, user=user, role=invitation.role)
    with act_as(joining):
        return add_member(workspace=invitation.workspace, user=user, role=invitation.role)
