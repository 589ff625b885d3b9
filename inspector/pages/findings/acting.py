"""What auditors make of findings: decisions, snoozes and assignments, of one or of several at once."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from inspector.accounts.models import Membership, User
from inspector.audit.findings.services import assign, judge, list_assignable, list_open, snooze
from inspector.audit.models import Finding

from ..shell import render_page, within_workspace
from .rows import SNOOZES, offer_acts

NOBODY: Final = "nobody"


@within_workspace("POST", needs="auditor")
def judge_findings(request: HttpRequest, membership: Membership) -> HttpResponse:
    """What an auditor makes of the findings that were chosen; a refusal gives the form back as it was filled in."""
    chosen = _read_chosen(request)
    people = list_assignable(workspace=membership.workspace)
    opened = list_open(workspace=membership.workspace, findings=chosen)
    try:
        count, done = _act(request, membership, chosen, people)
    except ValidationError as error:
        context: dict[str, Any] = {
            "error": " ".join(error.messages),
            "chosen": chosen,
            "said": request.POST,
            **offer_acts(membership),
            "people": people,
            "next": find_way_back(request, membership),
        }
        return render_page(request, membership, "findings/judge.html", context, section="findings", status=422)
    words = "1 finding is" if count == 1 else f"{count:,} findings are"
    rest = len(chosen) - count
    stood = f" {rest:,} stood so before, or are not here." if rest else ""
    # The next page offers to undo it for those that were open.
    is_undone = request.POST.get("state") != Finding.State.OPEN and "act" not in request.POST
    closed = " ".join(map(str, opened)) if is_undone else ""
    flashes.success(request, f"{words} now {done}.{stood}", extra_tags=closed)
    return redirect(find_way_back(request, membership))


def _act(
    request: HttpRequest, membership: Membership, chosen: Sequence[uuid.UUID], people: Sequence[User]
) -> tuple[int, str]:
    """Do what the form says. Of how many findings it was done, and how they are now."""
    if not chosen:
        raise ValidationError("Choose at least one finding of the list first.")
    if request.POST.get("act") == "assign":
        person = _read_assignee(request, people)
        count = assign(membership=membership, findings=chosen, assignee=person)
        return count, f"assigned to {person.get_username() if person else 'nobody'}"
    state, reason = request.POST.get("state", ""), request.POST.get("reason", "")
    if state not in SNOOZES:
        count = judge(membership=membership, findings=chosen, state=state, reason=reason)
        return count, f"kept as {Finding.State(state).label.lower()}"
    until = timezone.now() + timedelta(days=SNOOZES[state][0])
    count = snooze(membership=membership, findings=chosen, until=until, reason=reason)
    return count, f"snoozed until {until:%Y-%m-%d %H:%M} UTC"


def _read_assignee(request: HttpRequest, people: Sequence[User]) -> User | None:
    named = request.POST.get("assignee", "")
    if named == NOBODY:
        return None
    person = next((each for each in people if str(each.pk) == named), None)
    if person is None:
        raise ValidationError("Choose a person first, or nobody.")
    return person


def find_way_back(request: HttpRequest, membership: Membership) -> str:
    """The page a form was on, where that is one of this workspace; else the list of findings."""
    way = request.POST.get("next", "")
    slug = membership.workspace.slug
    home = reverse("pages:overview", args=[slug]).removesuffix("overview/")
    if url_has_allowed_host_and_scheme(way, allowed_hosts=None) and way.startswith(home):
        return way
    return reverse("pages:findings", args=[slug])


def _read_chosen(request: HttpRequest) -> list[uuid.UUID]:
    chosen = []
    for text in request.POST.getlist("finding"):
        try:
            chosen.append(uuid.UUID(text))
        except ValueError:
            continue
    return chosen
