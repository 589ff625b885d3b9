"""What a workspace is connected to: agents, by the exact lines that send messages, with a key filled in, and whether
the first has come; and the webhook that new findings are told to, with what became of each alert.
"""

from __future__ import annotations

import uuid
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from django import forms
from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from inspector.accounts.models import ApiKey, Membership
from inspector.accounts.selectors import list_api_keys
from inspector.accounts.services import create_api_key
from inspector.audit.alerts import ask_for_test, find_webhook, renew_secret, set_webhook, switch_webhook
from inspector.audit.models.findings import Alert, Webhook
from inspector.audit.rules import RULES
from inspector.browsing.transcripts import load_sentences
from inspector.database import or_404, take_page
from inspector.intake.models import Delivery, Sighting
from inspector.threads.models import Message

from .lists import list_page
from .shell import (
    PageForm,
    attempt,
    read_id,
    render_page,
    render_part,
    require_owner,
    show_once,
    take_shown,
    within_workspace,
)

PLACEHOLDER: Final = "YOUR-KEY"

# Where the client is from: a wheel of this project.
_INSTALL: Final = "# make client && pip install dist/inspector_client-*.whl\n"

_WIRE: Final = '@a3|f0|c1|S0|d1|T1|k1|t"hello"#'


class Way(NamedTuple):
    """One way to send: its name, what it gives, and the lines."""

    id: str
    title: str
    about: str
    lines: str


@within_workspace("GET", "HEAD", "POST")
def show_connect(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The ways to send; an owner makes a key here, and sees it this once in the lines themselves.

    The address names the key then, so that the page still waits for the first message when it is loaded again.
    """
    if request.method != "POST":
        key_id = read_id(request, "key")
        key = or_404(list_api_keys(workspace=membership.workspace).filter(pk=key_id).first()) if key_id else None
        return _answer_ways(request, membership, key=key, **take_shown(request))
    require_owner(membership)
    name = f"Connected {timezone.now():%d %B %Y, %H:%M}"
    key, token = create_api_key(
        workspace=membership.workspace, name=name, scopes=[ApiKey.Scope.INGEST], created_by=membership.user
    )
    return show_once(request, f"{request.path}?key={key.pk}", token=token)


@within_workspace("GET", "HEAD")
def show_arrival(request: HttpRequest, membership: Membership, key_id: uuid.UUID) -> HttpResponse:
    """Whether anything came with a key: the piece of page that asks for itself again until it did."""
    key = or_404(list_api_keys(workspace=membership.workspace).filter(pk=key_id).first())
    return render_part(request, membership, "connect/_arrival.html", {"arrival": _find_arrival(key, membership)})


def _answer_ways(
    request: HttpRequest, membership: Membership, *, key: ApiKey | None = None, token: str = ""
) -> HttpResponse:
    context = {
        "ways": list_ways(request.build_absolute_uri("/").rstrip("/"), token or PLACEHOLDER),
        "new_token": token,
        "can_make_key": membership.is_owner and membership.workspace.archived_at is None,
        "arrival": _find_arrival(key, membership) if key else None,
    }
    return render_page(request, membership, "connect/connect.html", context, section="settings")


def _find_arrival(key: ApiKey, membership: Membership) -> dict[str, Any]:
    """The first delivery with a key, and of it the first message that is told."""
    delivery = Delivery.objects.filter(workspace=membership.workspace, sent_by_key=key).order_by("pk").first()
    seen = delivery.sightings.exclude(outcome=Sighting.Outcome.QUARANTINED) if delivery else Sighting.objects.none()
    sighting = seen.order_by("index").first()
    message = (
        Message.objects.shown().filter(record=sighting.record_id).exclude(english="").order_by("part").first()
        if sighting
        else None
    )
    return {
        "key": key,
        "delivery": delivery,
        "is_unreadable": delivery is not None and delivery.received > 0 and sighting is None,
        "message": message,
        "english": load_sentences([message])[message.pk] if message else "",
    }


def list_ways(address: str, key: str) -> list[Way]:
    """The ways to send to an address with a key, the shortest first."""
    return [
        Way(
            "curl",
            "curl",
            "One message a line, of any dialect. The answer accounts for every one of them.",
            f"curl {address}/api/v1/messages \\\n"
            f'  -H "Authorization: Bearer {key}" \\\n  -H "Content-Type: text/plain" \\\n'
            # A text that begins with @ is for curl the name of a file.
            f"  --data-binary @- <<'END'\n{_WIRE}\nEND",
        ),
        Way(
            "opentelemetry",
            "OpenTelemetry",
            "For a program that is instrumented already: its spans, logs, tool calls and texts become one trace, "
            "without a change to the program.",
            f"export OTEL_EXPORTER_OTLP_ENDPOINT={address}\n"
            f'export OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20{quote(key)}"\n'
            "# Only where the exporter speaks gRPC by default:\n"
            "# export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
        ),
        Way(
            "python",
            "Python",
            "Durable when it returns, and sent again as often as it must.",
            f"{_INSTALL}from inspector_client import Client\n\n"
            f'client = Client("{address}", "{key}")\n'
            f"receipt = client.send('{_WIRE}')\n"
            'print(receipt.stored, "stored")',
        ),
        Way(
            "logging",
            "Python logging",
            "Never makes the agent wait: what is logged goes from a thread of its own.",
            f"{_INSTALL}import logging\n\nfrom inspector_client import InspectorHandler\n\n"
            'log = logging.getLogger("agent.messages")\n'
            "log.setLevel(logging.INFO)\n"
            f'log.addHandler(InspectorHandler("{address}", "{key}"))\n'
            f"""log.info('{_WIRE}', extra={{"envelope": {{"from": "planner", "to": "executor"}}}})""",
        ),
    ]


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
    """The webhook and its alerts; an owner sets it here and sees a new secret this once, on the page that follows."""
    if request.method != "POST":
        return _answer_alerts(request, membership, **take_shown(request))
    require_owner(membership)
    form = AlertForm(request.POST)
    site = request.build_absolute_uri("/")
    made = form.hand_to(lambda: set_webhook(membership=membership, site=site, **form.cleaned_data))
    if made is None:
        return _answer_alerts(request, membership, form, status=422)
    if made[1] is not None:
        return show_once(request, request.path, secret=made[1])
    flashes.success(request, "Saved. New findings are sent from now on.")
    return redirect("pages:alerts", membership.workspace.slug)


@within_workspace("POST", needs="owner")
def renew(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Make a new secret and show it this once."""
    try:
        secret = renew_secret(membership=membership)
    except ValidationError as error:
        flashes.error(request, " ".join(error.messages))
        return redirect("pages:alerts", membership.workspace.slug)
    return show_once(request, reverse("pages:alerts", args=[membership.workspace.slug]), secret=secret)


@within_workspace("POST", needs="owner")
def test(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Have a test sent; what came of it is in the list."""
    said = "A test is on its way. Reload the page to see the response."
    attempt(request, lambda: ask_for_test(membership=membership), said)
    return redirect("pages:alerts", membership.workspace.slug)


@within_workspace("POST", needs="owner")
def switch(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Switch alerts on or off."""
    is_on = request.POST.get("on") == "true"
    said = "on: new findings are sent from now on" if is_on else "off: findings made now are not sent later"
    attempt(request, lambda: switch_webhook(membership=membership, is_on=is_on), f"Alerts are {said}.")
    return redirect("pages:alerts", membership.workspace.slug)


def _answer_alerts(
    request: HttpRequest, membership: Membership, form: AlertForm | None = None, *, secret: str = "", status: int = 200
) -> HttpResponse:
    workspace = membership.workspace
    webhook = find_webhook(workspace_id=workspace.pk)
    rows = Alert.objects.select_related("finding").filter(workspace=workspace)
    alerts, pages = list_page(
        request,
        membership,
        lambda before, limit: take_page(rows, "created_at", before, limit),
        PAGE_ALERTS,
        "created_at",
    )
    context = {
        "webhook": _describe_webhook(webhook, membership) if webhook else None,
        "form": (form or _make_form(webhook)) if membership.is_owner else None,
        "secret": secret,
        "alerts": [_describe(alert) for alert in alerts],
        **pages,
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
