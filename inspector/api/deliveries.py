"""GET a delivery, and the exact bytes of a record."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from inspector.intake import selectors

from .authentication import caller_of
from .problems import ProblemError
from .receipts import DeliverySerializer, make_delivery


class DeliveryView(APIView):
    """One delivery: custody, counts, progress, problems."""

    scopes: Final = {"GET": "ingest"}

    @extend_schema(responses=DeliverySerializer, parameters=[OpenApiParameter("after", int)])
    def get(self, request: Request, delivery_id: uuid.UUID) -> Response:
        """The delivery; `after` pages through its problems."""
        delivery = selectors.find_delivery(workspace=caller_of(request).workspace, delivery_id=delivery_id)
        if delivery is None:
            raise NotFound
        return Response(make_delivery(delivery, after=read_whole_number(request, "after", default=-1)))


class RawView(APIView):
    """The exact bytes of a record: the slice of the stream, or the wire read from it."""

    @extend_schema(
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
        parameters=[OpenApiParameter("part", str, enum=["source", "wire"])],
    )
    def get(self, request: Request, record_id: uuid.UUID) -> StreamingHttpResponse:
        """The bytes, as a download that no browser will interpret."""
        record = selectors.find_record(workspace=caller_of(request).workspace, record_id=record_id)
        if record is None:
            raise NotFound
        part = request.query_params.get("part", "source")
        if part not in ("source", "wire"):
            raise ProblemError(400, "part is source or wire")
        if part == "wire" and record.wire is not None:
            return answer_bytes([bytes(record.wire)], f"{record.pk}.bin")
        return answer_bytes(selectors.read_source(record=record), f"{record.pk}.bin")


def answer_bytes(pieces: Iterable[bytes], name: str) -> StreamingHttpResponse:
    """Bytes as an attachment of no type, so that nothing in them runs."""
    response = StreamingHttpResponse(pieces, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def read_whole_number(request: Request, name: str, *, default: int) -> int:
    """A whole number of the query string.

    Raises:
        ProblemError: 400 for anything else.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.removeprefix("-").isdecimal() or len(text) > 15:
        raise ProblemError(400, f"{name} is a whole number")
    return int(text)
