"""POST /v1/traces and /v1/logs: OTLP over HTTP. Spans and records of logs come as Protobuf or JSON, and are stored as
messages are.

The protocol is OTLP/HTTP 1.x (opentelemetry-proto, docs/specification.md). A body of JSON is stored as it came. One of
Protobuf is stored as OTLP's own JSON, a span or record a line with its resource and scope beside it; the delivery has
the digest of the body as it was received.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_view
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
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
_IDS: Final = {"trace_id": "traceId", "span_id": "spanId", "parent_span_id": "parentSpanId"}


class Signal(NamedTuple):
    """What is exported: the messages of the protocol, and how its lists and the count of what is refused are called."""

    request: Any
    response: Any
    resources: str
    scopes: str
    items: str
    rejected: str


SPANS: Final = Signal(
    ExportTraceServiceRequest, ExportTraceServiceResponse, "resource_spans", "scope_spans", "spans", "rejected_spans"
)
LOGS: Final = Signal(
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
    "resource_logs",
    "scope_logs",
    "log_records",
    "rejected_log_records",
)


_Post = TypeVar("_Post", bound=Callable[..., Any])


def _describe(operation_id: str, rejected: str) -> Callable[[_Post], _Post]:
    said = {rejected: {"type": "string"}, "errorMessage": {"type": "string"}}
    answer = {"type": "object", "properties": {"partialSuccess": {"type": "object", "properties": said}}}
    return extend_schema(
        operation_id=operation_id,
        request={JSON: {"type": "object"}, PROTOBUF: {"type": "string", "format": "binary"}},
        responses={(200, JSON): answer},
    )


class SpansView(Endpoint):
    """The door for exporters of OpenTelemetry."""

    signal: ClassVar = SPANS
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

    @_describe("export_spans", "rejectedSpans")
    def post(self, request: Request) -> HttpResponse | Response:
        """Take what is exported in, by OTLP over HTTP. The answer comes after it is durable."""
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
                exported = parse_export(b"".join(bound_body(arrival)), self.signal)
                lines = write_items(exported, self.signal)
                first = next(lines, None)
                if first is None:
                    return answer_export(None, kind, self.signal)
                whole, kept = itertools.chain([first], lines), Kept(arrival)
                delivery = take_body(request, key, channel, "ndjson", token, whole, arrival=kept)
        return answer_export(delivery, kind, self.signal)


@extend_schema_view(post=_describe("export_logs", "rejectedLogRecords"))
class LogsView(SpansView):
    """The door for exporters of logs."""

    signal: ClassVar = LOGS


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


def parse_export(body: bytes, signal: Signal) -> Any:
    """The export that a body of Protobuf is.

    Raises:
        ProblemError: 400 for bytes that are none, 413 where the resources, written with each span, are too long.
    """
    try:
        exported = signal.request.FromString(body)
    except DecodeError as error:
        raise ProblemError(400, f"the body is no {signal.request.__name__}: {error}") from error
    around = sum(
        len(getattr(scope, signal.items)) * (each.resource.ByteSize() + scope.scope.ByteSize())
        for each, scope in _list_scopes(exported, signal)
    )
    if around > MAX_AROUND_BYTES:
        raise ProblemError(413, f"resources have at most {MAX_AROUND_BYTES} bytes for all of it: send fewer at once")
    return exported


def _list_scopes(exported: Any, signal: Signal) -> Iterator[tuple[Any, Any]]:
    for each in getattr(exported, signal.resources):
        for scope in getattr(each, signal.scopes):
            yield each, scope


def write_items(exported: Any, signal: Signal) -> Iterator[bytes]:
    """What an export holds as JSON by OTLP, one a line, each with its resource and its scope."""
    for each, scope in _list_scopes(exported, signal):
        around = {"resource": _write(each.resource), "scope": _write(scope.scope)}
        for item in getattr(scope, signal.items):
            said = _write_item(item) | {name: value for name, value in around.items() if value}
            yield json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _write_item(item: Any) -> dict[str, Any]:
    said = _write(item) | _write_ids(item)
    for link, written in zip(getattr(item, "links", ()), said.get("links", ()), strict=False):
        written.update(_write_ids(link))
    return said


def _write_ids(held: Any) -> dict[str, str]:
    """OTLP writes ids as hexadecimal digits where Protobuf's own JSON has Base64."""
    return {name: value.hex() for key, name in _IDS.items() if (value := getattr(held, key, b""))}


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


def answer_export(delivery: Delivery | None, kind: str, signal: Signal) -> HttpResponse:
    """What the protocol answers with, in the type of the request: how much could not become text, and why.

    An export of nothing is taken, and leaves no delivery.
    """
    answer = signal.response()
    if delivery and delivery.quarantined:
        setattr(answer.partial_success, signal.rejected, delivery.quarantined)
        answer.partial_success.error_message = f"kept and not read: see /api/v1/deliveries/{delivery.pk}"
    written = answer.SerializeToString() if kind == PROTOBUF else json.dumps(_write(answer)).encode()
    return HttpResponse(written, content_type=kind)
