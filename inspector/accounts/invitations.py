"""Invitations: an offer of a role, by a link, to whoever it is sent to.

An invitation names nobody who has an account. Whoever has the link and is signed in joins as who they are; anybody else
makes an account, under a name that is free. So nobody comes into a workspace by what another workspace did.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Final

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from inspector.confusables import make_skeleton
from inspector.trail.acting import act_as
from inspector.trail.services import Thing, record_deed

from .models import Invitation, Membership, Role, User, Workspace
from .services import add_member, digest_token

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
