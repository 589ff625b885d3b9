"""OTLP over HTTP: spans in both encodings become messages, durably, and nothing that is sent makes a 500."""

from __future__ import annotations

import gzip
import hashlib
import json
from typing import Any

import pytest
from django.test import Client
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from inspector.api.problems import ProblemError
from inspector.intake.models import Delivery
from inspector.threads.models import Message

from ..conftest import settle_all

PROTOBUF = "application/x-protobuf"
TRACE = "5b8efff798038103d269b633813fc60c"
pytestmark = pytest.mark.django_db


def make_export(count: int = 2, **resource: str) -> ExportTraceServiceRequest:
    """Spans of which each but the first lies inside the first."""
    exported = ExportTraceServiceRequest()
    each = exported.resource_spans.add()
    for key, value in {"service.name": "desk", **resource}.items():
        each.resource.attributes.add(key=key).value.string_value = value
    spans = each.scope_spans.add().spans
    for at in range(count):
        span = spans.add(
            name=f"chat {at}",
            trace_id=bytes.fromhex(TRACE),
            span_id=(at + 1).to_bytes(8),
            parent_span_id=(1).to_bytes(8) if at else b"",
            start_time_unix_nano=1795118400_000000000 + at,
            end_time_unix_nano=1795118401_000000000 + at,
        )
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
    return exported


def post(body: bytes, token: str, address: str = "/v1/traces", kind: str = PROTOBUF, **headers: str) -> Any:
    return Client().post(address, data=body, content_type=kind, headers={"Authorization": f"Bearer {token}"} | headers)


@pytest.mark.parametrize("address", ["/v1/traces", "/api/v1/otlp/v1/traces"])
def test_spans_in_protobuf_become_messages_with_their_parent(token: str, address: str) -> None:
    body = make_export().SerializeToString()
    answer = post(gzip.compress(body), token, address, **{"Content-Encoding": "gzip"})
    assert (answer.status_code, answer["Content-Type"]) == (200, PROTOBUF)
    assert not ExportTraceServiceResponse.FromString(answer.content).HasField("partial_success")
    delivery = Delivery.objects.get()
    assert (delivery.stored, delivery.state) == (2, "framed")
    assert bytes(delivery.sha256 or b"") == hashlib.sha256(body).digest()
    settle_all()
    first, second = Message.objects.order_by("native_id")
    assert [(each.dialect, each.sender, each.trace_id) for each in (first, second)] == [("otel", "desk", TRACE)] * 2
    assert (first.parent, second.parent) == (None, first.pk)
    assert second.english == "desk asks a model, which it does not name, for 1 second."


@pytest.mark.parametrize("address", ["/v1/logs", "/api/v1/otlp/v1/logs"])
def test_records_of_logs_stand_below_their_span_in_any_order(token: str, address: str) -> None:
    exported = ExportLogsServiceRequest()
    records = exported.resource_logs.add().scope_logs.add().log_records
    ids = {"trace_id": bytes.fromhex(TRACE), "span_id": (1).to_bytes(8)}
    records.add(time_unix_nano=1795118400_500000000, **ids).body.string_value = "asked once"
    records.add(observed_time_unix_nano=1795118400_600000000).body.string_value = "of no span"
    body = exported.SerializeToString()
    for _ in range(2):
        answer = post(body, token, address)
        assert not ExportLogsServiceResponse.FromString(answer.content).HasField("partial_success")
    assert [(each.stored, bytes(each.sha256 or b"")) for each in Delivery.objects.order_by("-stored")] == [
        (2, hashlib.sha256(body).digest()),
        (0, hashlib.sha256(body).digest()),
    ]
    assert post(make_export(1).SerializeToString(), token).status_code == 200
    settle_all()
    told = {message.english: message for message in Message.objects.all()}
    span = Message.objects.get(native_id=f"{1:016x}")
    assert told["A program logs: “asked once”."].parent == span.pk
    assert (told["A program logs: “of no span”."].parent, told["A program logs: “of no span”."].trace_id) == (None, "")
    # What no text can be made of is counted by the name that the protocol has for it.
    answer = post(b"\xff\xfe no text", token, address, kind="application/json")
    assert answer.json()["partialSuccess"]["rejectedLogRecords"] == "1"


def test_spans_in_json_are_stored_as_they_came(token: str) -> None:
    spans = [
        {"traceId": TRACE, "spanId": f"{at:016x}", "name": "GET /", "startTimeUnixNano": "1795118400000000000"}
        for at in (1, 2)
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "desk"}}]}
    body = json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}).encode()
    answer = post(body, token, kind="application/json")
    assert (answer.status_code, answer.json()) == (200, {})
    assert Delivery.objects.get().stored == 2
    settle_all()
    assert {message.english for message in Message.objects.all()} == {
        "desk reports the span “GET /”, which has not ended."
    }


def test_the_same_export_sent_again_adds_nothing(token: str) -> None:
    body = make_export().SerializeToString()
    for _ in range(2):
        assert post(body, token).status_code == 200
    assert sum(each.stored for each in Delivery.objects.all()) == 2


def test_a_key_may_come_in_a_header_of_its_own(token: str) -> None:
    body = make_export().SerializeToString()
    assert Client().post("/v1/traces", body, PROTOBUF, headers={"X-Api-Key": token}).status_code == 200
    assert Client().post("/v1/traces", body, PROTOBUF, headers={"X-Api-Key": "no"}).status_code == 401
    assert Client().post("/v1/traces", body, PROTOBUF).status_code == 401


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"\xff\xff\xff", {}, 400),
        (b"\x1f\x8bxxxx", {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(bytes(64 * 1024 * 1024)), {"Content-Encoding": "gzip"}, 413),
        (b"x", {"Content-Encoding": "br"}, 415),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (make_export(2000, big="x" * 500_000).SerializeToString(), {}, 413),
    ],
    ids=["no-protobuf", "no-gzip", "bomb", "encoding", "type", "resource-bomb"],
)
def test_what_cannot_be_taken_is_refused_and_leaves_nothing(
    token: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    kind = headers.get("Content-Type", PROTOBUF)
    packing = {name: value for name, value in headers.items() if name != "Content-Type"}
    answer = post(body, token, kind=kind, **packing)
    assert answer.status_code == status
    said = Status.FromString(answer.content).message if kind == PROTOBUF else answer.json()["message"]
    assert answer["Content-Type"] == (PROTOBUF if kind == PROTOBUF else "application/json")
    assert len(said) > 10
    assert not Delivery.objects.exists()


def test_an_export_without_spans_is_taken_and_leaves_nothing(token: str) -> None:
    body = make_export(0).SerializeToString()
    assert post(body, token).status_code == 200
    assert not Delivery.objects.exists()


def test_what_would_wait_too_long_is_put_off(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*said: Any) -> None:
        raise ProblemError(503, "send this again later", retry_after=7)

    monkeypatch.setattr("inspector.api.ingest.refuse_backlog", refuse)
    answer = post(make_export().SerializeToString(), token)
    assert (answer.status_code, answer["Retry-After"]) == (503, "7")
    assert Status.FromString(answer.content).message == "send this again later"
    answer = post(b"{}", "wrong", kind="application/json")
    assert (answer.status_code, answer["WWW-Authenticate"].split()[0]) == (401, "Bearer")
    assert "key" in answer.json()["message"]
