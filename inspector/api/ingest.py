"""What is posted: messages, and by OTLP over HTTP spans and records of logs, as Protobuf or JSON. A body is taken in
record by record, and answered when it is durable.

The protocol is OTLP/HTTP 1.x (opentelemetry-proto, docs/specification.md). A body of JSON is stored as it came. One of
Protobuf is stored as OTLP's own JSON, a span or record a line with its resource and scope beside it; the delivery has
the digest of the body as it was received.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts import selectors as accounts
from inspector.accounts import services as account_services
from inspector.accounts.models import ApiKey, Channel
from inspector.intake import framing, services
from inspector.intake.containers import Arrival, BeyondLimitsError
from inspector.intake.framing import EmptyError, series_of, take_stream
from inspector.intake.identity import list_warnings
from inspector.intake.models import Delivery, Door
from inspector.intake.staging import count_waiting_bytes
from inspector.intake.store import TwinError
from inspector.logs import note_about
from inspector.tokens import hide_tokens
from inspector.trail.acting import find_address

from .authentication import ExporterAuthentication
from .bodies import (
    EMPTY,
    FORMS,
    Form,
    choose_form,
    count_arrived,
    find_length,
    is_asked_first,
    look_at_beginning,
    read_body,
)
from .deliveries import ReceiptSerializer, grant_wish, make_receipt, refuse_backlog
from .endpoints import BODY_REFUSALS, Endpoint, operation
from .messages import Messages, MessageSerializer
from .parameters import take_text
from .problems import BrokenBodyError, ProblemError
from .wire import Scope, TooManyError, WireError, cut_scopes, parse

REPLAY_WINDOW: Final = timedelta(hours=24)
# What is longer, or of unknown length, has to fit into what may wait.
LARGE_BYTES: Final = 1024 * 1024
ABANDONED_AFTER: Final = timedelta(minutes=10)
_RUNNING: Final = "a request with this Idempotency-Key is still running"


_BODY: Final[dict[str, Any]] = {
    "application/json": {
        "anyOf": [{"type": "object", "additionalProperties": {}}, {"type": "array", "items": {}}, {"type": "string"}]
    },
    **{kind: {"type": "string"} for kind in FORMS if kind != "application/json"},
}
_WAIT: Final = (
    "`wait=N`: hold the answer up to N seconds, at most 30, until the messages are processed, and add them. Only two "
    "requests a process may wait at a time; any other is answered at once."
)


class WaitedReceiptSerializer(ReceiptSerializer):
    """A receipt; the last three names are there where `Prefer: wait` was applied."""

    is_settled = serializers.BooleanField(required=False, help_text="whether all messages are processed")
    messages = MessageSerializer(many=True, required=False, help_text="of its records, at most 200")
    has_more_messages = serializers.BooleanField(required=False)


class PostedMessages(Messages):
    """Messages, which programs post by this door."""

    @operation(
        {202: WaitedReceiptSerializer},
        body=_BODY,
        parameters=(take_text("channel", about="the channel, where no header can be set", max_characters=64),),
        scope="ingest",
        refusals=BODY_REFUSALS,
        headers=[
            OpenApiParameter(
                "X-Channel", {"type": "string", "maxLength": 64}, "header", description="the channel; default main"
            ),
            OpenApiParameter(
                "Idempotency-Key",
                {"type": "string", "minLength": 1, "maxLength": 255},
                "header",
                description="makes it safe to send again: the same key with the same body is stored once",
            ),
            OpenApiParameter("Prefer", {"type": "string"}, "header", description=_WAIT),
        ],
    )
    def send_messages(self, request: Request) -> Response:
        """Take messages in. The answer comes after every complete record of the body is durable."""
        key = self.key
        refuse_crowd(request, key)
        form = choose_form(request._request)
        channel = choose_channel(request, key, self.given["channel"])
        token = read_idempotency_key(request)
        body = read_body(request._request, max_bytes=settings.LIMITS["delivery_bytes"])
        if is_asked_first(request._request):
            return Response(status=204)
        with closing(body):
            delivery = take_body(request, key, channel, form, token, look_at_beginning(body, form))
        note_about(delivery=delivery.pk)
        return grant_wish(request, delivery, Response(make_receipt(delivery), status=202))


def refuse_crowd(request: Request, key: ApiKey) -> None:
    """Refuse what cannot be worked off in time, and a large body where too much waits already.

    Raises:
        ProblemError: 503.
    """
    refuse_backlog(settings.LIMITS["backlog_seconds"])
    length = find_length(request._request)
    is_large = length is None or length > LARGE_BYTES
    if is_large and count_waiting_bytes(workspace=key.workspace) > settings.LIMITS["waiting_bytes"]:
        raise ProblemError(503, "too many bytes of this workspace wait: send this again later", retry_after=60)


def take_body(
    request: Request,
    key: ApiKey,
    channel: Channel,
    form: Form,
    token: str | None,
    body: Iterable[bytes],
    *,
    arrival: Arrival | None = None,
) -> Delivery:
    """The delivery of this body: its own, or that of the same request sent before.

    Args:
        request, key, channel, form, token: as the request says.
        body: what is stored.
        arrival: the body as it arrived, where something else is made of it; the delivery has its size and digest.

    Raises:
        ProblemError: 400, 408 or 413 for a body that breaks off, 409 for an Idempotency-Key of another request.
    """
    earlier = find_twin(key, token) if token else None
    if earlier and not is_unfinished(earlier):
        check_twin(arrival or Arrival(body), earlier, channel, form)
        return earlier
    options: dict[str, Any] = {"form": form}
    if earlier:  # What was kept of that one is not new.
        options["series"] = series_of(earlier).hex
    delivery = services.open_delivery(
        workspace=key.workspace,
        channel=channel,
        door=Door.API,
        key=key,
        remote_address=find_address(),
        content_type=request.headers.get("Content-Type", ""),
        options=options,
        idempotency_key=token,
        has_row=False,
    )
    try:
        count_packed = partial(count_arrived, request._request)
        return take_stream(delivery=delivery, chunks=body, arrival=arrival, count_packed=count_packed)
    except BrokenBodyError as error:
        raise ProblemError(error.status, f"{error}; its complete records are kept", **make_receipt(delivery)) from error
    except BeyondLimitsError as error:
        raise ProblemError(413, f"{error}; what came before is kept", **make_receipt(delivery)) from error
    except EmptyError:
        raise ProblemError(400, EMPTY) from None
    except TwinError as error:
        raise ProblemError(409, _RUNNING, retry_after=2) from error


def choose_channel(request: Request, key: ApiKey, asked: str | None) -> Channel:
    """The channel that the header names, else the one asked for in the address, else the key's, else the default.

    Raises:
        ProblemError: 403 where the key is bound to another channel, 422 for a name that cannot be one, and for a new
            one where there are as many as a key may make.
    """
    name = _read_utf_8(request.headers.get("X-Channel")) or asked
    if key.channel is not None:
        if name and name != key.channel.name:
            raise ProblemError(403, f"the key is bound to the channel {key.channel.name!r}")
        return key.channel
    found = accounts.find_channel(workspace=key.workspace, name=name or Channel.DEFAULT)
    if found is not None:
        return found
    most = settings.LIMITS["channels"]
    if accounts.count_channels(workspace=key.workspace) >= most:
        raise ProblemError(422, f"there is no channel {name!r}, and a key makes none beyond {most:,}: use one there is")
    try:
        return account_services.ensure_channel(workspace=key.workspace, name=name or Channel.DEFAULT)
    except ValidationError as error:
        raise ProblemError(422, "; ".join(error.messages)) from error


def _read_utf_8(header: str | None) -> str | None:
    """A header in the encoding of its sender: servers read it as Latin-1, byte by byte."""
    try:
        return header and header.encode("latin-1").decode()
    except UnicodeError:
        return header


def read_idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key, or None.

    Raises:
        ProblemError: 422 for one that is longer than 255 characters.
    """
    token = request.headers.get("Idempotency-Key")
    if token is not None and not 0 < len(token) <= 255:
        raise ProblemError(422, "an Idempotency-Key has 1 to 255 characters")
    # It is kept to know the request again, for which an alias does as well.
    return hide_tokens(token) if token else token


def find_twin(key: ApiKey, token: str) -> Delivery | None:
    """The delivery that this Idempotency-Key was used for within its window; older and unfinished ones let it go."""
    held = Delivery.objects.filter(is_key_free=False)
    earlier = held.filter(workspace=key.workspace, sent_by_key=key, idempotency_key=token).first()
    if earlier is None:
        return None
    is_old = timezone.now() - earlier.received_at > REPLAY_WINDOW
    if is_old or is_unfinished(earlier):
        Delivery.objects.filter(pk=earlier.pk).update(is_key_free=True)
    return None if is_old else earlier


def is_unfinished(delivery: Delivery) -> bool:
    """Whether its body broke off or was given up, so that sending it again is no replay and goes on where it ended."""
    is_given_up = timezone.now() - delivery.received_at > ABANDONED_AFTER
    return delivery.state == Delivery.State.BROKEN or (delivery.state == Delivery.State.RECEIVING and is_given_up)


def check_twin(body: Arrival, earlier: Delivery, channel: Channel, form: Form) -> None:
    """Let a request pass whose Idempotency-Key was used before, if it is the same request.

    Raises:
        ProblemError: 409 for another body, channel or form, or while the first is still running; 400 or 408 for a body
            that breaks off.
    """
    if not earlier.is_framed:
        raise ProblemError(409, _RUNNING, retry_after=2)
    if (earlier.channel_id, earlier.options.get("form")) != (channel.pk, form):
        raise ProblemError(
            409, "this Idempotency-Key was used with another channel or Content-Type: choose another key for it"
        )
    body.drain()
    if body.sha256 != bytes(earlier.sha256 or b""):
        raise ProblemError(409, "this Idempotency-Key was used with another body: choose another key for it")


JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"
# A body of Protobuf is read whole.
MAX_PROTOBUF_BYTES: Final = 16 * 1024 * 1024
# What stands around spans is written with each of them, so that little could become much.
MAX_AROUND_BYTES: Final = 64 * 1024 * 1024
# How an export of JSON begins: with the first of its lists, or with its end.
_FIRST_KEY: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*(?:\}|"(\w{1,64})"\s*:\s*\[)')
_HEAD_BYTES: Final = 4096
_IDS: Final = {"trace_id": "traceId", "span_id": "spanId", "parent_span_id": "parentSpanId"}


class Signal(NamedTuple):
    """What is exported: the messages of the protocol, how JSON names the list of resources, and how the count of what
    is refused is called."""

    request: Any
    response: Any
    resource: Any
    scope: Any
    item: Any
    names: tuple[str, str]
    rejected: str


SPANS: Final = Signal(
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
    ResourceSpans,
    ScopeSpans,
    Span,
    ("resourceSpans", "resource_spans"),
    "rejected_spans",
)
LOGS: Final = Signal(
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
    ResourceLogs,
    ScopeLogs,
    LogRecord,
    ("resourceLogs", "resource_logs"),
    "rejected_log_records",
)


def _describe(rejected: str) -> dict[str, Any]:
    """What an operation takes and answers with, whose answer counts what is refused under this name."""
    said = {rejected: {"type": "string"}, "errorMessage": {"type": "string"}}
    answer = {"type": "object", "properties": {"partialSuccess": {"type": "object", "properties": said}}}
    return {
        "responses": {(200, JSON): answer},
        "body": {JSON: {"type": "object"}, PROTOBUF: {"type": "string", "format": "binary"}},
        "scope": "ingest",
        "refusals": BODY_REFUSALS,
    }


class Exporters(Endpoint):
    """The doors for exporters of OpenTelemetry."""

    authentication_classes = (ExporterAuthentication,)
    problem_content: ClassVar = {
        JSON: {"schema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}},
        PROTOBUF: {"schema": {"type": "string", "format": "binary"}},
    }

    @property
    def media_type(self) -> str:
        """The type of the request, in which it is answered, without its parameters."""
        return (self.request.headers.get("Content-Type") or "").partition(";")[0].strip().lower()

    def handle_exception(self, error: Exception) -> Any:
        """A refusal as the protocol has it: a `google.rpc.Status`, in the type of the request."""
        return answer_refusal(super().handle_exception(error), self.media_type)

    @operation(**_describe("rejectedSpans"))
    def export_spans(self, request: Request) -> HttpResponse | Response:
        """Take what is exported in, by OTLP over HTTP. The answer comes after it is durable."""
        return self._take(request, SPANS)

    @operation(**_describe("rejectedLogRecords"))
    def export_logs(self, request: Request) -> HttpResponse | Response:
        """Take what is exported in, by OTLP over HTTP. The answer comes after it is durable."""
        return self._take(request, LOGS)

    def _take(self, request: Request, signal: Signal) -> HttpResponse | Response:
        key, kind = self.key, self.media_type
        refuse_crowd(request, key)
        if kind not in (JSON, PROTOBUF):
            raise ProblemError(415, f"Content-Type {kind[:100]!r} is not understood: send {PROTOBUF} or {JSON}")
        channel, token = choose_channel(request, key, None), read_idempotency_key(request)
        most = settings.LIMITS["delivery_bytes"] if kind == JSON else MAX_PROTOBUF_BYTES
        if kind == PROTOBUF and find_length(request._request) == 0:
            return answer_export(signal.response(), kind)  # That is how an export of nothing is written.
        pieces = read_body(request._request, max_bytes=most)
        if is_asked_first(request._request):
            return Response(status=204)
        with closing(pieces) as body:
            if kind == JSON:
                head = bytearray()
                whole = keep_head(look_at_beginning(body, None), head)
                delivery = take_body(request, key, channel, None, token, whole)
                return answer_json(delivery, signal, is_export=begins_export(bytes(head), signal))
            arrival = Arrival(body)
            lines = write_items(parse_export(b"".join(arrival), signal), signal)
            first = next(lines, None)
            if first is None:
                return answer_export(signal.response(), kind)
            whole = itertools.chain([first], lines)
            delivery = take_body(request, key, channel, "ndjson", token, whole, arrival=arrival)
        return answer_export(count_refused(delivery, signal), kind)


def keep_head(body: Iterable[bytes], head: bytearray) -> Iterator[bytes]:
    """The same body, the beginning of which is left in `head` as it passes."""
    for piece in body:
        head += piece[: max(0, _HEAD_BYTES - len(head))]
        yield piece


def begins_export(head: bytes, signal: Signal) -> bool:
    """Whether a body of JSON begins as an export of this signal, or is one of nothing."""
    found = _FIRST_KEY.match(head)
    return found is not None and (found[1] is None or found[1].decode() in signal.names)


def parse_export(body: bytes, signal: Signal) -> list[Scope]:
    """The scopes of the export that a body of Protobuf is, each message of which was parsed once.

    Raises:
        ProblemError: 400 for bytes that are none, 413 for more than a POST may bring, and where the resources, written
            with each span, are too long.
    """
    try:
        scopes = cut_scopes(body, most=framing.FREE_RECORDS)
        for each in scopes:
            parse(signal.resource, each.resource)
            parse(signal.scope, each.scope)
            for item in each.items:
                parse(signal.item, item)
    except (DecodeError, WireError) as error:
        raise ProblemError(400, f"the body is no {signal.request.__name__}: {error}") from error
    except TooManyError as error:
        detail = f"resources, scopes, what they hold, or the fields of one: {error}; send fewer at once"
        raise ProblemError(413, detail) from error
    around = sum(len(each.items) * (len(each.resource) + len(each.scope)) for each in scopes)
    if around > MAX_AROUND_BYTES:
        raise ProblemError(413, f"resources have at most {MAX_AROUND_BYTES} bytes for all of it: send fewer at once")
    return scopes


def write_items(scopes: Iterable[Scope], signal: Signal) -> Iterator[bytes]:
    """What an export holds as JSON by OTLP, one a line, each with its resource and its scope."""
    for each in scopes:
        resource, scope = parse(signal.resource, each.resource).resource, parse(signal.scope, each.scope).scope
        around = {"resource": _write(resource), "scope": _write(scope)}
        for item in each.items:
            said = _write_item(parse(signal.item, item)) | {name: value for name, value in around.items() if value}
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
    # Its field 2 is a text, as that of a `google.rpc.Status` is, of which no other field is written.
    written = ExportTracePartialSuccess(error_message=message.encode("utf-8", "replace").decode())
    status = written.SerializeToString() if kind == PROTOBUF else json.dumps({"message": message}).encode()
    answer = HttpResponse(status, status=refusal.status_code, content_type=PROTOBUF if kind == PROTOBUF else JSON)
    for name, value in refusal.headers.items():
        if name.lower() != "content-type":
            answer[name] = value
    return answer


def answer_json(delivery: Delivery, signal: Signal, *, is_export: bool) -> HttpResponse:
    """The answer to a body of JSON, all of which is kept whatever it is; it says so of what is no export, or a cut one.

    Raises:
        ProblemError: 400 where nothing at all was read from such a body.
    """
    answer = count_refused(delivery, signal)
    ends = [row.reason for row in list_warnings(delivery.warnings).first if row.index >= delivery.received]
    if not is_export:
        ends.insert(0, f"the body is no {signal.request.__name__}")
    if ends and not delivery.received:
        raise ProblemError(400, f"{'; '.join(ends)}; its bytes are kept: {_say_where(delivery)}")
    if ends and not delivery.quarantined:
        answer.partial_success.error_message = f"{'; '.join(ends)}; what was read is stored: {_say_where(delivery)}"
    return answer_export(answer, JSON)


def count_refused(delivery: Delivery, signal: Signal) -> Any:
    """What the protocol answers with: how much could not become text, and why."""
    answer = signal.response()
    if delivery.quarantined:
        setattr(answer.partial_success, signal.rejected, delivery.quarantined)
        answer.partial_success.error_message = f"kept and not read: {_say_where(delivery)}"
    return answer


def _say_where(delivery: Delivery) -> str:
    return f"see /api/v1/deliveries/{delivery.pk}"


def answer_export(answer: Any, kind: str) -> HttpResponse:
    """An answer of the protocol in the type of the request. An export of nothing is taken, and leaves no delivery."""
    written = answer.SerializeToString() if kind == PROTOBUF else json.dumps(_write(answer)).encode()
    return HttpResponse(written, content_type=kind)
