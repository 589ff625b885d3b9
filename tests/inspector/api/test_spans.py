"""What exporters of OpenTelemetry send: as made-up bodies, by its SDK, and by instrumentations of libraries."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import anthropic
import openai
import pytest
from django.test import Client
from google.rpc.status_pb2 import Status
from openinference.instrumentation.anthropic import AnthropicInstrumentor
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from pytest_django.live_server_helper import LiveServer

from inspector.accounts.models import Channel, Workspace
from inspector.accounts.services import create_api_key
from inspector.api.bodies import ASKED, BODY
from inspector.api.problems import ProblemError
from inspector.intake.models import Delivery
from inspector.threads.models import Message, Trace

from ..conftest import resolve_all

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


@pytest.mark.parametrize(
    ("address", "kind", "length"),
    [
        ("/v1/traces", PROTOBUF, 322_000_000),
        ("/v1/logs", PROTOBUF, 16 * 1024 * 1024 + 1),
        ("/v1/traces", "application/json", 3221225472),
        ("/api/v1/messages", "text/plain", 3221225472),
    ],
)
def test_a_length_over_the_limit_is_refused_before_the_body_is_sent(
    token: str, address: str, kind: str, length: int
) -> None:
    client = Client(headers={"Authorization": f"Bearer {token}"})
    for declared, status in ((length, 413), (16_000_000, 204)):
        said: dict[str, Any] = {"CONTENT_LENGTH": str(declared), BODY: ASKED}
        assert client.post(address, b"x", content_type=kind, **said).status_code == status


@pytest.mark.parametrize("address", ["/v1/traces", "/api/v1/otlp/v1/traces"])
def test_spans_in_protobuf_become_messages_with_their_parent(token: str, address: str) -> None:
    body = make_export().SerializeToString()
    answer = post(gzip.compress(body), token, address, **{"Content-Encoding": "gzip"})
    assert (answer.status_code, answer["Content-Type"]) == (200, PROTOBUF)
    assert not ExportTraceServiceResponse.FromString(answer.content).HasField("partial_success")
    delivery = Delivery.objects.get()
    assert (delivery.stored, delivery.state) == (2, "framed")
    assert bytes(delivery.sha256 or b"") == hashlib.sha256(body).digest()
    resolve_all()
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
    resolve_all()
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
    resolve_all()
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


class Exporter(OTLPSpanExporter):
    """The exporter, remembering how its exports ended."""

    results: list[SpanExportResult]

    def export(self, spans):  # type: ignore[no-untyped-def]  # as its base
        self.results.append(super().export(spans))
        return self.results[-1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("encoding", ["gzip", "none"])
def test_what_it_exports_is_told_and_stands_in_one_tree(
    live_server: LiveServer, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    workspace = Workspace.objects.create(slug="acme", name="Acme")
    Channel.objects.create(workspace=workspace, name=Channel.DEFAULT)
    token = create_api_key(workspace=workspace, name="agents", scopes=["ingest"])[1]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", live_server.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"Authorization=Bearer%20{token}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", encoding)
    exporter = Exporter()
    exporter.results = []
    provider = TracerProvider(resource=Resource({"service.name": "desk"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    logs = LoggerProvider(resource=Resource({"service.name": "desk"}))
    logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
    tracer, logger = provider.get_tracer("agents"), logs.get_logger("agents")
    with tracer.start_as_current_span("invoke_agent planner") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"})
        with tracer.start_as_current_span("execute_tool ask") as tool:
            tool.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask"})
            tool.set_attribute("gen_ai.tool.call.result", '@a3|f0|c1|S0|d1|T1|g1|k1|q2|t"refactor_auth"#')
            logger.emit(body="asked once", severity_text="WARN")
            said = [{"role": "user", "parts": [{"type": "text", "content": "Where is the train?"}]}]
            details: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": said}
            logger.emit(event_name="gen_ai.client.inference.operation.details", attributes=details)
        with tracer.start_as_current_span("GET /trains"):
            pass
    provider.shutdown()
    logs.shutdown()
    assert exporter.results == [SpanExportResult.SUCCESS] * 3
    resolve_all()
    told = {message.topic: message for message in Message.objects.filter(part=1)}
    whole = told["invoke_agent planner"]
    assert whole.english.startswith("planner works as an agent, for ")
    assert told["execute_tool ask"].english.startswith("desk runs the tool ask, for ")
    assert told["GET /trains"].english.startswith("desk reports the span “GET /trains”, for ")
    tool_pk, line = told["execute_tool ask"].pk, told[""]
    assert (line.english, line.parent) == ("desk logs at the level WARN: “asked once”.", tool_pk)
    said_to = Message.objects.get(dialect="chat")
    assert (said_to.english, said_to.parent) == ("The user says: “Where is the train?”.", tool_pk)
    assert [told[topic].parent for topic in ("execute_tool ask", "GET /trains")] == [whole.pk] * 2
    assert {message.dialect for message in Message.objects.all()} == {"otel", "nslip", "chat"}
    assert Trace.objects.filter(native_id=f"{agent.get_span_context().trace_id:032x}").count() == 1


MODELS: Final = ("mason-1", "mason-2", "mason-0")
_CALL: Final = {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"what": "bricks"}'}}
_ASKED: Final = [{"role": "user", "content": "How many bricks are left?"}]
COMPLETION: Final = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_795_118_400,
    "model": "mason-1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": None, "tool_calls": [_CALL]},
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}
MESSAGE: Final = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "mason-2",
    "content": [{"type": "text", "text": "Forty-two."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 4},
}


class Model(BaseHTTPRequestHandler):
    """Models that always say the same; one whose name it does not know is refused."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said: dict[str, Any] = COMPLETION if self.path.endswith("/chat/completions") else MESSAGE
        is_refused = asked["model"] == "mason-0"
        body = json.dumps({"error": {"type": "not_found_error", "message": "no"}} if is_refused else said).encode()
        self.send_response(404 if is_refused else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as its base
        """Nothing of it is printed."""


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


# The instrumentation of OpenAI's client warns of its own class.
@pytest.mark.filterwarnings("ignore:Support for class-based .config.:pydantic.PydanticDeprecatedSince20")
@pytest.mark.long(seconds=20)
@pytest.mark.django_db(transaction=True)
def test_what_two_frameworks_say_is_told_in_one_trace(live_server: LiveServer, address: str) -> None:
    workspace = Workspace.objects.create(slug="acme", name="Acme")
    Channel.objects.create(workspace=workspace, name=Channel.DEFAULT)
    token = create_api_key(workspace=workspace, name="agents", scopes=["ingest"])[1]
    headers = {"Authorization": f"Bearer {token}"}
    exporter = OTLPSpanExporter(f"{live_server.url}/v1/traces", headers=headers, timeout=60)
    provider = TracerProvider(resource=Resource({"service.name": "desk"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentors = (OpenAIInstrumentor(), AnthropicInstrumentor())
    for each in instrumentors:
        each.instrument(tracer_provider=provider)
    try:
        with provider.get_tracer("agents").start_as_current_span("invoke_agent mason") as agent:
            agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "mason"})
            tools: Any = [{"type": "function", "function": {"name": "count", "parameters": {}}}]
            asked: Any = _ASKED
            by_openai = openai.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0)
            by_openai.chat.completions.create(model="mason-1", messages=asked, tools=tools)
            by_anthropic = anthropic.Anthropic(base_url=address, api_key="any", max_retries=0)
            by_anthropic.messages.create(model="mason-2", max_tokens=9, messages=asked)
            with pytest.raises(anthropic.NotFoundError):
                by_anthropic.messages.create(model="mason-0", max_tokens=9, messages=asked)
    finally:
        for each in instrumentors:
            each.uninstrument()
        provider.shutdown()
    resolve_all()
    told = [row.english for row in Message.objects.filter(dialect="otel").order_by("order_time", "place")]
    by_model = {name: [each for each in told if f"the model {name}" in each] for name in MODELS}
    assert [len(each) for each in by_model.values()] == [1, 1, 1], told
    (first,), (answered,), (refused,) = by_model.values()
    assert "2 new messages follow" in first
    assert "2 new messages follow" in answered
    assert "and fails" in refused
    said = set(Message.objects.filter(carrier="otel").values_list("english", flat=True))
    assert said == {
        "The user says: “How many bricks are left?”.",
        "desk calls the tool count (call c1) with what = “bricks”.",
        "desk says: “Forty-two.”",
    }
    trace = f"{agent.get_span_context().trace_id:032x}"
    assert Trace.objects.filter(native_id=trace).count() == 1
    assert Message.objects.filter(trace_id=trace, dialect="otel", parent__isnull=False).count() == 3


def test_an_export_that_is_sent_again_is_stored_once(token: str) -> None:
    body, again = make_export().SerializeToString(), make_export(3).SerializeToString()
    answers = [post(each, token, **{"Idempotency-Key": "k"}) for each in (body, body, again)]
    assert [answer.status_code for answer in answers] == [200, 200, 409]
    assert Delivery.objects.count() == 1


CUT = [
    "",
    '{"resource":{},"scopeSpans":[',
    '{"resource":{},"scopeSpans":[{"scope":{},"spans":[',
    "1,2]}",
    "{}",
    "{}]",
    "[]]}",
]


@pytest.mark.parametrize("rest", CUT, ids=range(len(CUT)))
def test_json_that_is_cut_or_wrong_before_any_span_is_refused_and_kept(token: str, rest: str) -> None:
    body = '{"resourceSpans":[' + rest
    answer = post(body.encode(), token, kind="application/json")
    assert answer.status_code == 400, answer.content
    assert "/api/v1/deliveries/" in answer.json()["message"]
    delivery = Delivery.objects.get()
    assert (delivery.received, sum(delivery.warnings["counts"].values())) == (0, 1)
    assert b"".join(bytes(each.data) for each in delivery.scaffold.order_by("offset")).decode() == body


SPAN = json.dumps({"traceId": TRACE, "spanId": f"{1:016x}", "name": "GET /"})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{SPAN}', "not closed"),
        (f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{SPAN},', "not closed"),
        (f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{SPAN}]}}]}}]', "not closed"),
        (f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{SPAN}, null]}}]}}]}}', "no span"),
        (f'{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{SPAN}]}}]}}]}}', "is no ExportTraceServiceRequest"),
        ('{"hello":1}', "is no ExportTraceServiceRequest"),
        ('"hello"', "is no ExportTraceServiceRequest"),
    ],
    ids=["open", "comma", "tail", "null", "logs", "object", "text"],
)
def test_json_that_is_cut_or_of_another_kind_is_stored_and_the_answer_says_so(
    token: str, body: str, words: str
) -> None:
    answer = post(body.encode(), token, kind="application/json")
    assert answer.status_code == 200
    said = answer.json()["partialSuccess"]
    assert words in said["errorMessage"]
    assert "rejectedSpans" not in said
    assert Delivery.objects.get().stored == 1


@pytest.mark.parametrize(
    "body", ["{}", ' {"resourceSpans": [ ] } ', '{"resource_spans":[{"resource":{"attributes":[]},"scopeSpans":[]}]}']
)
def test_json_of_nothing_is_no_fault(token: str, body: str) -> None:
    answer = post(body.encode(), token, kind="application/json")
    assert (answer.status_code, answer.json()) == (200, {})


def test_protobuf_of_no_bytes_is_an_export_of_nothing(token: str) -> None:
    # Django's client declares no type of an empty body by itself.
    declared = {"Content-Type": PROTOBUF}
    for body, packing in ((b"", {}), (gzip.compress(b""), {"Content-Encoding": "gzip"})):
        answer = post(body, token, **declared, **packing)
        assert (answer.status_code, answer["Content-Type"], answer.content) == (200, PROTOBUF, b"")
    assert post(b"", token, **{"Content-Type": "application/json"}).status_code == 400
    assert post(b"", "wrong", **declared).status_code == 401
    assert not Delivery.objects.exists()
