"""Alerts: where new findings are told, and what became of each; owners set it, auditors see it."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.dateparse import parse_datetime

from inspector.accounts.models import Membership
from inspector.audit.alerts import ask_for_test, find_webhook, renew_secret, set_webhook, switch_webhook
from inspector.audit.models.findings import Alert, Webhook
from inspector.audit.rules import RULES
from inspector.database import take_page
from inspector.threads.models import Message

from ..forms import PageForm
from ..shell import (
    cut_page,
    read_place,
    render_page,
    require_owner,
    turn_pages,
    within_workspace,
)

PAGE_ALERTS: Final = 30


class AlertForm(PageForm):
    """Where to, from which severity on, and of which rules."""

    address = forms.CharField(
        label="Address",
        max_length=2000,
        help_text="Begins with https://. Each new finding is one POST to it.",
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off"}),
    )
    severity = forms.TypedChoiceField(
        label="Minimum severity",
        coerce=int,
        choices=[(value, label) for value, label in Message.Severity.choices if value],
    )
    rules = forms.MultipleChoiceField(
        label="Only of these rules",
        required=False,
        choices=sorted((rule.code, rule.title) for rule in RULES.values()),
        help_text="None selected means all.",
        widget=forms.SelectMultiple(attrs={"size": 8}),
    )


@within_workspace("GET", "HEAD", "POST", needs="auditor")
def show_alerts(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The webhook and its alerts; an owner sets it here and sees a new secret this once, in the answer itself."""
    if request.method != "POST":
        return _answer(request, membership)
    require_owner(membership)
    form = AlertForm(request.POST)
    site = request.build_absolute_uri("/")
    made = form.hand_to(lambda: set_webhook(membership=membership, site=site, **form.cleaned_data))
    if made is None:
        return _answer(request, membership, form, status=422)
    if made[1] is not None:
        return _answer(request, membership, secret=made[1], status=201)
    flashes.success(request, "Saved. New findings are sent from now on.")
    return redirect("pages:alerts", membership.workspace.slug)


@within_workspace("POST", needs="owner")
def renew(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Make a new secret and show it this once."""
    try:
        secret = renew_secret(membership=membership)
    except ValidationError as error:
        return _refuse(request, membership, error)
    return _answer(request, membership, secret=secret, status=201)


@within_workspace("POST", needs="owner")
def test(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Have a test sent; what came of it is in the list."""
    try:
        ask_for_test(membership=membership)
    except ValidationError as error:
        return _refuse(request, membership, error)
    flashes.success(request, "A test is on its way. Reload the page to see the response.")
    return redirect("pages:alerts", membership.workspace.slug)


@within_workspace("POST", needs="owner")
def switch(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Switch alerts on or off."""
    try:
        webhook = switch_webhook(membership=membership, is_on=request.POST.get("on") == "true")
    except ValidationError as error:
        return _refuse(request, membership, error)
    said = "on: new findings are sent from now on" if webhook.is_on else "off: findings made now are not sent later"
    flashes.success(request, f"Alerts are {said}.")
    return redirect("pages:alerts", membership.workspace.slug)


def _refuse(request: HttpRequest, membership: Membership, error: ValidationError) -> HttpResponse:
    flashes.error(request, " ".join(error.messages))
    return redirect("pages:alerts", membership.workspace.slug)


def _answer(
    request: HttpRequest, membership: Membership, form: AlertForm | None = None, *, secret: str = "", status: int = 200
) -> HttpResponse:
    workspace = membership.workspace
    webhook = find_webhook(workspace_id=workspace.pk)
    rows = Alert.objects.select_related("finding").filter(workspace=workspace)
    place = read_place(request, membership) if request.method == "GET" else None
    alerts, last = cut_page(take_page(rows, "created_at", place, PAGE_ALERTS + 1), PAGE_ALERTS)
    context = {
        "webhook": _describe_webhook(webhook, membership) if webhook else None,
        "form": (form or _make_form(webhook)) if membership.is_owner else None,
        "secret": secret,
        "alerts": [_describe(alert) for alert in alerts],
        **turn_pages(request, membership, (last.created_at, last.pk) if last else None),
    }
    return render_page(request, membership, "alerts/alerts.html", context, section="settings", status=status)


def _make_form(webhook: Webhook | None) -> AlertForm:
    if webhook is None:
        return AlertForm(initial={"severity": Message.Severity.ERROR.value})
    return AlertForm(initial={"address": webhook.address, "severity": webhook.severity, "rules": webhook.rules})


def _describe_webhook(webhook: Webhook, membership: Membership) -> dict[str, Any]:
    return {
        # The path is often a secret: only those who may set it see it.
        "address": webhook.address if membership.is_owner else webhook.address.split("/")[2],
        "row": webhook,
        "rules": [RULES[code].title for code in webhook.rules if code in RULES],
    }


def _describe(alert: Alert) -> dict[str, Any]:
    finding = alert.finding
    rule = RULES.get(finding.rule) if finding else None
    return {
        "row": alert,
        "title": "A test" if finding is None else rule.title if rule else finding.rule,
        "answers": [
            {"at": parse_datetime(each["at"]), "status": each["status"], "said": each["said"]} for each in alert.answers
        ],
    }
