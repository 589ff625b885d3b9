"""The withdrawal of a delivery: a person's act, which a key with the scope for it does in their name."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.intake import selectors, services
from inspector.intake.models import Delivery, Withdrawal
from inspector.intake.withdrawals import MAX_REASON_LENGTH, find_withdrawal
from inspector.lookups import or_404

from .authentication import act_for, caller_of
from .bodies import read_json
from .endpoints import Endpoint
from .parameters import Parameter
from .problems import ProblemError
from .receipts import WithdrawalSerializer, make_withdrawal

logger = logging.getLogger(__name__)

WANTED: Final = 'send {"reason": "…"} as application/json'
_BODY: Final[dict[str, Any]] = {
    "application/json": {
        "type": "object",
        "properties": {"reason": {"type": "string", "minLength": 1, "maxLength": MAX_REASON_LENGTH}},
        "required": ["reason"],
        "additionalProperties": False,
    }
}


class WithdrawalView(Endpoint):
    """That a delivery is withdrawn. Nothing is erased by it, and its receipt stands."""

    scopes: ClassVar = {"GET": "ingest", "POST": "withdraw", "DELETE": "withdraw"}
    parameters: ClassVar = {
        "DELETE": (
            Parameter(
                name="reason", about="reason of the withdrawal", is_required=True, most_characters=MAX_REASON_LENGTH
            ),
        )
    }
    refusals: ClassVar = {"POST": (408, 409, 413, 415, 422), "DELETE": (409, 422)}

    @extend_schema(operation_id="get_withdrawal", responses=WithdrawalSerializer)
    def get(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """The withdrawal in force; 404 where there is none."""
        found = or_404(find_withdrawal(delivery=_find(request, delivery_id)))
        return Response(make_withdrawal(found))

    @extend_schema(operation_id="withdraw_delivery", request=_BODY, responses={201: WithdrawalSerializer})
    def post(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """Withdraw the delivery in the name of the member who made the key: what no other delivery holds is hidden."""
        delivery = _find(request, delivery_id)
        return _act(request, delivery, read_reason(request), services.withdraw_delivery, status=201)

    @extend_schema(operation_id="take_withdrawal_back", responses={200: WithdrawalSerializer})
    def delete(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """Undo the withdrawal, in the same name: its records are shown again. Both acts are kept."""
        return _act(request, _find(request, delivery_id), self.given["reason"], services.take_back, status=200)


def read_reason(request: Request) -> str:
    """The reason in the body.

    Raises:
        ProblemError: 400 or 408 for a body that is no JSON or breaks off, 413 for one that is too long, 415 for
            another type, 422 where it holds anything else.
    """
    given = read_json(request._request, wanted=WANTED)
    if not isinstance(given, dict) or set(given) != {"reason"} or not isinstance(given["reason"], str):
        raise ProblemError(422, WANTED)
    return str(given["reason"])


def _find(request: Request, delivery_id: uuid.UUID) -> Delivery:
    return or_404(selectors.find_delivery(workspace=caller_of(request).workspace, delivery_id=delivery_id))


def _act(request: Request, delivery: Delivery, reason: str, act: Callable[..., Withdrawal], *, status: int) -> Response:
    with act_for(request) as person:
        made = act(membership=person, delivery=delivery, reason=reason)
    logger.info("key %s: %s delivery %s", caller_of(request).prefix, act.__name__, delivery.pk)
    return Response(make_withdrawal(made), status=status)
