"""Deliveries: the list, the receipt of one, and its progress while it is being taken in, and withdrawing it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from inspector.accounts.models import Membership
from inspector.erasing.requests import find_erased
from inspector.intake.models import Delivery, Door, Withdrawal
from inspector.intake.selectors import find_delivery, has_dead_letters, list_deliveries, list_problems
from inspector.intake.services import take_back, withdraw_delivery
from inspector.intake.staging import read_choices
from inspector.intake.warnings import list_warnings
from inspector.intake.withdrawals import count_hidden_of, find_withdrawals, list_withdrawals
from inspector.lookups import or_404
from inspector.threads.selectors import list_conversations_of

from ..shell import (
    cut_page,
    read_id,
    read_number,
    read_place,
    render_page,
    require_auditor,
    turn_pages,
    within_workspace,
    write_query,
)
from ..shown.told import name_dialect, name_opened, shorten
from .progress import make_progress, name_delivery

PAGE_ROWS = 50
PAGE_PROBLEMS = 100
MAX_ACTS = 20
MAX_CONVERSATIONS = 20


@within_workspace("GET")
def show_deliveries(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The list of deliveries, newest first, by keyset."""
    workspace = membership.workspace
    before = read_place(request, membership)
    page, last = cut_page(list_deliveries(workspace=workspace, before=before, limit=PAGE_ROWS + 1), PAGE_ROWS)
    withdrawn = find_withdrawals(delivery_ids=[delivery.pk for delivery in page])
    context = {
        "rows": [_make_row(delivery, withdrawn) for delivery in page],
        **turn_pages(request, membership, (last.received_at, last.pk) if last else None),
        "has_dead_letters": has_dead_letters(workspace=workspace),
    }
    return render_page(request, membership, "deliveries/deliveries.html", context, section="deliveries")


def _make_row(delivery: Delivery, withdrawn: Mapping[uuid.UUID, Withdrawal]) -> dict[str, Any]:
    return {
        "name": name_delivery(delivery),
        "delivery": delivery,
        "sent_by": name_sender(delivery),
        "state": "withdrawn" if delivery.pk in withdrawn else _name_state(delivery),
    }


def _name_state(delivery: Delivery) -> str:
    if delivery.is_framed and delivery.read + delivery.set_aside < delivery.stored:
        return "reading"
    if delivery.state == Delivery.State.BROKEN:
        return "broken"
    if delivery.state != Delivery.State.FRAMED:
        return delivery.state
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


@within_workspace("GET")
def show_delivery(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """The receipt of a delivery: custody, counts, problems and warnings."""
    return answer_delivery(request, membership, get_delivery(membership, delivery_id))


def answer_delivery(
    request: HttpRequest, membership: Membership, delivery: Delivery, *, error: str = "", status: int = 200
) -> HttpResponse:
    """The page of a delivery; `error` says why an act was refused."""
    after = read_number(request, "after", default=-1)
    problems = list(list_problems(delivery=delivery, after=after, limit=PAGE_PROBLEMS + 1))
    reached = list(list_conversations_of(delivery=delivery, limit=MAX_CONVERSATIONS + 1))
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
        "erased": find_erased(delivery=delivery),
        "acts": acts,
        "may_withdraw": membership.is_auditor and delivery.is_framed,
        "error": error,
    }
    return render_page(request, membership, "deliveries/delivery.html", context, section="deliveries", status=status)


def get_delivery(membership: Membership, delivery_id: uuid.UUID) -> Delivery:
    """The delivery of that id in the reader's workspace. Http404 where there is none."""
    delivery = or_404(find_delivery(workspace=membership.workspace, delivery_id=delivery_id))
    delivery.workspace = membership.workspace
    return delivery


def describe_named(request: HttpRequest, membership: Membership) -> dict[str, Any] | None:
    """The delivery whose conversations an address asks for: {id, name}; None for none.

    Raises:
        Http404: for one that is not there.
    """
    delivery_id = read_id(request, "delivery")
    if delivery_id is None:
        return None
    delivery = get_delivery(membership, delivery_id)
    return {"id": delivery.pk, "name": name_delivery(delivery)}


def _describe_withdrawal(delivery: Delivery, withdrawal: Withdrawal) -> dict[str, Any]:
    hidden = count_hidden_of(delivery=delivery)
    return {
        "row": withdrawal,
        "hidden": hidden,
        "kept": max(0, delivery.received - hidden),
        "is_counted": hidden <= 10_000,
    }


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


@within_workspace("GET")
def show_progress(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """How far a delivery is: the piece of page that asks for itself again until it is done."""
    delivery = get_delivery(membership, delivery_id)
    progress = make_progress(delivery, is_receipt="receipt" in request.GET)
    return render(request, "deliveries/_progress.html", {"delivery": progress, "workspace": membership.workspace})


@within_workspace("POST")
def withdraw(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """Withdraw the delivery: what no other delivery holds is hidden."""
    done = "Withdrawn. Nothing is erased, and you can take it back."
    return _act(request, membership, delivery_id, withdraw_delivery, done)


@within_workspace("POST")
def undo(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """Undo the withdrawal: its records are shown again."""
    return _act(request, membership, delivery_id, take_back, "The withdrawal is undone.")


def _act(
    request: HttpRequest, membership: Membership, delivery_id: uuid.UUID, act: Callable[..., object], done: str
) -> HttpResponse:
    delivery = get_delivery(membership, delivery_id)
    require_auditor(membership)
    try:
        act(membership=membership, delivery=delivery, reason=request.POST.get("reason", ""))
    except ValidationError as error:
        return answer_delivery(request, membership, delivery, error="; ".join(error.messages), status=422)
    flashes.success(request, done)
    return redirect("pages:delivery", membership.workspace.slug, delivery.pk)
