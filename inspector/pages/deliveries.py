"""Deliveries: the list, the receipt of one, and its progress while it is being taken in."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from inspector.accounts.models import Membership
from inspector.intake.models import Delivery
from inspector.intake.selectors import (
    Progress,
    find_delivery,
    find_progress,
    has_dead_letters,
    list_deliveries,
    list_problems,
)
from inspector.search.cursors import write_cursor
from inspector.threads.summaries import is_settling, list_conversations_of

from .shell import read_number, read_place, render_page, within_workspace, write_query
from .told import name_conversation, shorten

PAGE_ROWS = 50
PAGE_PROBLEMS = 100
MOST_CONVERSATIONS = 20


@require_GET
@within_workspace
def show_deliveries(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The list of deliveries, newest first, by keyset."""
    workspace = membership.workspace
    before = read_place(request, membership)
    found = list_deliveries(workspace=workspace, before=before, limit=PAGE_ROWS + 1)
    page = found[:PAGE_ROWS]
    has_more = len(found) > PAGE_ROWS
    cursor = write_cursor((page[-1].received_at, page[-1].pk), workspace.pk) if has_more else None
    context = {
        "rows": [_make_row(delivery, workspace.slug) for delivery in page],
        "older_url": write_query(request, before=cursor) if cursor else None,
        "newest_url": write_query(request, before=None) if before else None,
        "has_dead_letters": has_dead_letters(workspace=workspace),
    }
    return render_page(request, membership, "deliveries/deliveries.html", context, section="deliveries")


def _make_row(delivery: Delivery, slug: str) -> dict[str, Any]:
    is_reading = delivery.is_framed and delivery.read + delivery.set_aside < delivery.stored
    ends = {Delivery.State.FRAMED: "done", Delivery.State.BROKEN: "broken"}
    return {
        "url": reverse("pages:delivery", args=[slug, delivery.pk]),
        "name": name_delivery(delivery),
        "door": delivery.get_door_display(),
        "sent_by": name_sender(delivery),
        "at": delivery.received_at,
        "size_bytes": delivery.size_bytes,
        "channel": delivery.channel.name,
        "state": "reading" if is_reading else ends.get(Delivery.State(delivery.state), delivery.state),
        "stored": delivery.stored,
        "duplicate": delivery.duplicate,
        "quarantined": delivery.quarantined,
    }


def name_delivery(delivery: Delivery) -> str:
    """The file's name, else the door it came through."""
    return delivery.file_name or f"{delivery.get_door_display()} of {delivery.received:,} records"


def name_sender(delivery: Delivery) -> str:
    """Who sent it: a person, a key by its name, or the command line."""
    if delivery.sent_by_user is not None:
        return delivery.sent_by_user.get_username()
    if delivery.sent_by_key is not None:
        return f"key {delivery.sent_by_key.name}"
    return "nobody named"


@require_GET
@within_workspace
def show_delivery(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """The receipt of a delivery: custody, counts, and what could not be taken as it was."""
    delivery = _find(membership, delivery_id)
    slug = membership.workspace.slug
    after = read_number(request, "after", default=-1)
    problems = list(list_problems(delivery=delivery, after=after, limit=PAGE_PROBLEMS + 1))
    reached = list(list_conversations_of(delivery=delivery, limit=MOST_CONVERSATIONS + 1))
    shown = problems[:PAGE_PROBLEMS]
    context = {
        "delivery": {**make_progress(delivery, slug, is_receipt=True), **_describe(delivery)},
        "problems": [
            {
                "index": problem.index + 1,
                "line": problem.line,
                "offset": problem.offset,
                "outcome": problem.get_outcome_display().lower(),
                "reason": problem.reason,
                "url": reverse("pages:raw", args=[slug, problem.record_id]) if membership.is_auditor else "",
            }
            for problem in shown
        ],
        "more_problems_url": write_query(request, after=str(shown[-1].index))
        if len(problems) > PAGE_PROBLEMS
        else None,
        "conversations": [
            {
                "url": reverse("pages:conversation", args=[slug, conversation.pk]),
                "title": shorten(name_conversation(conversation)),
                "count": conversation.message_count,
            }
            for conversation in reached[:MOST_CONVERSATIONS]
        ],
        "has_more_conversations": len(reached) > MOST_CONVERSATIONS,
    }
    return render_page(request, membership, "deliveries/delivery.html", context, section="deliveries")


def _find(membership: Membership, delivery_id: uuid.UUID) -> Delivery:
    delivery = find_delivery(workspace=membership.workspace, delivery_id=delivery_id)
    if delivery is None:
        raise Http404
    return delivery


def _describe(delivery: Delivery) -> dict[str, Any]:
    return {
        "door": delivery.get_door_display(),
        "sent_by": name_sender(delivery),
        "remote_address": delivery.remote_address,
        "content_type": delivery.content_type,
        "channel": delivery.channel.name,
        "at": delivery.received_at,
        "framed_at": delivery.framed_at,
        "declared_start": delivery.declared_start,
        "size_bytes": delivery.size_bytes,
        "sha256": bytes(delivery.sha256).hex() if delivery.sha256 else "",
    }


@require_GET
@within_workspace
def show_progress(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """How far a delivery is: the piece of page that asks for itself again until it is done."""
    delivery = _find(membership, delivery_id)
    progress = make_progress(delivery, membership.workspace.slug, is_receipt="receipt" in request.GET)
    response = render(request, "deliveries/_progress.html", {"delivery": progress})
    response["Cache-Control"] = "no-store, private"
    return response


def make_progress(delivery: Delivery, slug: str, *, is_receipt: bool = False) -> dict[str, Any]:
    """What `_progress.html` shows of a delivery."""
    progress = find_progress(delivery=delivery)
    phase = _find_phase(delivery, progress)
    bars = {
        "receiving": (0, 0, "waits to be framed"),
        "framing": (
            progress.framed_bytes,
            max(progress.size_bytes, progress.framed_bytes),
            f"{delivery.received:,} records found so far",
        ),
        "reading": (progress.read, progress.stored, f"{progress.read:,} of {progress.stored:,} records read"),
        "settling": (0, 0, "its conversations are being told"),
    }
    done, total, words = bars.get(phase, (0, 0, ""))
    address = reverse("pages:progress", args=[slug, delivery.pk])
    return {
        "id": delivery.pk,
        "name": name_delivery(delivery),
        "url": reverse("pages:delivery", args=[slug, delivery.pk]),
        "progress_url": f"{address}?receipt" if is_receipt else address,
        "conversations_url": reverse("pages:conversations", args=[slug]),
        "phase": phase,
        "words": words,
        "done": done,
        "total": total,
        "failure": progress.failure,
        "set_aside": progress.set_aside,
        "is_given_up": bool(progress.failure and not delivery.failure),
        "letters_url": reverse("pages:dead-letters", args=[slug]),
        "is_receipt": is_receipt,
        "received": delivery.received,
        "stored": delivery.stored,
        "duplicate": delivery.duplicate,
        "quarantined": delivery.quarantined,
    }


def _find_phase(delivery: Delivery, progress: Progress) -> str:
    if progress.failure:
        return "broken"
    if not progress.is_framed:
        return delivery.state
    if not progress.is_read:
        return "reading"
    return "settling" if is_settling(delivery=delivery) else "done"
