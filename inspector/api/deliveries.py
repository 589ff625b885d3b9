"""Deliveries: the list, one of them, its withdrawal, and the exact bytes of a record."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any, ClassVar, Final

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.bounds import BYTES, RangeError, answer_bytes
from inspector.database import or_404
from inspector.intake import selectors
from inspector.intake.models import Delivery, Withdrawal
from inspector.intake.withdrawals import (
    MAX_REASON_LENGTH,
    find_withdrawal,
    find_withdrawals,
    take_back,
    withdraw_delivery,
)
from inspector.ledger.selectors import find_changed, say_changed
from inspector.opening import disclose_source

from .authentication import ACT_REFUSALS, act_for, caller_of
from .bodies import read_json
from .endpoints import Endpoint
from .erasures import refuse_erased
from .masking import may_see_secrets, withhold
from .paging import CURSOR, FIELDS_ABOUT, LIMIT, choose, cut_page, read_place
from .parameters import Choice, Names, Number, Parameter, find_named_channel
from .problems import ProblemError
from .receipts import (
    LISTED_STATES,
    DeliveryPageSerializer,
    DeliveryRowSerializer,
    DeliverySerializer,
    WithdrawalSerializer,
    make_delivery,
    make_withdrawal,
    show_delivery,
)

logger = logging.getLogger(__name__)

_WANTED: Final = 'send {"reason": "…"} as application/json'
_BODY: Final[dict[str, Any]] = {
    "application/json": {
        "type": "object",
        "properties": {"reason": {"type": "string", "minLength": 1, "maxLength": MAX_REASON_LENGTH}},
        "required": ["reason"],
        "additionalProperties": False,
    }
}


class DeliveriesView(Endpoint):
    """Deliveries, newest first."""

    parameters: ClassVar = {
        "GET": (
            CURSOR,
            LIMIT,
            Parameter(name="channel", about="filter by channel", default=""),
            Choice(name="state", about="filter by state", choices=LISTED_STATES, default=""),
            Names(name="fields", about=FIELDS_ABOUT, choices=tuple(DeliveryRowSerializer().fields)),
        )
    }

    @extend_schema(operation_id="list_deliveries", responses=DeliveryPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of deliveries, with their counts; the problems of each are at its own address."""
        given, workspace = self.given, self.workspace
        found = selectors.list_deliveries(
            workspace=workspace,
            channel=find_named_channel(workspace, given["channel"]),
            state=given["state"],
            before=read_place(given, workspace),
            limit=given["limit"] + 1,
        )
        page, cursor = cut_page(found, given, workspace, lambda delivery: (delivery.received_at, delivery.pk))
        withdrawn = find_withdrawals(delivery_ids=[delivery.pk for delivery in page])
        rows = [choose(show_delivery(each, is_withdrawn=each.pk in withdrawn), given["fields"]) for each in page]
        return Response({"results": rows, "next": cursor})


class DeliveryView(Endpoint):
    """One delivery: custody, counts, progress, problems."""

    scopes: ClassVar = {"GET": ("ingest", "read")}
    parameters: ClassVar = {"GET": (Number(name="after", about="problems after the one with this index", default=-1),)}

    @extend_schema(operation_id="get_delivery", responses=DeliverySerializer)
    def get(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """The delivery; `after` pages through its problems."""
        delivery = self.find(selectors.find_delivery, delivery_id=delivery_id)
        return Response(make_delivery(delivery, after=self.given["after"]))


class RawView(Endpoint):
    """The exact bytes of a record: the slice of the stream, or the wire read from it."""

    reads = "exact bytes"
    parameters: ClassVar = {
        "GET": (
            Choice(
                name="part",
                about="source: the received bytes; wire: the text that was read from them",
                choices=("source", "wire"),
                default="source",
            ),
        )
    }
    refusals: ClassVar = {"GET": (409, 410, 416)}
    media_type = BYTES

    @extend_schema(
        operation_id="get_raw",
        responses={
            (200, BYTES): OpenApiResponse(OpenApiTypes.BINARY, description="the bytes, as a download"),
            (206, BYTES): OpenApiResponse(OpenApiTypes.BINARY, description="the range of them that is asked for"),
        },
        parameters=[
            OpenApiParameter("Range", {"type": "string"}, "header", description="one range of bytes, as bytes=0-1023"),
            OpenApiParameter("Content-Range", {"type": "string"}, "header", response=[206]),
            OpenApiParameter("Accept-Ranges", {"type": "string"}, "header", response=[200, 206]),
            OpenApiParameter("ETag", {"type": "string"}, "header", response=[200, 206]),
            OpenApiParameter(
                "X-Source-SHA256", {"type": "string"}, "header", response=[200, 206], description="of the exact source"
            ),
        ],
    )
    def get(self, request: Request, record_id: uuid.UUID) -> StreamingHttpResponse:
        """The bytes, as a download that no browser will interpret: all of them, or the range that is asked for.

        Of a record that holds a secret, a key without the scope `secrets` gets a refusal, with the masked text and the
        SHA-256 of the exact bytes. Other bytes than were entered in the ledger are refused (409).
        """
        key = self.key
        record = self.find(selectors.find_record, record_id=record_id)
        refuse_erased(key.workspace_id, record_id)
        for index in find_changed("record", [record.pk]).values():
            raise ProblemError(409, say_changed("record", index), index=index)
        withheld = withhold(record)
        if withheld and not may_see_secrets(key):
            raise ProblemError(
                403,
                "the record holds a secret, or is too long to be looked through: its exact bytes need a key with the "
                "scope secrets",
                scope=["secrets"],
                masked=withheld.masked,
                sha256=withheld.sha256,
            )
        if withheld:
            logger.info("key %s was given the exact bytes of record %s, which holds a secret", key.prefix, record.pk)
            disclose_source(record=record, by=key)
        size, digest = selectors.measure_source(record=record)
        pieces = selectors.read_source(record=record)
        wire_bytes = vars(record)["wire_bytes"]
        if self.given["part"] == "wire" and wire_bytes is not None:
            pieces, size = selectors.read_pieces(record=record, name="wire"), wire_bytes
        try:
            response = answer_bytes(request, pieces, name=f"{record.pk}.bin", size=size, digest=digest)
        except RangeError as error:
            raise ProblemError(416, str(error), headers={"Content-Range": f"bytes */{error.size}"}) from error
        response["X-Source-SHA256"] = digest
        return response


class WithdrawalView(Endpoint):
    """That a delivery is withdrawn. Nothing is erased by it, and its receipt stands."""

    scopes: ClassVar = {"GET": "ingest", "POST": "withdraw", "DELETE": "withdraw"}
    parameters: ClassVar = {
        "DELETE": (
            Parameter(
                name="reason", about="reason of the withdrawal", is_required=True, max_characters=MAX_REASON_LENGTH
            ),
        )
    }
    refusals: ClassVar = {"POST": ACT_REFUSALS, "DELETE": (409, 422)}

    @extend_schema(operation_id="get_withdrawal", responses=WithdrawalSerializer)
    def get(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """The withdrawal in force; 404 where there is none."""
        found = or_404(find_withdrawal(delivery=self.find(selectors.find_delivery, delivery_id=delivery_id)))
        return Response(make_withdrawal(found))

    @extend_schema(operation_id="withdraw_delivery", request=_BODY, responses={201: WithdrawalSerializer})
    def post(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """Withdraw the delivery in the name of the member who made the key: what no other delivery holds is hidden."""
        delivery = self.find(selectors.find_delivery, delivery_id=delivery_id)
        return _act(request, delivery, read_reason(request), withdraw_delivery, status=201)

    @extend_schema(operation_id="take_withdrawal_back", responses={200: WithdrawalSerializer})
    def delete(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """Undo the withdrawal, in the same name: its records are shown again. Both acts are kept."""
        delivery = self.find(selectors.find_delivery, delivery_id=delivery_id)
        return _act(request, delivery, self.given["reason"], take_back, status=200)


def read_reason(request: Request) -> str:
    """The reason in the body.

    Raises:
        ProblemError: 400 or 408 for a body that is no JSON or breaks off, 413 for one that is too long, 415 for
            another type, 422 where it holds anything else.
    """
    given = read_json(request._request, wanted=_WANTED)
    if not isinstance(given, dict) or set(given) != {"reason"} or not isinstance(given["reason"], str):
        raise ProblemError(422, _WANTED)
    return str(given["reason"])


def _act(request: Request, delivery: Delivery, reason: str, act: Callable[..., Withdrawal], *, status: int) -> Response:
    with act_for(request) as person:
        made = act(membership=person, delivery=delivery, reason=reason)
    logger.info("key %s: %s delivery %s", caller_of(request).prefix, act.__name__, delivery.pk)
    return Response(make_withdrawal(made), status=status)
