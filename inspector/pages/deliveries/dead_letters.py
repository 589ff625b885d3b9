"""Dead letters: what could not be read or finished after three attempts, why, and another try."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages as flashes
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.intake.letters import retry
from inspector.intake.models import DeadLetter, Delivery, Job
from inspector.intake.selectors import find_delivery, list_given_up, list_letters
from inspector.lookups import or_404

from ..shell import cut_page, read_id, read_place, render_page, turn_pages, within_workspace
from .progress import name_delivery

PAGE_ROWS = 50
# What a kind of work is called, and which page shows its subject.
WORK = {
    Job.Kind.FRAME: ("Cutting into records", "delivery"),
    Job.Kind.INGEST: ("Reading the records of", "delivery"),
    Job.Kind.WEIGH: ("Hiding or showing the records of", "delivery"),
    Job.Kind.SETTLE: ("Processing a conversation", "conversation"),
    Job.Kind.OPEN: ("Opening what is sealed in", "conversation"),
    Job.Kind.TRACE: ("Drawing the tree of", "trace"),
    Job.Kind.EXPORT: ("Writing", "export"),
    Job.Kind.EXAMINE: ("Applying the rules to", "conversation"),
    Job.Kind.ALERT: ("Sending one of", "list of alerts"),
    Job.Kind.VERIFY: ("Verifying", "ledger"),
    Job.Kind.ERASE: ("Finishing", "erasure"),
}
# What has no page of its own: all of them stand on one.
_SHARED_PAGES = {
    Job.Kind.ALERT: "pages:alerts",
    Job.Kind.VERIFY: "pages:integrity",
    Job.Kind.ERASE: "pages:retention",
}


@within_workspace("GET")
def show_dead_letters(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Records that were set aside, last first, by keyset; before them the work that was given up as a whole."""
    workspace = membership.workspace
    delivery = _read_delivery(request, membership)
    before = read_place(request, membership)
    page, last = cut_page(
        list_letters(workspace=workspace, delivery=delivery, before=before, limit=PAGE_ROWS + 1), PAGE_ROWS
    )
    given_up = [] if delivery or before else list_given_up(workspace=workspace)
    rows = [
        {
            "letter": letter,
            "record": letter.sighting.index + 1,
            "delivery": name_delivery(letter.delivery),
            "is_dead": letter.state == DeadLetter.State.DEAD,
        }
        for letter in page
    ]
    context = {
        "work": [_describe_work(job, workspace.slug) for job in given_up],
        "rows": rows,
        "delivery": {"name": name_delivery(delivery), "id": delivery.pk} if delivery else None,
        "may_retry": membership.is_auditor and bool(given_up or any(row["is_dead"] for row in rows)),
        **turn_pages(request, membership, (last.created_at, last.pk) if last else None),
    }
    return render_page(request, membership, "dead_letters/dead_letters.html", context, section="deliveries")


@within_workspace("POST", needs="auditor")
def retry_dead_letters(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Try again: what the form names, or everything."""
    count = retry(membership=membership, ids=_read_ids(request))
    if count:
        flashes.success(request, f"{count:,} {'is' if count == 1 else 'are'} tried again, up to three times.")
    else:
        flashes.error(request, "There is nothing to try again: somebody was quicker, or it is being tried now.")
    return redirect("pages:dead-letters", membership.workspace.slug)


def _read_ids(request: HttpRequest) -> list[uuid.UUID] | None:
    if "id" not in request.POST:
        return None
    try:
        return [uuid.UUID(text) for text in request.POST.getlist("id")]
    except ValueError as error:
        raise Http404 from error


def _read_delivery(request: HttpRequest, membership: Membership) -> Delivery | None:
    delivery_id = read_id(request, "delivery")
    return or_404(find_delivery(workspace=membership.workspace, delivery_id=delivery_id)) if delivery_id else None


def _describe_work(job: Job, slug: str) -> dict[str, Any]:
    words, page = WORK[Job.Kind(job.kind)]
    return {
        "words": words,
        "url": reverse(_SHARED_PAGES[Job.Kind(job.kind)], args=[slug])
        if job.kind in _SHARED_PAGES
        else reverse(f"pages:{page}", args=[slug, job.subject]),
        "page": page,
        "job": job,
    }
