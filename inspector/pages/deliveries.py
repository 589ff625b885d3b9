"""Deliveries: the list, the receipt of one, its progress, its problems as a file, and withdrawing it.

Dead letters stand here too: what could not be read or finished after three attempts, why, and another try.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership, Workspace
from inspector.api.deliveries import estimate_told
from inspector.audit.findings.selectors import count_open_by_severity, of_delivery
from inspector.audit.findings.storing import is_noted
from inspector.database import or_404
from inspector.erasing import find_erased
from inspector.intake.identity import list_warnings
from inspector.intake.letters import retry
from inspector.intake.models import DeadLetter, Delivery, Door, Job, Withdrawal
from inspector.intake.selectors import (
    Progress,
    find_delivery,
    find_progress,
    has_dead_letters,
    list_deliveries,
    list_given_up,
    list_letters,
    list_problems,
)
from inspector.intake.staging import read_choices
from inspector.intake.withdrawals import (
    count_hidden_of,
    find_withdrawals,
    is_weighing,
    is_weighing_any,
    list_withdrawals,
    take_back,
    withdraw_delivery,
)
from inspector.threads.models import Message
from inspector.threads.selectors import find_work, list_conversations_of

from .answers import answer_rows
from .lists import list_page
from .shell import (
    parse_id,
    read_id,
    read_number,
    render_page,
    render_part,
    require_auditor,
    within_workspace,
    write_query,
)
from .shown.told import name_delivery, name_dialect, name_opened, shorten
from .templatetags.marks import size

STAGES = (
    ("framing", "Splitting into records"),
    ("reading", "Decoding"),
    ("settling", "Building threads"),
    ("examining", "Checking by rules"),
    ("done", "Done"),
)


def make_progress(delivery: Delivery, *, is_receipt: bool = False) -> dict[str, Any]:
    """What `_progress.html` shows of a delivery."""
    progress = find_progress(delivery=delivery)
    phase = find_phase(delivery, progress)
    total = max(progress.size_bytes, progress.framed_bytes)
    lines = f" · {progress.lines:,} lines" if progress.lines is not None else ""
    bars = {
        "receiving": (0, 0, f"{size(progress.framed_bytes)} so far · {delivery.received:,} records"),
        "framing": (
            progress.framed_bytes,
            total,
            f"{size(progress.framed_bytes)} of {size(total)}{lines} · {delivery.received:,} records",
        ),
        "reading": (
            progress.read,
            progress.stored,
            f"{progress.read:,} of {progress.stored:,} records read{_tell_wait(delivery, progress)}",
        ),
        "settling": (0, 0, "its conversations are being built"),
        "examining": (0, 0, "the rules look at its conversations"),
        "weighing": (0, 0, "its records are being hidden or shown, as the withdrawals in force say"),
    }
    done, total, words = bars.get(phase, (0, 0, ""))
    counts = {}
    if phase == "done":
        counts = count_open_by_severity(workspace=delivery.workspace, within=of_delivery(delivery.pk))
    return {
        "row": delivery,
        "findings": [
            {"severity": severity, "count": count, "name": Message.Severity(severity).label.lower()}
            for severity, count in counts.items()
        ],
        "findings_count": sum(counts.values()),
        "name": name_delivery(delivery),
        "phase": phase,
        "stages": _list_stages(phase),
        "words": words,
        "done": done,
        "total": total,
        "failure": progress.failure,
        "set_aside": progress.set_aside,
        "is_receipt": is_receipt,
    }


def _tell_wait(delivery: Delivery, progress: Progress) -> str:
    """How long it takes until what is posted is told, as its receipt says; of a file that is begun nobody knows."""
    seconds = estimate_told() if delivery.door == Door.API and not progress.read else 0
    return f" · processed in about {seconds:,} s" if seconds else ""


def find_phase(delivery: Delivery, progress: Progress) -> str:
    """Where a delivery stands.

    While it goes on: receiving, framing, reading, settling, examining, weighing. At its end: done; quarantined, where
    nothing of it is text; empty, where it holds no record; broken, where it could not be read to its end; stuck, where
    the work on it was given up.
    """
    if progress.failure and not delivery.failure:
        return "stuck"
    if not progress.is_framed:
        return delivery.state
    if not progress.is_read:
        return "reading"
    if is_weighing(delivery=delivery):
        return "weighing"
    work = find_work(delivery=delivery)
    if work == Job.Kind.RESOLVE:
        return "settling"
    # What a matter of time has just made a finding is counted a moment later.
    if work == Job.Kind.EXAMINE or not is_noted(channel_id=delivery.channel_id):
        return "examining"
    return "broken" if progress.failure else _name_end(delivery)


def _list_stages(phase: str) -> list[dict[str, Any]]:
    names = [name for name, _ in STAGES]
    at = names.index(phase) if phase in names else names.index("settling") if phase == "weighing" else 0
    return [
        {"name": words, "is_current": number == at, "is_past": number < at} for number, (_, words) in enumerate(STAGES)
    ]


PAGE_ROWS = 50

PAGE_PROBLEMS = 100

MAX_ACTS = 20

MAX_CONVERSATIONS = 20

# So many hidden records are counted.
MAX_COUNTED = 10_000


@within_workspace("GET")
def show_deliveries(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The list of deliveries, newest first, by keyset."""
    workspace = membership.workspace
    rows = partial(list_deliveries, workspace=workspace)
    page, pages = list_page(request, membership, rows, PAGE_ROWS, "received_at")
    withdrawn = find_withdrawals(delivery_ids=[delivery.pk for delivery in page])
    context = {
        "rows": [
            {
                "name": name_delivery(delivery),
                "delivery": delivery,
                "sent_by": name_sender(delivery),
                "state": "withdrawn" if delivery.pk in withdrawn else _name_state(delivery),
            }
            for delivery in page
        ],
        **pages,
        "has_dead_letters": has_dead_letters(workspace=workspace),
    }
    return render_page(request, membership, "deliveries/deliveries.html", context, section="deliveries")


def _name_state(delivery: Delivery) -> str:
    if delivery.is_framed and delivery.read + delivery.set_aside < delivery.stored:
        return "reading"
    if delivery.state == Delivery.State.BROKEN:
        return "broken"
    return delivery.state if delivery.state != Delivery.State.FRAMED else _name_end(delivery)


def _name_end(delivery: Delivery) -> str:
    if not delivery.received:
        return "empty"
    return "done" if delivery.stored or delivery.duplicate else "quarantined"


def name_sender(delivery: Delivery) -> str:
    """Who sent it: a person, a key by its name, or the command line."""
    if delivery.sent_by_user is not None:
        return delivery.sent_by_user.get_username()
    if delivery.sent_by_key is not None:
        return f"key {delivery.sent_by_key.name}"
    return "operator" if delivery.door == Door.IMPORT else "unknown sender"


def find_here(*, workspace: Workspace, delivery_id: uuid.UUID) -> Delivery | None:
    """The delivery of that id with its workspace, or None."""
    if delivery := find_delivery(workspace=workspace, delivery_id=delivery_id):
        delivery.workspace = workspace
    return delivery


@within_workspace("GET", of=find_here)
def show_delivery(request: HttpRequest, membership: Membership, delivery: Delivery) -> HttpResponse:
    """The receipt of a delivery: custody, counts, problems and warnings."""
    return answer_delivery(request, membership, delivery)


def answer_delivery(
    request: HttpRequest, membership: Membership, delivery: Delivery, *, error: str = "", status: int = 200
) -> HttpResponse:
    """The page of a delivery; `error` says why an act was refused."""
    after = read_number(request, "after", default=-1)
    problems = list(list_problems(delivery=delivery, after=after, limit=PAGE_PROBLEMS + 1))
    reached = list_conversations_of(delivery=delivery, limit=MAX_CONVERSATIONS + 1)
    shown = problems[:PAGE_PROBLEMS]
    warned = list_warnings(delivery.warnings)
    acts = list(list_withdrawals(delivery=delivery)[:MAX_ACTS])
    context = {
        "delivery": {**make_progress(delivery, is_receipt=True), **_describe(delivery)},
        "problems": shown,
        "more_problems_url": write_query(request, after=str(shown[-1].index))
        if len(problems) > PAGE_PROBLEMS
        else None,
        "warned": warned,
        "warning_counts": sorted(warned.counts.items()),
        "conversations": [
            {"row": conversation, "title": shorten(name_opened(conversation))}
            for conversation in reached[:MAX_CONVERSATIONS]
        ],
        "has_more_conversations": len(reached) > MAX_CONVERSATIONS,
        # Only the newest can be in force.
        "withdrawal": _describe_withdrawal(delivery, acts[0]) if acts and acts[0].taken_back_at is None else None,
        "returning": _describe_return(delivery) if acts and acts[0].taken_back_at else None,
        "erased": find_erased(delivery=delivery),
        "acts": acts,
        "may_withdraw": membership.is_auditor and delivery.is_framed,
        "error": error,
    }
    return render_page(request, membership, "deliveries/delivery.html", context, section="deliveries", status=status)


def _describe_withdrawal(delivery: Delivery, withdrawal: Withdrawal) -> dict[str, Any]:
    is_under_way = is_weighing(delivery=delivery)
    hidden = count_hidden_of(delivery=delivery, limit=MAX_COUNTED + 1)
    # What is not hidden yet is held by nobody else for that; nor is what a job of another delivery is about to hide.
    is_known = not is_under_way and not is_weighing_any(workspace_id=delivery.workspace_id)
    return {
        "row": withdrawal,
        "hidden": hidden,
        "kept": max(0, delivery.received - hidden) if is_known else 0,
        "is_counted": hidden <= MAX_COUNTED,
        "is_under_way": is_under_way,
    }


def _describe_return(delivery: Delivery) -> dict[str, Any] | None:
    """How many records a withdrawal that was undone still hides; None where all are shown again."""
    if not is_weighing(delivery=delivery):
        return None
    hidden = count_hidden_of(delivery=delivery, limit=MAX_COUNTED + 1)
    return {"hidden": hidden, "is_counted": hidden <= MAX_COUNTED}


def _describe(delivery: Delivery) -> dict[str, Any]:
    said = delivery.options
    loaded_at = said.get("loaded_at")
    return {
        "sent_by": name_sender(delivery),
        "loaded_at": datetime.fromisoformat(loaded_at) if loaded_at else None,
        "sha256": bytes(delivery.sha256).hex() if delivery.sha256 else "",
        "container": said.get("container") or "",
        "archive": said.get("archive"),
        "overrides": _list_overrides(delivery),
    }


def _list_overrides(delivery: Delivery) -> list[str]:
    """What was said of the whole delivery, in words; nothing where it was read as it came."""
    choices = read_choices(delivery)
    words = []
    if choices.dialect:
        words.append(f"every record read as {name_dialect(choices.dialect)}")
    if not choices.has_prefixes:
        words.append("prefixes left in the text")
    if len(choices.speakers) == 2:
        words.append(f"where nothing says who speaks, {choices.speakers[0]} and {choices.speakers[1]} in turns")
    elif choices.speakers:
        words.append(f"where nothing says who speaks, {choices.speakers[0]}")
    if choices.start:
        words.append(f"records without a time begin at {choices.start:%Y-%m-%d %H:%M} UTC")
    return words


@within_workspace("GET", of=find_here)
def show_progress(request: HttpRequest, membership: Membership, delivery: Delivery) -> HttpResponse:
    """How far a delivery is: the piece of page that asks for itself again until it is done."""
    progress = make_progress(delivery, is_receipt="receipt" in request.GET)
    return render_part(request, membership, "deliveries/_progress.html", {"delivery": progress})


@within_workspace("POST", of=find_here)
def withdraw(request: HttpRequest, membership: Membership, delivery: Delivery) -> HttpResponse:
    """Withdraw the delivery: what no other delivery holds is hidden."""
    done = "Withdrawn. Nothing is erased, and you can take it back."
    return _act(request, membership, delivery, withdraw_delivery, done)


@within_workspace("POST", of=find_here)
def undo(request: HttpRequest, membership: Membership, delivery: Delivery) -> HttpResponse:
    """Undo the withdrawal: its records are shown again."""
    return _act(request, membership, delivery, take_back, "The withdrawal is undone.")


def _act(
    request: HttpRequest, membership: Membership, delivery: Delivery, act: Callable[..., object], done: str
) -> HttpResponse:
    require_auditor(membership)
    try:
        act(membership=membership, delivery=delivery, reason=request.POST.get("reason", ""))
    except ValidationError as error:
        return answer_delivery(request, membership, delivery, error="; ".join(error.messages), status=422)
    flashes.success(request, done)
    return redirect("pages:delivery", membership.workspace.slug, delivery.pk)


COLUMNS: Final = ("record", "line", "byte", "bytes", "outcome", "reason", "record_id", "raw")

_PAGE: Final = 1000


@within_workspace("GET", of=find_here)
def download(request: HttpRequest, membership: Membership, delivery: Delivery, form: str) -> StreamingHttpResponse:
    """The problems of a delivery as a list."""
    return answer_rows(_list_rows(delivery), COLUMNS, form=form, name=f"problems-{delivery.pk}")


def _list_rows(delivery: Delivery) -> Iterator[dict[str, Any]]:
    after = -1
    while page := list(list_problems(delivery=delivery, after=after, limit=_PAGE)):
        for problem in page:
            yield {
                "record": problem.index + 1,
                "line": problem.line,
                "byte": problem.offset,
                "bytes": problem.length,
                "outcome": problem.outcome,
                "reason": problem.reason,
                "record_id": str(problem.record_id),
                "raw": reverse("api:raw", args=[problem.record_id]),
            }
        after = page[-1].index


# What a kind of work is called, and which page shows its subject.
WORK = {
    Job.Kind.FRAME: ("Cutting into records", "delivery"),
    Job.Kind.INGEST: ("Reading the records of", "delivery"),
    Job.Kind.WEIGH: ("Hiding or showing the records of", "delivery"),
    Job.Kind.RESOLVE: ("Processing a conversation", "conversation"),
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
    letters = partial(list_letters, workspace=workspace, delivery=delivery)
    page, pages = list_page(request, membership, letters, PAGE_ROWS, "created_at")
    given_up = [] if delivery or pages["newest_url"] else list_given_up(workspace=workspace)
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
        **pages,
    }
    return render_page(request, membership, "dead_letters/dead_letters.html", context, section="deliveries")


@within_workspace("POST", needs="auditor")
def retry_dead_letters(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Try again: what the form names, or everything."""
    count = retry(membership=membership, ids=[or_404(parse_id(text)) for text in request.POST.getlist("id")] or None)
    if count:
        flashes.success(request, f"{count:,} {'is' if count == 1 else 'are'} tried again, up to three times.")
    else:
        flashes.error(request, "There is nothing to try again: somebody was quicker, or it is being tried now.")
    return redirect("pages:dead-letters", membership.workspace.slug)


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
