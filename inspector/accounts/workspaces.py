"""What owners and the operator do with a whole workspace: make another, rename it, archive it and take it back out.

Nothing of an archived workspace is deleted: its members read it as before, for its records and verdicts are evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from inspector.confusables import make_skeleton
from inspector.trail.services import Thing, record_deed

from .models import Membership, Role, User, Workspace
from .services import check_printed_name, create_workspace

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
    _require_owner(workspace, by)
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
    _require_owner(workspace, by)
    rows = Workspace.objects.filter(pk=workspace.pk, requires_second_factor=not is_required)
    if not rows.update(requires_second_factor=is_required):
        raise ValidationError(f"the workspace requires {'a second factor already' if is_required else 'none'}")
    workspace.requires_second_factor = is_required
    _record("workspace.second-factor-required" if is_required else "workspace.second-factor-waived", workspace)


@transaction.atomic
def _switch(workspace: Workspace, by: Membership | None, *, is_archived: bool) -> None:
    _require_owner(workspace, by)
    now = timezone.now() if is_archived else None
    if not Workspace.objects.filter(pk=workspace.pk, archived_at__isnull=is_archived).update(archived_at=now):
        raise ValidationError(f"the workspace is {'archived already' if is_archived else 'not archived'}")
    workspace.archived_at = now
    _record("workspace.archived" if is_archived else "workspace.restored", workspace)


def _require_owner(workspace: Workspace, by: Membership | None) -> None:
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
