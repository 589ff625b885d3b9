"""Connect an agent: the exact lines that send messages, with a key filled in, and whether the first has come."""

from __future__ import annotations

import uuid
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from inspector.accounts.models import ApiKey, Membership
from inspector.accounts.selectors import list_api_keys
from inspector.accounts.services import create_api_key
from inspector.browsing.transcripts import load_sentences
from inspector.database import or_404
from inspector.intake.models import Delivery, Sighting
from inspector.threads.models import Message

from .shell import render_page, require_owner, within_workspace

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
    """The ways to send; an owner makes a key here, and sees it this once in the lines themselves."""
    if request.method != "POST":
        return _answer(request, membership)
    require_owner(membership)
    name = f"Connected {timezone.now():%d %B %Y, %H:%M}"
    key, token = create_api_key(
        workspace=membership.workspace, name=name, scopes=[ApiKey.Scope.INGEST], created_by=membership.user
    )
    return _answer(request, membership, key=key, token=token, status=201)


@within_workspace("GET", "HEAD")
def show_arrival(request: HttpRequest, membership: Membership, key_id: uuid.UUID) -> HttpResponse:
    """Whether anything came with a key: the piece of page that asks for itself again until it did."""
    key = or_404(list_api_keys(workspace=membership.workspace).filter(pk=key_id).first())
    return render(
        request, "connect/_arrival.html", {"arrival": _find_arrival(key, membership), "workspace": membership.workspace}
    )


def _answer(
    request: HttpRequest, membership: Membership, *, key: ApiKey | None = None, token: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "ways": list_ways(request.build_absolute_uri("/").rstrip("/"), token or PLACEHOLDER),
        "new_token": token,
        "can_make_key": membership.is_owner and membership.workspace.archived_at is None,
        "arrival": _find_arrival(key, membership) if key else None,
    }
    return render_page(request, membership, "connect/connect.html", context, section="settings", status=status)


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
