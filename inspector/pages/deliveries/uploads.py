"""Upload: files go up and wait; their sender looks at the beginning of each, says how it is read, and loads it."""

from __future__ import annotations

import uuid
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from inspector.accounts.models import Channel, Membership
from inspector.accounts.selectors import list_channels
from inspector.accounts.services import ensure_channel
from inspector.accounts.workspaces import ARCHIVED
from inspector.api.bodies import is_asked_first
from inspector.bounds import find_declared_length, refuse_length, stop_reading, takes_large_bodies
from inspector.intake import staging
from inspector.intake.containers import RefusedArchiveError
from inspector.intake.models import Delivery
from inspector.intake.selectors import find_delivery
from inspector.trail.acting import find_address

from ..shell import render_page, within_workspace
from .forms import ReadingForm, UploadForm
from .previews import make_card
from .progress import make_progress

# What the form around the files may add to the length of a request.
FORM_BYTES = 1024 * 1024
FULL = "Too many bytes wait to be imported here: import or discard the waiting files, then upload this again."


@takes_large_bodies
@csrf_exempt
@within_workspace("GET", "HEAD", "POST", needs="auditor")
def upload(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """The page, and files that go up: who sends them, how large they are and what waits already is looked at before a
    byte is read; looking for the CSRF token reads it all."""
    if request.method != "POST":
        return _answer(request, membership, UploadForm())
    if membership.workspace.archived_at is not None:
        stop_reading(request)
        return _answer(request, membership, UploadForm(), status=409, refusal=ARCHIVED)
    size_bytes = find_declared_length(request)
    if size_bytes > settings.LIMITS["delivery_bytes"] + FORM_BYTES:
        return refuse_length(request)
    if size_bytes + staging.count_waiting_bytes(workspace=membership.workspace) > settings.LIMITS["waiting_bytes"]:
        stop_reading(request)
        return _answer(request, membership, UploadForm(), status=503, refusal=FULL)
    return HttpResponse(status=204) if is_asked_first(request) else _take(request, membership)


@csrf_protect
def _take(request: HttpRequest, membership: Membership) -> HttpResponse:
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _answer(request, membership, form, status=422)
    staged: list[Delivery] = []
    for file in form.cleaned_data["logs"]:
        try:
            staged += _stage(file, request, membership, form)
        except RefusedArchiveError as error:
            form.add_error("logs", f"{file.name}: {error}")
    if form.errors:
        return _answer(request, membership, form, status=400)
    if request.headers.get("HX-Request"):
        cards = [make_card(delivery, membership) for delivery in staged]
        return _render(request, membership, "uploads/_staged_list.html", {"cards": cards}, status=201)
    if len(staged) == 1:
        return redirect("pages:staged", membership.workspace.slug, staged[0].pk)
    return redirect("pages:upload", membership.workspace.slug)


def _stage(file: UploadedFile[Any], request: HttpRequest, membership: Membership, form: UploadForm) -> list[Delivery]:
    return staging.stage_file(
        membership=membership,
        channel=ensure_channel(workspace=membership.workspace, name=Channel.DEFAULT),
        chunks=file.chunks(),
        choices=form.read(),
        remote_address=find_address(),
        file_name=file.name or "",
        content_type=file.content_type or "",
    )


def _answer(
    request: HttpRequest, membership: Membership, form: UploadForm, *, status: int = 200, refusal: str = ""
) -> HttpResponse:
    wait = {"Retry-After": "60"} if status == 503 else {}
    if request.headers.get("HX-Request"):
        words = refusal or "; ".join(str(error) for errors in form.errors.values() for error in errors)
        return HttpResponse(words, status=status, headers=wait, content_type="text/plain; charset=utf-8")
    context: dict[str, Any] = {
        "form": form,
        "refusal": refusal,
        "limit_bytes": settings.LIMITS["delivery_bytes"],
        "kept_hours": int(staging.KEPT_FOR.total_seconds() // 3600),
        "channels": list(list_channels(workspace=membership.workspace)),
        "waiting": [
            {"row": delivery, "expires_at": delivery.received_at + staging.KEPT_FOR}
            for delivery in staging.list_staged(membership=membership)
        ],
    }
    response = render_page(request, membership, "uploads/upload.html", context, section="upload", status=status)
    for name, value in wait.items():
        response[name] = value
    return response


def _render(
    request: HttpRequest, membership: Membership, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """A piece of page; never kept by a cache."""
    frame = {
        "workspace": membership.workspace,
        "membership": membership,
        "time_zone": membership.user.time_zone,
    }
    return render(request, template, {**frame, **context}, status=status)


@within_workspace("GET", "HEAD", "POST", needs="auditor")
def show_staged(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """A staged file: its beginning as it would be read; and what its sender decides."""
    delivery = staging.list_staged(membership=membership).filter(pk=delivery_id).first()
    if delivery is None:
        return _follow(membership, delivery_id)
    with timezone.override(ZoneInfo(membership.user.time_zone)):
        if request.method != "POST":
            return _show(request, membership, delivery)
        try:
            return _decide(request, membership, delivery)
        except staging.NotStagedError:
            return _follow(membership, delivery_id)
        except ValidationError as error:
            flashes.error(request, "; ".join(error.messages))
            url = reverse("pages:upload", args=[membership.workspace.slug])
            # A piece of a page cannot follow to another page by itself.
            is_piece = request.headers.get("HX-Request")
            return HttpResponse(headers={"HX-Redirect": url}) if is_piece else redirect(url)


def _follow(membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """What was staged is a delivery by now, or is gone."""
    if find_delivery(workspace=membership.workspace, delivery_id=delivery_id) is None:
        raise Http404
    return redirect("pages:delivery", membership.workspace.slug, delivery_id)


def _decide(request: HttpRequest, membership: Membership, delivery: Delivery) -> HttpResponse:
    action = request.POST.get("action")
    is_piece = "HX-Request" in request.headers
    slug = membership.workspace.slug
    if action == "discard":
        staging.discard(delivery=delivery)
        if is_piece:
            gone = _render(request, membership, "uploads/_discarded.html", {"name": delivery.file_name})
            return _replace_card(gone, delivery)
        flashes.success(request, f"{delivery.file_name} was discarded. Nothing of it is kept.")
        return redirect("pages:upload", slug)
    form = ReadingForm(
        request.POST,
        zone=membership.user.time_zone,
        is_final=action == "load",
        auto_id=f"reading-{delivery.pk}-%s",
    )
    if not form.is_valid():
        return _show(request, membership, delivery, form, status=200 if is_piece else 422)
    delivery = staging.choose(delivery=delivery, choices=form.read())
    if action != "load":
        return _show(request, membership, delivery, form)
    delivery = staging.load(delivery=delivery)
    if is_piece:
        progress = {"delivery": make_progress(delivery)}
        return _replace_card(_render(request, membership, "deliveries/_progress.html", progress), delivery)
    return redirect("pages:delivery", slug, delivery.pk)


def _show(
    request: HttpRequest,
    membership: Membership,
    delivery: Delivery,
    form: ReadingForm | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    context = {"card": make_card(delivery, membership, form)}
    if request.headers.get("HX-Request"):
        card = _render(request, membership, "uploads/_staged.html", context, status=status)
        has_errors = (form is not None and bool(form.errors)) or "had_errors" in request.POST
        return _replace_card(card, delivery) if has_errors else card
    return render_page(request, membership, "uploads/staged.html", context, section="upload", status=status)


def _replace_card(answer: HttpResponse, delivery: Delivery) -> HttpResponse:
    """Let this answer take the place of the whole card, and not only of what is told in it."""
    answer["HX-Retarget"], answer["HX-Reswap"] = f"#staged-{delivery.pk}", "outerHTML"
    answer["HX-Reselect"] = "unset"
    return answer


@within_workspace("POST", needs="auditor")
def decide_waiting(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Load all that this person has staged, each as it was chosen; or throw all of it away."""
    is_load = request.POST.get("action") == "load"
    done = 0
    for delivery in staging.list_staged(membership=membership):
        try:
            if is_load:
                staging.load(delivery=delivery)
            else:
                staging.discard(delivery=delivery)
            done += 1
        except staging.NotStagedError:
            continue  # Another window of the same person was quicker.
        except ValidationError as error:
            flashes.error(request, f"{delivery.file_name}: {'; '.join(error.messages)}")
    files = "1 file" if done == 1 else f"{done:,} files"
    if not is_load:
        flashes.success(request, f"Discarded: {files}. Nothing of them is kept.")
        return redirect("pages:upload", membership.workspace.slug)
    flashes.success(request, f"Loading {files}.")
    return redirect("pages:deliveries", membership.workspace.slug)
