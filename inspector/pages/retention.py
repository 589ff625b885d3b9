"""Retention: how long messages are kept, what holds stop, and erasing after a preview and a confirmation."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect

from inspector.accounts.models import Channel, Membership
from inspector.database import make_storable
from inspector.erasing import Target, ask_to_erase, count_expired, preview
from inspector.keyring.selectors import list_period_keys
from inspector.retention.selectors import find_rules, list_erasures, list_holds
from inspector.retention.services import MAX_DAYS, lift_hold, place_hold, set_retention

from .shell import render_page, within_workspace

SHOWN: Final = 50


@within_workspace("GET", needs="owner")
def show_retention(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Rules and holds in force, the latest erasures, and the forms for more."""
    return _answer(request, membership)


@within_workspace("POST", needs="owner")
def act(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Set a rule, place or lift a hold, preview an erasure or confirm it, as `action` says."""
    given, seen = request.POST, None
    try:
        if given.get("action") == "set":
            days, channel = _read_days(given), _find(membership, given)
            if days and not given.get("is_sure"):
                count, first = count_expired(workspace_id=membership.workspace_id, channel=channel, days=days)
                return _answer(
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
                return _answer(request, membership, {**seen, "reason": given.get("reason", "")})
            ask_to_erase(membership=membership, target=target, reason=given.get("reason", ""))
            said = "It is being erased. The list below says when all is gone."
    except ValidationError as error:
        flashes.error(request, f"Nothing was done: {'; '.join(error.messages)}.")
        return _answer(request, membership, status=422)
    flashes.success(request, said)
    return redirect("pages:retention", membership.workspace.slug)


def _answer(
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
    try:
        return uuid.UUID(text.strip())
    except ValueError as error:
        raise ValidationError("give the id of the record or delivery, as its page shows it") from error


def _read_target(given: QueryDict) -> Target:
    kind, what = given.get("kind", ""), given.get("what", "")
    if kind == "person":
        return Target(kind=kind, name=what, is_both=bool(given.get("is_both")))
    if kind == "period":
        return Target(kind=kind, name=what.strip())
    return Target(kind=kind, subject=_read_id(what))
