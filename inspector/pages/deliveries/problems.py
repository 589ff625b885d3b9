"""The problems of a delivery as a list to download: CSV that no spreadsheet runs, and JSON Lines."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, Final

from django.http import HttpRequest, StreamingHttpResponse
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.intake.models import Delivery
from inspector.intake.selectors import list_problems

from ..downloads import answer_rows
from ..shell import within_workspace
from .views import get_delivery

COLUMNS: Final = ("record", "line", "byte", "bytes", "outcome", "reason", "record_id", "raw")
_PAGE: Final = 1000


@within_workspace("GET")
def download(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID, form: str) -> StreamingHttpResponse:
    """The problems of a delivery as a list."""
    delivery = get_delivery(membership, delivery_id)
    return answer_rows(_list_rows(delivery), COLUMNS, form=form, name=f"problems-{delivery.pk}")


def _list_rows(delivery: Delivery) -> Iterator[dict[str, Any]]:
    after = -1
    while page := list(list_problems(delivery=delivery, after=after, limit=_PAGE)):
        for problem in page:
            yield {
                "record": problem.index + 1,
                "line": problem.line,
                "byte": problem.offset,
                "bytes": problem.length,
                "outcome": problem.outcome,
                "reason": problem.reason,
                "record_id": str(problem.record_id),
                "raw": reverse("api:raw", args=[problem.record_id]),
            }
        after = page[-1].index
