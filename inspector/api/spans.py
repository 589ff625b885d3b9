"""POST /v1/traces: OTLP over HTTP. Spans come as Protobuf or JSON, and are stored as messages are.

The protocol is OTLP/HTTP 1.x (opentelemetry-proto, docs/specification.md). A body of JSON is stored as it came. One of
Protobuf is stored as OTLP's own JSON, a span a line with its resource and scope beside it; the delivery has the digest
of the body as it was received.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, ClassVar, Final

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.intake.containers import Arrival
from inspector.intake.models import Delivery

from .authentication import ExporterAuthentication
from .bodies import is_asked_first, look_at_beginning, read_body
from .endpoints import Endpoint
from .ingest import choose_channel, read_idempotency_key, refuse_crowd, take_body
from .problems import ProblemError

JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"
# A body of Protobuf is read whole.
MAX_PROTOBUF_BYTES: Final = 16 * 1024 * 1024
# What stands around spans is written with each of them, so that little could become much.
MAX_AROUND_BYTES: Final = 64 * 1024 * 1024


class SpansView(Endpoint):
    """The door for exporters of OpenTelemetry."""

    authentication_classes = (ExporterAuthentication,)
    scopes: ClassVar = {"POST": "ingest"}
    refusals: ClassVar = {"POST": (408, 409, 413, 415, 422)}
    problem_content: ClassVar = {
        JSON: {"schema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}},
        PROTOBUF: {"schema": {"type": "string", "format": "binary"}},
    }

    def handle_exception(self, error: Exception) -> Any:
        """A refusal as the protocol has it: a `google.rpc.Status`, in the type of the request."""
        refusal = super().handle_exception(error)
        return answer_refusal(refusal, find_type(self.request))

    def initial(self, request: Request, *args: Any, **names: Any) -> None:
        """Let the request in; it is answered in the type that it was sent in."""
        self.media_type = find_type(request)  # type: ignore[misc]  # of this one request
        super().initial(request, *args, **names)

    @extend_schema(
        operation_id="export_spans",
        request={JSON: {"type": "object"}, PROTOBUF: {"type": "string", "format": "binary"}},
        responses={
            (200, JSON): {
                "type": "object",
                "properties": {
                    "partialSuccess": {
                        "type": "object",
                        "properties": {"rejectedSpans": {"type": "string"}, "errorMessage": {"type": "string"}},
                    }
                },
            }
        },
    )
    def post(self, request: Request) -> HttpResponse | Response:
        """Take spans in, by OTLP over HTTP. The answer comes after they are durable."""
        key = self.key
        refuse_crowd(request, key)
        kind = find_type(request)
        if kind not in (JSON, PROTOBUF):
            raise ProblemError(415, f"Content-Type {kind[:100]!r} is not understood: send {PROTOBUF} or {JSON}")
        channel, token = choose_channel(request, key, None), read_idempotency_key(request)
        if is_asked_first(request._request):
            return Response(status=204)
        with closing(read_body(request._request, max_bytes=settings.LIMITS["delivery_bytes"])) as body:
            if kind == JSON:
                delivery = take_body(request, key, channel, None, token, look_at_beginning(body, None))
            else:
                arrival = Arrival(body)
                exported = parse_export(b"".join(bound_body(arrival)))
                lines = write_spans(exported)
                first = next(lines, None)
                if first is None:
                    return answer_export(None, kind)
                whole, kept = itertools.chain([first], lines), Kept(arrival)
                delivery = take_body(request, key, channel, "ndjson", token, whole, arrival=kept)
        return answer_export(delivery, kind)


class Kept(Arrival):
    """A body that has arrived whole, for whoever asks for its size and its digest."""

    def __init__(self, arrival: Arrival) -> None:
        super().__init__(())
        self._digest, self.size_bytes = arrival._digest, arrival.size_bytes


def find_type(request: Request) -> str:
    """The type of the body, without its parameters."""
    return (request.headers.get("Content-Type") or "").partition(";")[0].strip().lower()


def bound_body(arrival: Arrival) -> Iterator[bytes]:
    """The pieces of a body that is read whole.

    Raises:
        ProblemError: 400, 408 or 413 for one that breaks off or is too long; nothing of it is stored.
    """
    for piece in arrival:
        if arrival.size_bytes > MAX_PROTOBUF_BYTES:
            raise ProblemError(413, f"a body of Protobuf has at most {MAX_PROTOBUF_BYTES} bytes: send it in parts")
        yield piece


def parse_export(body: bytes) -> ExportTraceServiceRequest:
    """The export that a body of Protobuf is.

    Raises:
        ProblemError: 400 for bytes that are none, 413 where the resources, written with each span, are too long.
    """
    try:
        exported = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise ProblemError(400, f"the body is no ExportTraceServiceRequest: {error}") from error
    around = sum(
        len(scope.spans) * (each.resource.ByteSize() + scope.scope.ByteSize())
        for each in exported.resource_spans
        for scope in each.scope_spans
    )
    if around > MAX_AROUND_BYTES:
        raise ProblemError(413, f"resources have at most {MAX_AROUND_BYTES} bytes for all spans: send fewer at once")
    return exported


def write_spans(exported: ExportTraceServiceRequest) -> Iterator[bytes]:
    """The spans of an export as JSON by OTLP, one a line, each with its resource and its scope."""
    for each in exported.resource_spans:
        yield from _write_resource(each)


def _write_resource(each: ResourceSpans) -> Iterator[bytes]:
    for scope in each.scope_spans:
        around = {"resource": _write(each.resource), "scope": _write(scope.scope)}
        for span in scope.spans:
            said = _write_span(span) | {name: value for name, value in around.items() if value}
            yield json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _write_span(span: Span) -> dict[str, Any]:
    said = _write(span) | _write_ids(span)
    if span.parent_span_id:
        said["parentSpanId"] = span.parent_span_id.hex()
    for link, written in zip(span.links, said.get("links", ()), strict=False):
        written.update(_write_ids(link))
    return said


def _write_ids(held: Any) -> dict[str, str]:
    """OTLP writes ids as hexadecimal digits where Protobuf's own JSON has Base64."""
    return {"traceId": held.trace_id.hex(), "spanId": held.span_id.hex()}


def _write(message: Any) -> dict[str, Any]:
    said: dict[str, Any] = MessageToDict(message, use_integers_for_enums=True)
    return said


def answer_refusal(refusal: Response, kind: str) -> HttpResponse:
    """The refusal as `google.rpc.Status`, of which OTLP/HTTP uses the field `message` alone ("Failures")."""
    message = str(refusal.data["detail"])
    status = _write_message(message) if kind == PROTOBUF else json.dumps({"message": message}).encode()
    answer = HttpResponse(status, status=refusal.status_code, content_type=PROTOBUF if kind == PROTOBUF else JSON)
    for name, value in refusal.headers.items():
        if name.lower() != "content-type":
            answer[name] = value
    return answer


def _write_message(message: str) -> bytes:
    """A `google.rpc.Status` whose field 2, `message`, is this text, in Protobuf."""
    text = message.encode("utf-8", "replace")
    size, length = bytearray(), len(text)
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return b"\x12" + bytes([*size, length]) + text


def answer_export(delivery: Delivery | None, kind: str) -> HttpResponse:
    """What the protocol answers with, in the type of the request: how many spans could not become text, and why.

    An export without spans is taken, and leaves no delivery.
    """
    answer = ExportTraceServiceResponse()
    if delivery and delivery.quarantined:
        answer.partial_success.rejected_spans = delivery.quarantined
        answer.partial_success.error_message = f"kept and not read: see /api/v1/deliveries/{delivery.pk}"
    written = answer.SerializeToString() if kind == PROTOBUF else json.dumps(_write(answer)).encode()
    return HttpResponse(written, content_type=kind)
