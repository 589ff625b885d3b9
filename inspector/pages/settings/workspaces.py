"""What owners do with the workspace itself: rename it, archive it, restore it, make another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from inspector.accounts.models import Membership
from inspector.accounts.second_factors import has_second_factor
from inspector.accounts.workspaces import (
    archive_workspace,
    make_workspace,
    rename_workspace,
    restore_workspace,
    set_second_factor,
)
from inspector.keyring.periods import set_indexing, set_sealing
from inspector.keyring.services import set_two_for_keys

from ..forms import RenameForm, WorkspaceForm
from ..shell import within_workspace
from .views import render_settings

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
def change(request: HttpRequest, membership: Membership) -> HttpResponse:
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
def make(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Make another workspace, which whoever makes it owns."""
    form = WorkspaceForm(request.POST, prefix="workspace")
    made = form.hand_to(lambda: make_workspace(**form.cleaned_data, owner=membership.user, by=membership))
    if made is None:
        return render_settings(request, membership, workspace_form=form, status=422)
    flashes.success(request, f"{made.name} is made, and you own it: invite its members here.")
    return redirect("pages:settings", made.slug)
