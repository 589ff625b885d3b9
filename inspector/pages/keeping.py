"""How records are kept: what the ledger vouches for, whether it still holds, and what is taken along to verify it
elsewhere; and how long messages are kept, what holds stop, and erasing after a preview and a confirmation.
"""

from __future__ import annotations

import base64
import uuid
from typing import Any, Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from inspector.accounts.models import Channel, Membership
from inspector.database import make_storable, or_404
from inspector.erasing import Target, ask_to_erase, count_expired, preview
from inspector.keyring.services import list_period_keys
from inspector.ledger.bundles import NoCheckpointError, make_bundle, note_bundle, write_bundle
from inspector.ledger.models import LedgerCheckpoint
from inspector.ledger.notes import MAX_NOTE_BYTES
from inspector.ledger.proofs import (
    Compared,
    compare_kept,
    draw_note,
    get_checkpoint,
    get_key,
    get_size,
    get_verifier,
    list_witnesses,
    look_up,
    write_note,
)
from inspector.ledger.verifying import ask_to_verify, find_checked
from inspector.retention.services import (
    MAX_DAYS,
    find_rules,
    lift_hold,
    list_erasures,
    list_holds,
    place_hold,
    set_retention,
)
from inspector.threads.selectors import find_conversation

from .lists import cut_page
from .shell import parse_id, read_number, render_page, require_auditor, within_workspace, write_query
from .shown.told import write_elapsed

PAGE_ROWS: Final = 10

MAX_ASKED_LENGTH: Final = 100


@within_workspace("GET", needs="auditor")
def show_integrity(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The latest checkpoint, whether everything is as it was signed, and how to verify it elsewhere."""
    return _answer_integrity(request, membership)


@within_workspace("POST", needs="auditor")
def compare(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Whether the ledger continues a checkpoint that the reader kept."""
    text = request.POST.get("kept", "")[:MAX_NOTE_BYTES]
    return _answer_integrity(request, membership, compare_kept(workspace_id=membership.workspace_id, text=text))


def _answer_integrity(request: HttpRequest, membership: Membership, compared: Compared | None = None) -> HttpResponse:
    workspace, before = membership.workspace, read_number(request, "before")
    checkpoint = get_checkpoint(workspace.pk)
    rows = LedgerCheckpoint.objects.filter(workspace=workspace).order_by("-size")
    page, last = cut_page((rows.filter(size__lt=before) if before else rows)[: PAGE_ROWS + 1], PAGE_ROWS)
    key, size = get_key(), get_size(workspace.pk)
    asked = request.GET.get("entry", "").strip()[:MAX_ASKED_LENGTH]
    context = {
        "checkpoint": checkpoint,
        "age": write_elapsed(timezone.now() - checkpoint.signed_at) if checkpoint else "",
        "code": draw_note(checkpoint.note) if checkpoint else "",
        "waiting": size - (checkpoint.size if checkpoint else 0),
        "key": str(get_verifier(key, workspace.pk)) if key else "",
        "witnesses": list_witnesses(workspace_id=workspace.pk),
        "checked": find_checked(workspace_id=workspace.pk),
        "asked": asked,
        "compared": compared,
        "found": look_up(checkpoint, asked, reader=membership) if checkpoint and asked else (),
        "checkpoints": [(row.size, row.signed_at, base64.b64encode(bytes(row.root)).decode()) for row in page],
        "older_url": write_query(request, before=str(last.size)) if last else None,
        "newest_url": write_query(request, before=None) if before else None,
    }
    status = 422 if compared and compared.why_not else 200
    return render_page(request, membership, "integrity/integrity.html", context, section="integrity", status=status)


@within_workspace("POST", needs="auditor")
def verify(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Let a worker compare everything with what was signed."""
    ask_to_verify(workspace_id=membership.workspace_id)
    return redirect("pages:integrity", membership.workspace.slug)


@within_workspace("GET")
def download_checkpoint(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """A checkpoint as its signed note, the latest or the one of a size: what one keeps to compare with later."""
    checkpoint = _open_checkpoint(request, membership)
    name = f"checkpoint-{membership.workspace.slug}-{checkpoint.size}.txt"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(write_note(checkpoint), content_type="text/plain; charset=utf-8", headers=headers)


@within_workspace("GET")
def show_code(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """A checkpoint, without its witnesses, as a QR code for the page of what it signs."""
    code = draw_note(_open_checkpoint(request, membership).note, is_alone=True)
    return HttpResponse(code, content_type="image/svg+xml")


def _open_checkpoint(request: HttpRequest, membership: Membership) -> LedgerCheckpoint:
    return or_404(get_checkpoint(membership.workspace_id, read_number(request, "size") or None))


@within_workspace("GET")
def download_bundle(
    request: HttpRequest, membership: Membership, conversation_id: uuid.UUID | None = None
) -> HttpResponseBase:
    """What somebody needs to verify the workspace, or one conversation, without this server; that is recorded.

    The workspace is for owners and auditors; of a conversation everybody has what they may know of it.
    """
    workspace, conversation = membership.workspace, None
    if conversation_id is None:
        require_auditor(membership)
    else:
        conversation = or_404(find_conversation(workspace=workspace, conversation_id=conversation_id))
    try:
        bundle = make_bundle(
            workspace=workspace, conversation=conversation, membership=membership, is_exact="exact" in request.GET
        )
    except NoCheckpointError as error:
        flashes.error(request, str(error))
        if conversation:
            return redirect("pages:conversation", workspace.slug, conversation.pk)
        return redirect("pages:integrity", workspace.slug)
    note_bundle(bundle)
    headers = {"Content-Disposition": f'attachment; filename="{bundle.file_name}"'}
    return StreamingHttpResponse(write_bundle(bundle), content_type="application/zip", headers=headers)


SHOWN: Final = 50


@within_workspace("GET", needs="owner")
def show_retention(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Rules and holds in force, the latest erasures, and the forms for more."""
    return _answer_retention(request, membership)


@within_workspace("POST", needs="owner")
def act(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Set a rule, place or lift a hold, preview an erasure or confirm it, as `action` says."""
    given, seen = request.POST, None
    try:
        if given.get("action") == "set":
            days, channel = _read_days(given), _find(membership, given)
            if days and not given.get("is_sure"):
                count, first = count_expired(workspace_id=membership.workspace_id, channel=channel, days=days)
                return _answer_retention(
                    request, membership, rule={"channel": channel, "days": days, "count": count, "first": first}
                )
            set_retention(membership=membership, channel=channel, days=days)
            said = "Older messages are erased within a day." if days else "Nothing is erased by age there."
        elif given.get("action") == "hold":
            place_hold(membership=membership, channel=_find(membership, given), reason=given.get("reason", ""))
            said = "The hold is in force: nothing it covers is erased."
        elif given.get("action") == "lift":
            lift_hold(membership=membership, hold_id=_read_id(given.get("hold", "")))
            said = "The hold is lifted: what it stopped goes on."
        else:
            target = _read_target(given)
            if given.get("action") != "erase" or not given.get("is_sure"):
                seen = {"target": target, "counts": preview(workspace_id=membership.workspace_id, target=target)}
                return _answer_retention(request, membership, {**seen, "reason": given.get("reason", "")})
            ask_to_erase(membership=membership, target=target, reason=given.get("reason", ""))
            said = "It is being erased. The list below says when all is gone."
    except ValidationError as error:
        flashes.error(request, f"Nothing was done: {'; '.join(error.messages)}.")
        return _answer_retention(request, membership, status=422)
    flashes.success(request, said)
    return redirect("pages:retention", membership.workspace.slug)


def _answer_retention(
    request: HttpRequest,
    membership: Membership,
    seen: dict[str, Any] | None = None,
    *,
    rule: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    workspace = membership.workspace
    context = {
        "rules": find_rules(workspace_id=workspace.pk).values(),
        "holds": list_holds(workspace_id=workspace.pk),
        "erasures": list_erasures(workspace_id=workspace.pk)[:SHOWN],
        "channels": Channel.objects.filter(workspace=workspace).order_by("name"),
        "seen": seen,
        "rule": rule,
        "keys": list_period_keys(workspace_id=workspace.pk),
    }
    return render_page(request, membership, "retention/retention.html", context, section="settings", status=status)


def _find(membership: Membership, given: QueryDict) -> Channel | None:
    if not given.get("channel"):
        return None
    channel = Channel.objects.filter(
        workspace=membership.workspace, name=make_storable(given.get("channel", ""))
    ).first()
    if channel is None:
        raise ValidationError("there is no such channel")
    return channel


def _read_days(given: QueryDict) -> int | None:
    days = given.get("days", "").strip()
    is_number = days.isascii() and days.isdecimal() and len(days) <= len(str(MAX_DAYS))
    if days and not (is_number and 0 < int(days) <= MAX_DAYS):
        raise ValidationError(f"the number of days is from 1 to {MAX_DAYS:,}, or empty for ever")
    return int(days) if days else None


def _read_id(text: str) -> uuid.UUID:
    found = parse_id(text.strip())
    if found is None:
        raise ValidationError("give the id of the record or delivery, as its page shows it")
    return found


def _read_target(given: QueryDict) -> Target:
    kind, what = given.get("kind", ""), given.get("what", "")
    if kind == "person":
        return Target(kind=kind, name=what, is_both=bool(given.get("is_both")))
    if kind == "period":
        return Target(kind=kind, name=what.strip())
    return Target(kind=kind, subject=_read_id(what))
