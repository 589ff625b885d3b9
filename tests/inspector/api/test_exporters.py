"""The exporters of OpenTelemetry's own SDK, told the address and the key by its variables alone."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from pytest_django.live_server_helper import LiveServer

from inspector.accounts.models import Channel, Workspace
from inspector.accounts.services import create_api_key
from inspector.threads.models import Message, Trace
from tests.inspector.conftest import settle_all


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
    settle_all()
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
