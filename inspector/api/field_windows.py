"""GET /api/v1/messages/{id}/fields: the fields of a message in windows, for more of them than an answer holds."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from dialects import Field, to_shallow_json
from inspector.effort import check_effort
from inspector.lookups import or_404
from inspector.threads import messages
from inspector.threads.rendering.masks import MAX_BYTES_LOOKED_THROUGH

from .authentication import caller_of
from .endpoints import Endpoint
from .parameters import Number
from .shapes import list_of

MAX_NODES: Final = 2_000
_NODE: Final[dict[str, Any]] = {
    "type": "object",
    "description": "a field of docs/record.md without its children: `depth` says how deep it stands",
    "properties": {"depth": {"type": "integer"}, "children": {"type": "integer"}},
    "required": ["depth", "children"],
    "additionalProperties": {},
}


@extend_schema_field(list_of(_NODE))
class NodesField(serializers.Field[Any, Any, Any, Any]):
    """Fields in the order of the text."""


class FieldWindowSerializer(serializers.Serializer[Any]):
    """A window of the fields, each before its children; `next` is the offset of the window after, or null."""

    results = NodesField()
    next = serializers.IntegerField(allow_null=True)


class FieldsView(Endpoint):
    """The fields of one message's record."""

    reads = "messages"
    scopes: ClassVar = {"GET": "read"}
    refusals: ClassVar = {"GET": (409, 410)}
    parameters: ClassVar = {
        "GET": (
            Number(name="offset", about="the first field of the window", default=0, most=10**9),
            Number(name="limit", about="how many fields", default=500, least=1, most=MAX_NODES),
        )
    }

    @extend_schema(operation_id="list_fields", responses=FieldWindowSerializer)
    def get(self, request: Request, message_id: uuid.UUID) -> Response:
        """A window of the field tree, in the order of the text; secrets are masked in it."""
        message = or_404(messages.find_message(workspace=caller_of(request).workspace, message_id=message_id))
        size = vars(message)["record_bytes"]
        if size > MAX_BYTES_LOOKED_THROUGH:
            return Response({"results": [], "next": None, "cut": [{"path": "results", "total": size, "unit": "bytes"}]})
        start, limit = self.given["offset"], self.given["limit"]
        fields = messages.unfold(message=message).fields
        window = list(islice(walk_fields(fields), start, start + limit + 1))
        shown = [to_shallow_json(field) | {"depth": depth, "children": len(field.children)} for depth, field in window]
        return Response({"results": shown[:limit], "next": start + limit if len(shown) > limit else None})


def walk_fields(fields: Sequence[Field]) -> Iterator[tuple[int, Field]]:
    """Each field with its depth, before its children."""
    stack = [(0, field) for field in reversed(fields)]
    while stack:
        check_effort()
        depth, field = stack.pop()
        yield depth, field
        stack.extend((depth + 1, child) for child in reversed(field.children))
