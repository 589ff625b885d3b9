"""Upload: several files at once, each of which becomes a delivery of its own."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from inspector.accounts.models import Channel, Membership
from inspector.accounts.services import ensure_channel
from inspector.intake.models import Delivery, Door
from inspector.intake.services import open_delivery, take_upload

from .deliveries import make_progress
from .forms import UploadForm
from .shell import render_page, require_auditor, within_workspace

# What the form around the files may add to the length of a request.
FORM_BYTES = 1024 * 1024


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def upload(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Refuse what is too large before a byte of it is read; looking for the CSRF token would read it all."""
    if _declared_length(request) > settings.LIMITS["delivery_bytes"] + FORM_BYTES:
        return render(request, "413.html", status=413)
    return _upload(request, slug)


def _declared_length(request: HttpRequest) -> int:
    length = request.headers.get("Content-Length") or "0"
    return int(length) if length.isascii() and length.isdigit() else 0


@csrf_protect
@within_workspace
def _upload(request: HttpRequest, membership: Membership) -> HttpResponse:
    require_auditor(membership)
    if request.method != "POST":
        return _answer(request, membership, UploadForm())
    form = UploadForm(request.POST, request.FILES)
    channel = _find_channel(form, membership) if form.is_valid() else None
    if channel is None:
        return _answer(request, membership, form, status=422)
    deliveries = [_take(file, request, membership, channel, form) for file in form.cleaned_data["logs"]]
    if request.headers.get("HX-Request"):
        rows = [make_progress(delivery, membership.workspace.slug) for delivery in deliveries]
        return render(request, "deliveries/_progress_list.html", {"deliveries": rows}, status=201)
    if len(deliveries) == 1:
        return redirect("pages:delivery", membership.workspace.slug, deliveries[0].pk)
    return redirect("pages:deliveries", membership.workspace.slug)


def _find_channel(form: UploadForm, membership: Membership) -> Channel | None:
    try:
        return ensure_channel(workspace=membership.workspace, name=form.cleaned_data["channel"])
    except ValidationError as error:
        form.add_error("channel", error)
        return None


def _take(
    file: UploadedFile[Any], request: HttpRequest, membership: Membership, channel: Channel, form: UploadForm
) -> Delivery:
    delivery = open_delivery(
        workspace=membership.workspace,
        channel=channel,
        door=Door.UPLOAD,
        user=membership.user,
        remote_address=request.META.get("REMOTE_ADDR", ""),
        file_name=file.name or "",
        content_type=file.content_type or "",
        options={"prefixes": form.cleaned_data["has_prefixes"]},
    )
    return take_upload(delivery=delivery, chunks=file.chunks())


def _answer(request: HttpRequest, membership: Membership, form: UploadForm, *, status: int = 200) -> HttpResponse:
    if request.headers.get("HX-Request"):
        words = "; ".join(str(error) for errors in form.errors.values() for error in errors)
        return HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")
    context: dict[str, Any] = {"form": form, "limit_bytes": settings.LIMITS["delivery_bytes"]}
    return render_page(request, membership, "uploads/upload.html", context, section="upload", status=status)
