"""The keyring: the keys that open sealed messages, added and removed, and the trace of what was done with them.

A key is pasted or comes as a file. What was pasted is never written back into a page.
"""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django import forms
from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters

from inspector.accounts.models import Membership
from inspector.database import or_404
from inspector.keyring.models import EscrowedKey, KeyEvent
from inspector.keyring.ring import find_unusable
from inspector.keyring.selectors import find_key, find_last_uses, list_events, list_keys
from inspector.keyring.services import MAX_LABEL_LENGTH, remove_key
from inspector.keyring.spellings import MAX_BYTES, MAX_SESSION_LENGTH, SpellingError, read_keys
from inspector.opening import (
    count_opened,
    count_opening,
    count_unreadable_without,
    escrow_keys,
    find_opening_failure,
    open_with_released,
)
from inspector.search.selectors import write_cursor

from ..forms import PLAIN, PageForm
from ..shell import cut_page, read_place, render_page, require_owner, within_workspace, write_query
from ..templatetags.marks import plural

_MAX_AHEAD: Final = timedelta(days=50 * 365)


class SecretTextarea(forms.Textarea):
    """A field that is always drawn empty."""

    def format_value(self, value: Any) -> str:
        """Nothing, whatever was sent."""
        return ""


class EscrowForm(PageForm):
    """A key to be kept."""

    label = forms.CharField(
        required=False,
        max_length=MAX_LABEL_LENGTH,
        widget=forms.TextInput(attrs=PLAIN),
        help_text="Owner and purpose of the key. A file may have its own label.",
    )
    key = forms.CharField(
        required=False,
        max_length=MAX_BYTES,
        strip=False,
        widget=SecretTextarea(attrs={**PLAIN, "rows": 3}),
        help_text="Base64, hex, PEM, a JWK, or the JSON that the codecs take.",
    )
    file = forms.FileField(required=False, label="Or a key file", allow_empty_file=True)
    kind = forms.ChoiceField(
        label="Type",
        choices=EscrowedKey.Kind.choices,
        help_text="PEM, JWK and JSON name their type.",
    )
    written = forms.ChoiceField(
        label="Written as",
        required=False,
        choices=[
            ("any", "recognised by its form"),
            ("base64", "Base64"),
            ("hex", "hex"),
            ("text", "plain text (pre-shared keys)"),
        ],
    )
    peer = forms.CharField(
        required=False,
        max_length=1000,
        label="The other side’s public key",
        widget=forms.TextInput(attrs=PLAIN),
        help_text="For an X25519 key. If empty, public keys from the log’s handshakes are tried.",
    )
    session = forms.CharField(
        required=False,
        max_length=MAX_SESSION_LENGTH,
        widget=forms.TextInput(attrs=PLAIN),
        help_text="Left empty, it is tried on every session.",
    )

    expires = forms.DateField(
        required=False,
        label="Expires",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text="At the end of that day, UTC, the key and what it opened are removed.",
    )

    def clean(self) -> dict[str, Any]:
        """The keys that were given, as `keys` of the cleaned data."""
        said = super().clean() or {}
        if self.errors:
            return said
        file, text = said.get("file"), said.get("key") or ""
        if file is not None and text.strip():
            self.add_error("key", "Either paste a key or choose a file, not both.")
            return said
        try:
            data = file.read(MAX_BYTES + 1) if file is not None else text.encode("utf-8", "surrogatepass")
            said["keys"] = read_keys(
                data,
                kind=said["kind"],
                written=said.get("written") or "any",
                peer=said.get("peer") or "",
                session=said.get("session") or "",
            )
        except SpellingError as error:
            self.add_error("file" if file is not None else "key", str(error))
        said.pop("key", None)
        return said

    def clean_expires(self) -> date | None:
        """A day that is not over, within the years that can be counted on."""
        day: date | None = self.cleaned_data["expires"]
        today = timezone.now().astimezone(UTC).date()
        if day is not None and not today <= day <= today + _MAX_AHEAD:
            raise forms.ValidationError("Name a day from today on, within fifty years.")
        return day

    def read(self) -> dict[str, Any]:
        """What `escrow_keys` takes, of a valid form."""
        said = self.cleaned_data
        day = said["expires"]
        end = datetime.combine(day + timedelta(days=1), time(), UTC) if day else None
        return {"keys": said["keys"], "label": said["label"], "expires_at": end}


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
