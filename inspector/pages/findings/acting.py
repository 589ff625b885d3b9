"""What auditors do about findings: decisions, snoozes and assignments, of one or of several at once; setting a rule,
suppressing what it finds, and lifting that.
"""

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
from inspector.audit.findings.examining import find_suppression
from inspector.audit.findings.selectors import find_finding
from inspector.audit.findings.services import (
    assign,
    judge,
    lift,
    list_assignable,
    list_open,
    set_rule,
    snooze,
    suppress,
)
from inspector.audit.models import Finding
from inspector.audit.rules import RULES, Rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.database import or_404
from inspector.threads.models import Conversation

from ..shell import render_page, require_auditor, within_workspace
from .rows import SNOOZES, offer_acts
from .views import answer_rule

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


@within_workspace("POST", needs="owner")
def set_one(request: HttpRequest, membership: Membership) -> HttpResponse:
    """An owner switches a rule on or off, or grades it anew."""
    rule = RULES.get(request.POST.get("rule", ""))
    if rule is None:
        return _refuse_unknown(request, membership)
    try:
        set_rule(
            membership=membership,
            rule=rule.code,
            is_on=request.POST.get("is_on") != "no",
            severity=_read_grade(request.POST.get("severity", "")),
            reason=request.POST.get("reason", ""),
        )
    except ValidationError as error:
        return answer_rule(request, membership, rule, errors={"set": "; ".join(error.messages)})
    flashes.success(request, "The rule is set. What that changes is looked for in the background.")
    return redirect(_write_address(membership, rule))


@within_workspace("POST", needs="auditor")
def suppress_findings(request: HttpRequest, membership: Membership) -> HttpResponse:
    """An auditor has what a rule finds of a sender, or in a conversation, not shown."""
    rule = RULES.get(request.POST.get("rule", ""))
    if rule is None:
        return _refuse_unknown(request, membership)
    try:
        sender, conversation = _read_scope(request, membership)
        suppress(
            membership=membership,
            rule=rule.code,
            conversation=conversation,
            sender=sender,
            reason=request.POST.get("reason", ""),
        )
    except ValidationError as error:
        return answer_rule(request, membership, rule, errors={"suppress": "; ".join(error.messages)})
    flashes.success(request, "Suppressed. What it covers is kept, and listed under “suppressed”.")
    return redirect(_write_address(membership, rule) + "#suppressions")


@within_workspace("POST")
def lift_suppression(request: HttpRequest, membership: Membership, suppression_id: uuid.UUID) -> HttpResponse:
    """What was suppressed is shown again."""
    suppression = or_404(find_suppression(workspace_id=membership.workspace.pk, suppression_id=suppression_id))
    require_auditor(membership)
    lift(membership=membership, suppression=suppression)
    flashes.success(request, "Lifted: what it covered is shown again, unless another suppression covers it.")
    return redirect(find_way_back(request, membership))


def _read_scope(request: HttpRequest, membership: Membership) -> tuple[str, Conversation | None]:
    """What is to be suppressed: a sender as it was typed, or the sender and the conversation of a finding."""
    text = request.POST.get("finding", "")
    if not text:
        return request.POST.get("sender", ""), None
    try:
        finding = find_finding(workspace=membership.workspace, finding_id=uuid.UUID(text))
    except ValueError:
        finding = None
    if finding is None:
        raise ValidationError("there is no such finding here")
    sender = finding.sender if request.POST.get("of_sender") else ""
    return sender, finding.conversation if request.POST.get("in_conversation") else None


def _read_grade(text: str) -> int | None:
    """A severity by its name; empty is as the rule says, and -1 is none."""
    if not text:
        return None
    return SEVERITIES.index(text) if text in SEVERITIES else -1


def _write_address(membership: Membership, rule: Rule) -> str:
    return f"{reverse('pages:findings', args=[membership.workspace.slug])}?rule={rule.code}"


def _refuse_unknown(request: HttpRequest, membership: Membership) -> HttpResponse:
    return render_page(request, membership, "findings/no_rule.html", {}, section="findings", status=422)
