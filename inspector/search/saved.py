"""Keeping searches: saved under a name, shared or not, and forgotten again by who saved them."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Q, QuerySet

from inspector.accounts.models import Membership, Workspace
from inspector.trail.services import Thing, record_deed

from .models import MAX_NAME_LENGTH, MAX_SAVED, SavedSearch
from .selectors import read_query


class SavedSearchError(Exception):
    """A search that cannot be saved; the sentence says why."""


def list_saved(*, membership: Membership) -> list[SavedSearch]:
    """What this member saved, and what others share in the workspace, by name."""
    rows = select_saved(workspace=membership.workspace, user_id=membership.user_id)
    return list(rows.order_by("name", "pk")[: 2 * MAX_SAVED])


def select_saved(*, workspace: Workspace, user_id: int | None) -> QuerySet[SavedSearch]:
    """What is shared in a workspace and what this person saved, in no order."""
    own = Q() if user_id is None else Q(saved_by=user_id)
    return SavedSearch.objects.filter(Q(is_shared=True) | own, workspace=workspace).select_related("saved_by")


@transaction.atomic
def save_search(*, membership: Membership, name: str, query: str, is_shared: bool) -> SavedSearch:
    """Keep a query under a name; one of one's own of that name is replaced.

    Raises:
        SavedSearchError: for no name, too long a one, or too many searches.
        QueryError: for a query that cannot be understood.
    """
    name = " ".join(name.split())
    if not name:
        raise SavedSearchError("Give the search a name.")
    if len(name) > MAX_NAME_LENGTH:
        raise SavedSearchError(f"A name has at most {MAX_NAME_LENGTH} characters.")
    read_query(query)
    mine = SavedSearch.objects.filter(workspace=membership.workspace, saved_by=membership.user)
    if mine.exclude(name=name).count() >= MAX_SAVED:
        raise SavedSearchError(f"You have {MAX_SAVED} saved searches: forget one first.")
    was_shared = mine.filter(name=name, is_shared=True).exists()
    saved, _ = SavedSearch.objects.update_or_create(
        workspace=membership.workspace,
        saved_by=membership.user,
        name=name,
        defaults={"query": query, "is_shared": is_shared},
    )
    if is_shared or was_shared:
        record_deed(
            "search.shared" if is_shared else "search.unshared",
            workspace_id=membership.workspace_id,
            by=membership,
            on=Thing("search", saved.pk, name),
            details={"query": query},
        )
    return saved


@transaction.atomic
def forget_search(*, membership: Membership, saved_id: uuid.UUID) -> bool:
    """Forget a search; its own saver may, and an owner. Whether there was one."""
    rows = SavedSearch.objects.filter(workspace=membership.workspace, pk=saved_id)
    if not membership.is_owner:
        rows = rows.filter(saved_by=membership.user)
    else:
        rows = rows.filter(Q(saved_by=membership.user) | Q(is_shared=True))
    saved = rows.select_for_update().first()
    if saved is None:
        return False
    named, is_shared = Thing("search", saved.pk, saved.name), saved.is_shared
    saved.delete()
    if is_shared:
        record_deed("search.forgotten", workspace_id=membership.workspace_id, by=membership, on=named)
    return True
