"""POST /api/v1/messages: take a body in, record by record, and answer when it is durable. GET: search."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import closing
from datetime import timedelta
from typing import Any, ClassVar, Final, Literal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts import selectors as accounts
from inspector.accounts import services as account_services
from inspector.accounts.models import ApiKey, Channel
from inspector.database import on_replica
from inspector.intake import services
from inspector.intake.containers import Arrival
from inspector.intake.framing import EmptyError, series_of, take_stream
from inspector.intake.models import Delivery, Door
from inspector.intake.staging import count_waiting_bytes
from inspector.intake.store import TwinError
from inspector.logs import note_about
from inspector.tokens import hide_tokens
from inspector.trail.acting import find_address

from .backlog import refuse_backlog
from .bodies import EMPTY, find_length, is_asked_first, look_at_beginning, read_body
from .endpoints import Endpoint
from .messages import SEARCH, MessagePageSerializer, WaitedReceiptSerializer, list_messages
from .parameters import Parameter
from .problems import BrokenBodyError, ProblemError
from .receipts import make_receipt
from .waiting import grant_wish

Form = Literal["lines", "ndjson", "csv"] | None
FORMS: Final[dict[str, Form]] = {
    "application/x-ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "application/json": None,
    "text/plain": "lines",
    "text/event-stream": "lines",
    "text/csv": "csv",
}
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


class MessagesView(Endpoint):
    """The door for programs, and the search for them."""

    reads = "messages"
    scopes: ClassVar = {"POST": "ingest", "GET": "read"}
    parameters: ClassVar = {
        "POST": (Parameter(name="channel", about="the channel, where no header can be set", max_characters=64),),
        "GET": SEARCH,
    }
    refusals: ClassVar = {"POST": (408, 409, 413, 415, 422)}

    @extend_schema(
        operation_id="send_messages",
        request=_BODY,
        responses={202: WaitedReceiptSerializer},
        parameters=[
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
    def post(self, request: Request) -> Response:
        """Take messages in. The answer comes after every complete record of the body is durable."""
        key = self.key
        refuse_crowd(request, key)
        form = choose_form(request)
        channel = choose_channel(request, key, self.given["channel"])
        token = read_idempotency_key(request)
        if is_asked_first(request._request):
            return Response(status=204)
        body = read_body(request._request, max_bytes=settings.LIMITS["delivery_bytes"])
        with closing(body):
            delivery = take_body(request, key, channel, form, token, look_at_beginning(body, form))
        note_about(delivery=delivery.pk)
        return grant_wish(request, delivery, Response(make_receipt(delivery), status=202))

    @extend_schema(operation_id="list_messages", responses=MessagePageSerializer)
    @on_replica
    def get(self, request: Request) -> Response:
        """Messages that a query means, newest first."""
        return list_messages(request, **self.given)


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
        ProblemError: 400, 408 or 413 for a body that breaks off, 409 for an Idempotency-Key of another body.
    """
    earlier = find_twin(key, token) if token else None
    if earlier and not is_unfinished(earlier):
        check_twin(body if arrival is None else arrival, earlier)
        return earlier
    delivery = open_delivery(request, key, channel, form, token, earlier)
    try:
        return take_stream(delivery=delivery, chunks=body, arrival=arrival)
    except BrokenBodyError as error:
        raise ProblemError(error.status, f"{error}; its complete records are kept", **make_receipt(delivery)) from error
    except EmptyError:
        raise ProblemError(400, EMPTY) from None
    except TwinError as error:
        raise ProblemError(409, _RUNNING, retry_after=2) from error


def choose_form(request: Request) -> Form:
    """The form of log that the Content-Type declares; None where its first bytes decide.

    Raises:
        ProblemError: 400 for no body at all, 415 for a type that is not one of `FORMS`, or for text in another
            encoding than UTF-8.
    """
    if find_length(request._request) == 0:
        raise ProblemError(400, EMPTY)
    declared = request.headers.get("Content-Type", "")
    kind, _, parameters = declared.partition(";")
    charset = parameters.partition("charset=")[2].strip(' "').lower()
    kind = kind.strip().lower()
    if kind not in FORMS:
        curl = " (curl -d declares it, unless -H says otherwise)" if kind == "application/x-www-form-urlencoded" else ""
        known = ", ".join(FORMS)
        raise ProblemError(415, f"Content-Type {declared[:100]!r} is not understood{curl}: send one of {known}")
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise ProblemError(415, f"text in {charset[:100]!r} is not understood: send UTF-8")
    return FORMS[kind]


def choose_channel(request: Request, key: ApiKey, asked: str | None) -> Channel:
    """The channel that the header names, else the one asked for in the address, else the key's, else the default.

    Raises:
        ProblemError: 403 where the key is bound to another channel, 422 for a name that cannot be one, and for a new
            one where there are as many as a key may make.
    """
    name = request.headers.get("X-Channel") or asked
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


def check_twin(body: Iterable[bytes], earlier: Delivery) -> None:
    """Let a request pass whose Idempotency-Key was used before, if it is the same request.

    Raises:
        ProblemError: 409 for another body, or while the first is still running; 400 or 408 for a body that breaks off.
    """
    if not earlier.is_framed:
        raise ProblemError(409, _RUNNING, retry_after=2)
    digest = hashlib.sha256()
    for piece in body:
        digest.update(piece)
    if digest.digest() != bytes(earlier.sha256 or b""):
        raise ProblemError(409, "this Idempotency-Key was used with another body: choose another key for it")


def open_delivery(
    request: Request, key: ApiKey, channel: Channel, form: str | None, token: str | None, earlier: Delivery | None
) -> Delivery:
    """The delivery for this request; with `earlier`, what was kept of that one is not new."""
    options: dict[str, Any] = {"form": form}
    return services.open_delivery(
        workspace=key.workspace,
        channel=channel,
        door=Door.API,
        key=key,
        remote_address=find_address(),
        content_type=request.headers.get("Content-Type", ""),
        options=options | ({"series": series_of(earlier).hex} if earlier else {}),
        idempotency_key=token,
        has_row=False,
    )
