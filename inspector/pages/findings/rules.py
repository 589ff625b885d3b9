"""Setting a rule, suppressing what it finds, and lifting that: three forms on a rule's page and a finding's."""

from __future__ import annotations

import uuid

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import find_finding
from inspector.audit.findings.services import lift, set_rule, suppress
from inspector.audit.findings.settings import find_suppression
from inspector.audit.rules import RULES, Rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.lookups import or_404
from inspector.threads.models import Conversation

from ..shell import render_page, require_auditor, within_workspace
from .acting import find_way_back
from .views import answer_rule


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
