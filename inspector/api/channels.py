"""GET channels, and the channel that a parameter names."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.models import Channel, Workspace
from inspector.accounts.selectors import find_channel, list_channels, walk_channels
from inspector.search.language import find_close

from .authentication import caller_of
from .endpoints import Endpoint
from .paging import CURSOR, LIMIT, cut_keyed, read_row_key
from .parameters import LONGEST_SHOWN
from .problems import ProblemError

_CHANNELS: Final = "channels"


class ChannelSerializer(serializers.Serializer[Any]):
    """A channel: a namespace of ids. `channel:` in a query finds what came by it."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()


class ChannelPageSerializer(serializers.Serializer[Any]):
    """Channels in the order in which they were made; `next` is the cursor of the page after, or null."""

    results = ChannelSerializer(many=True)
    next = serializers.CharField(allow_null=True)


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
        rows = [{"id": each.pk, "name": each.name, "created_at": each.created_at} for each in page]
        return Response({"results": rows, "next": cursor})


def find_named_channel(workspace: Workspace, name: str) -> Channel | None:
    """The channel of the parameter `channel`; None where none is named.

    Raises:
        ProblemError: 400 for a name that no channel has, with the one that was probably meant.
    """
    if not name:
        return None
    channel = find_channel(workspace=workspace, name=name)
    if channel is None:
        names = [each.name for each in list_channels(workspace=workspace)]
        close = find_close(name, names)
        hint = f"did you mean {close}?" if close else "GET /api/v1/channels lists those there are"
        detail = f"there is no channel {name[:LONGEST_SHOWN]!r}: {hint}"
        raise ProblemError(400, detail, parameter="channel", allowed=names[:LONGEST_SHOWN])
    return channel
