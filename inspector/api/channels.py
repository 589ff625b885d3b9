"""GET channels: the namespaces of ids that there are."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.selectors import walk_channels

from .authentication import caller_of
from .endpoints import Endpoint
from .paging import CURSOR, LIMIT, cut_keyed, page_of, read_row_key
from .shapes import show

_CHANNELS: Final = "channels"


class ChannelSerializer(serializers.Serializer[Any]):
    """A channel: a namespace of ids. `channel:` in a query finds what came by it."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()


ChannelPageSerializer: Final = page_of(
    "Channel",
    ChannelSerializer,
    "Channels in the order in which they were made",
)


class ChannelsView(Endpoint):
    """The channels of the workspace."""

    scopes: ClassVar = {"GET": "read"}
    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}

    @extend_schema(operation_id="list_channels", responses=ChannelPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of channels."""
        given, workspace = self.given, caller_of(request).workspace
        key = read_row_key(given, workspace, of=_CHANNELS)
        after = uuid.UUID(key[0]) if key else None
        found = walk_channels(workspace=workspace, after=after, limit=given["limit"] + 1)
        page, cursor = cut_keyed(found, given, workspace, lambda channel: [str(channel.pk)], of=_CHANNELS)
        rows = [show(ChannelSerializer, each) for each in page]
        return Response({"results": rows, "next": cursor})
