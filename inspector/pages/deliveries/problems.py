"""The problems of a delivery as a list to download: CSV that no spreadsheet runs, and JSON Lines."""

import csv
import io
import json
import uuid
from collections.abc import Iterator
from typing import Any, Final

from django.http import HttpRequest, StreamingHttpResponse
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.exports.cells import make_safe
from inspector.intake.models import Delivery
from inspector.intake.selectors import list_problems

from ..shell import within_workspace
from .views import get_delivery

COLUMNS: Final = ("record", "line", "byte", "bytes", "outcome", "reason", "record_id", "raw")
_PAGE: Final = 1000


@within_workspace("GET")
def download_csv(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> StreamingHttpResponse:
    """The problems as CSV, safe in a spreadsheet."""
    delivery = get_delivery(membership, delivery_id)
    return _answer(_write_csv(_list_rows(delivery)), delivery, "csv", "text/csv; charset=utf-8")


@within_workspace("GET")
def download_jsonl(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> StreamingHttpResponse:
    """The problems as JSON Lines, each value as it is."""
    delivery = get_delivery(membership, delivery_id)
    lines = (json.dumps(row, ensure_ascii=True) + "\n" for row in _list_rows(delivery))
    return _answer(lines, delivery, "jsonl", "application/jsonl; charset=utf-8")


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


def _write_csv(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([make_safe(value) if isinstance(value, str) else value for value in row.values()])
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def _answer(pieces: Iterator[str], delivery: Delivery, form: str, kind: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(pieces, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="problems-{delivery.pk}.{form}"'
    return response
