"""The keyring: the keys that open sealed messages, added and removed, and the trace of what was done with them."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from inspector.accounts.models import Membership
from inspector.keyring.models import EscrowedKey, KeyEvent
from inspector.keyring.ring import find_unusable
from inspector.keyring.selectors import find_key, find_last_uses, list_events, list_keys
from inspector.keyring.services import remove_key
from inspector.lookups import or_404
from inspector.opening.reveals import count_opened, count_opening, count_unreadable_without, find_opening_failure
from inspector.opening.trying import escrow_keys, open_with_released
from inspector.search.cursors import write_cursor

from ..shell import cut_page, read_place, render_page, require_owner, within_workspace, write_query
from ..templatetags.marks import plural
from .keyring_forms import EscrowForm

PAGE_EVENTS = 30


@sensitive_post_parameters("key")
@within_workspace("GET", "HEAD", "POST", needs="auditor")
def show_keyring(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The keys, without their secrets, and their trace; an owner adds keys here."""
    if request.method != "POST":
        return _answer(request, membership, EscrowForm())
    require_owner(membership)
    form = EscrowForm(request.POST, request.FILES)
    made = form.hand_to(lambda: escrow_keys(membership=membership, **form.read()))
    if made is None:
        return _answer(request, membership, form, status=422)
    added, count = made
    names = f"“{added[0].label}” is" if len(added) == 1 else f"{len(added)} keys are"
    if added[0].released_at is None:
        flashes.success(request, f"{names} kept, sealed. Another owner has to release what was added.")
        return redirect("pages:keyring", membership.workspace.slug)
    tried = f"{plural(count, 'conversation holds,conversations hold')} sealed messages, which are being tried now."
    flashes.success(request, f"{names} kept, sealed. {tried if count else 'There is no sealed message yet.'}")
    return redirect("pages:keyring", membership.workspace.slug)


def _answer(request: HttpRequest, membership: Membership, form: EscrowForm, *, status: int = 200) -> HttpResponse:
    workspace = membership.workspace
    keys = list(list_keys(workspace=workspace))
    unusable, problem = find_unusable(keys)
    opened = count_opened(workspace=workspace)
    uses = find_last_uses(workspace=workspace, key_ids=[key.pk for key in keys])
    found = list_events(workspace=workspace, before=read_place(request, membership), limit=PAGE_EVENTS + 1)
    events, last = cut_page(found, PAGE_EVENTS)
    more = write_cursor((last.at, last.pk), workspace.pk) if last else None
    context = {
        "keys": [
            {
                "row": key,
                "is_x25519": key.kind == EscrowedKey.Kind.X25519,
                "opened": opened.get(key.pk, 0),
                "last_used_at": uses.get(key.pk),
                "is_unusable": key.pk in unusable,
            }
            for key in keys
        ],
        "problem": problem,
        "form": form if membership.is_owner else None,
        "is_refused": bool(form.errors),
        "opening": _describe_opening(membership),
        "events": [_describe_event(event) for event in events],
        "older_url": f"{write_query(request, before=more)}#trace" if more else None,
        "newest_url": f"{write_query(request, before=None)}#trace" if request.GET.get("before") else None,
    }
    return render_page(request, membership, "keyring/keyring.html", context, section="keyring", status=status)


@within_workspace("GET", needs="auditor")
def show_opening(request: HttpRequest, membership: Membership) -> HttpResponse:
    """How far the opening is: a piece of the page that asks for itself again, and at the end for the whole page."""
    opening = _describe_opening(membership)
    response = render(request, "keyring/_opening.html", {"opening": opening, "workspace": membership.workspace})
    if not opening["count"]:
        response["HX-Refresh"] = "true"
    return response


def _describe_opening(membership: Membership) -> dict[str, Any]:
    workspace = membership.workspace
    return {
        "count": count_opening(workspace=workspace),
        "failure": find_opening_failure(workspace=workspace),
    }


@within_workspace("GET", "HEAD", "POST")
def remove(request: HttpRequest, membership: Membership, escrowed_key_id: uuid.UUID) -> HttpResponse:
    """Say what becomes unreadable, and remove the key when that is confirmed."""
    key = or_404(find_key(workspace=membership.workspace, key_id=escrowed_key_id))
    require_owner(membership)
    opened, unreadable = count_unreadable_without(key=key)
    if request.method == "POST":
        try:
            remove_key(membership=membership, key=key, unreadable=unreadable)
        except ValidationError as error:
            raise Http404 from error
        sealed = f"{plural(unreadable, 'message is,messages are')} sealed again." if unreadable else ""
        flashes.success(request, f"“{key.label}” is removed. {sealed}".strip())
        return redirect("pages:keyring", membership.workspace.slug)
    context = {"key": key, "opened": opened, "unreadable": unreadable, "others": opened - unreadable}
    return render_page(request, membership, "keyring/remove.html", context, section="keyring")


@within_workspace("POST")
def release(request: HttpRequest, membership: Membership, escrowed_key_id: uuid.UUID) -> HttpResponse:
    """Let a key open messages that another owner has added."""
    key = or_404(find_key(workspace=membership.workspace, key_id=escrowed_key_id))
    require_owner(membership)
    try:
        count = open_with_released(membership=membership, key=key)
    except ValidationError as error:
        flashes.error(request, f"Nothing was done: {' '.join(error.messages)}")
    else:
        tried = plural(count, "conversation holds,conversations hold")
        flashes.success(request, f"“{key.label}” is released. {tried} sealed messages, which are being tried now.")
    return redirect("pages:keyring", membership.workspace.slug)


def _describe_event(event: KeyEvent) -> dict[str, Any]:
    what = {
        KeyEvent.Kind.ADDED: "added the key",
        KeyEvent.Kind.RELEASED: "released the key",
        KeyEvent.Kind.EXPIRED: "removed the key, whose time was over",
        KeyEvent.Kind.REMOVED: f"removed the key; {plural(event.count, 'message,messages')} became unreadable",
        KeyEvent.Kind.OPENED: f"opened {plural(event.count, 'message,messages')}",
        KeyEvent.Kind.SHOWN: f"saw {plural(event.count, 'opened message,opened messages')} on"
        f" {event.get_door_display()}",
    }[KeyEvent.Kind(event.kind)]
    return {"row": event, "what": what, "message": event.messages[0] if len(event.messages) == 1 else None}
