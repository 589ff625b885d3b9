"""What the instrumentations of two frameworks say, sent by the exporter of OpenTelemetry's SDK: told, and in one trace.

OpenAI's client by the conventions for GenAI, Anthropic's by OpenInference. Both talk to a server of the test's own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import anthropic
import openai
import pytest
from openinference.instrumentation.anthropic import AnthropicInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pytest_django.live_server_helper import LiveServer

from inspector.accounts.models import Channel, Workspace
from inspector.accounts.services import create_api_key
from inspector.threads.models import Message, Trace
from tests.inspector.conftest import settle_all

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
    settle_all()
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
