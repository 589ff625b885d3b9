"""GET live: the messages that were told since a cursor, each once, for programs that follow a workspace."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.search.cursors import CursorError
from inspector.search.news import begin, list_news, read_since, write_since

from .endpoints import Endpoint
from .masking import may_see_secrets
from .messages import show_messages
from .paging import FIELDS_ABOUT, choose
from .parameters import Names, Number, Parameter
from .problems import ProblemError
from .serializers import ChosenMessageSerializer, MessageSerializer


class LiveSerializer(serializers.Serializer[Any]):
    """New messages, in the order in which they were processed; `after` is the cursor to come back with."""

    results = ChosenMessageSerializer(many=True)
    after = serializers.CharField()
    has_more = serializers.BooleanField(help_text="whether to come back at once, and not after a pause")


class LiveView(Endpoint):
    """New messages since a cursor."""

    reads = "new messages"
    refusals: ClassVar = {"GET": (410,)}
    parameters: ClassVar = {
        "GET": (
            Parameter(name="after", about="`after` of the answer before; without it this is where to begin"),
            Parameter(name="q", about="only what this means, in the search language", default=""),
            Number(name="limit", about="how many new messages are looked at", least=1, most=200, default=50),
            Names(name="fields", about=FIELDS_ABOUT, choices=tuple(MessageSerializer().fields)),
        )
    }

    @extend_schema(operation_id="follow_messages", responses=LiveSerializer)
    def get(self, request: Request) -> Response:
        """The messages that were processed for the first time since `after`: none is left out, and none comes twice.

        The answer holds the messages among `limit` new ones that match `q`, so that it may hold fewer, or none, while
        there are more. A cursor is good for a day; later the answer is 410.
        """
        key = self.key
        try:
            since = read_since(self.given["after"], key.workspace_id)
            found = list_news(
                workspace=key.workspace,
                since=since or begin(),
                query=self.given["q"],
                limit=self.given["limit"],
                zone=None,
                may_see_secrets=may_see_secrets(key),
            )
        except CursorError as error:
            raise ProblemError(400, str(error), parameter="after") from error
        if found is None:
            detail = "the cursor is older than what is remembered: read the lists, and begin again without it"
            raise ProblemError(410, detail, parameter="after")
        messages, since, has_more = found
        shown = show_messages(messages)
        rows = [choose(row, self.given["fields"]) for row in shown.values()]
        return Response({"results": rows, "after": write_since(since, key.workspace_id), "has_more": has_more})
