"""Withdrawing a delivery and taking that back: two acts with a reason, on the delivery's page."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from inspector.accounts.models import Membership
from inspector.intake.services import take_back, withdraw_delivery

from ..shell import require_auditor, within_workspace
from .views import answer_delivery, get_delivery


@within_workspace("POST")
def withdraw(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """Withdraw the delivery: what no other delivery holds is hidden."""
    done = "Withdrawn. Nothing is erased, and you can take it back."
    return _act(request, membership, delivery_id, withdraw_delivery, done)


@within_workspace("POST")
def undo(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """Undo the withdrawal: its records are shown again."""
    return _act(request, membership, delivery_id, take_back, "The withdrawal is undone.")


def _act(
    request: HttpRequest, membership: Membership, delivery_id: uuid.UUID, act: Callable[..., object], done: str
) -> HttpResponse:
    delivery = get_delivery(membership, delivery_id)
    require_auditor(membership)
    try:
        act(membership=membership, delivery=delivery, reason=request.POST.get("reason", ""))
    except ValidationError as error:
        return answer_delivery(request, membership, delivery, error="; ".join(error.messages), status=422)
    flashes.success(request, done)
    return redirect("pages:delivery", membership.workspace.slug, delivery.pk)
