"""Integrity: what the ledger vouches for, whether it still holds, and what is taken along to verify it elsewhere."""

from __future__ import annotations

import base64
import uuid
from typing import Final

from django.contrib import messages as flashes
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from inspector.accounts.models import Membership
from inspector.database import or_404
from inspector.ledger.bundles import NoCheckpointError, make_bundle, note_bundle, write_bundle
from inspector.ledger.models import LedgerCheckpoint
from inspector.ledger.notes import MAX_NOTE_BYTES
from inspector.ledger.proofs import Compared, compare_kept, draw_note, list_witnesses, look_up, write_note
from inspector.ledger.selectors import get_checkpoint
from inspector.ledger.sequencing import get_key, get_size, get_verifier
from inspector.ledger.verifying import ask_to_verify, find_checked
from inspector.threads.selectors import find_conversation

from .shell import cut_page, read_number, render_page, require_auditor, within_workspace, write_query
from .shown.told import write_elapsed

PAGE_ROWS: Final = 10
MAX_ASKED_LENGTH: Final = 100


@within_workspace("GET", needs="auditor")
def show_integrity(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The latest checkpoint, whether everything is as it was signed, and how to verify it elsewhere."""
    return _answer(request, membership)


@within_workspace("POST", needs="auditor")
def compare(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Whether the ledger continues a checkpoint that the reader kept."""
    text = request.POST.get("kept", "")[:MAX_NOTE_BYTES]
    return _answer(request, membership, compare_kept(workspace_id=membership.workspace_id, text=text))


def _answer(request: HttpRequest, membership: Membership, compared: Compared | None = None) -> HttpResponse:
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
    return _seal(HttpResponse(write_note(checkpoint), content_type="text/plain; charset=utf-8"), name)


@within_workspace("GET")
def show_code(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """A checkpoint, without its witnesses, as a QR code for the page of what it signs."""
    return _seal(
        HttpResponse(draw_note(_open_checkpoint(request, membership).note, is_alone=True), content_type="image/svg+xml")
    )


def _open_checkpoint(request: HttpRequest, membership: Membership) -> LedgerCheckpoint:
    return or_404(get_checkpoint(membership.workspace_id, read_number(request, "size") or None))


def _seal(response: HttpResponseBase, name: str = "") -> HttpResponseBase:
    """For one reader, as what it is; a download where it has a name."""
    if name:
        response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


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
        return redirect("pages:conversation" if conversation else "pages:integrity", workspace.slug,
                        *([conversation.pk] if conversation else []))  # fmt: skip
    note_bundle(bundle)
    return _seal(StreamingHttpResponse(write_bundle(bundle), content_type="application/zip"), bundle.file_name)
