"""GET messages and conversations: lists by keyset, and each in full."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from inspector.search import selectors as search
from inspector.search.cursors import CursorError, read_cursor, write_cursor
from inspector.search.language import QueryError
from inspector.threads import selectors
from inspector.threads.models import Conversation, Message

from .authentication import caller_of
from .deliveries import read_whole_number
from .problems import ProblemError
from .serializers import (
    ConversationDetailSerializer,
    ConversationPageSerializer,
    MessageDetailSerializer,
)


def list_messages(request: Request) -> Response:
    """A page of messages for `q`, `cursor` and `limit`."""
    limit = read_limit(request)
    workspace = caller_of(request).workspace
    try:
        before = read_cursor(request.query_params.get("cursor"), workspace.pk)
        found = search.find_messages(
            workspace=workspace, query=request.query_params.get("q", ""), before=before, limit=limit + 1
        )
    except QueryError as error:
        raise ProblemError(400, str(error), start=error.start, end=error.end) from error
    except CursorError as error:
        raise ProblemError(400, str(error)) from error
    page = found[:limit]
    cursor = write_cursor((page[-1].order_time, page[-1].pk), workspace.pk) if len(found) > limit else None
    return Response({"results": [show_message(message) for message in page], "next": cursor})


def read_limit(request: Request) -> int:
    """How many rows a page has: 1 to 200, by default 50."""
    return max(1, min(200, read_whole_number(request, "limit", default=50)))


def show_message(message: Message) -> dict[str, Any]:
    """A message as the list shows it."""
    return {
        "id": message.pk,
        "conversation": message.conversation_id,
        "record": message.record_id,
        "part": message.part,
        "dialect": message.dialect,
        "performative": message.performative,
        "sender": message.sender or None,
        "receivers": message.receivers,
        "english": message.english,
        "at": message.order_time,
        "at_basis": message.order_basis,
        "severity": Message.Severity(message.severity).label,
    }


def show_conversation(conversation: Conversation) -> dict[str, Any]:
    """A conversation as the list shows it."""
    return {
        "id": conversation.pk,
        "native_id": conversation.native_id,
        "channel": conversation.channel.name,
        "subject": conversation.subject,
        "state": conversation.state,
        "agents": conversation.agents,
        "dialects": conversation.dialects,
        "message_count": conversation.message_count,
        "missing_count": conversation.missing_count,
        "severity": Message.Severity(conversation.severity).label,
        "first_at": conversation.first_at,
        "last_at": conversation.last_at,
        "is_settled": conversation.is_settled,
    }


class MessageView(APIView):
    """One message in full."""

    @extend_schema(responses=MessageDetailSerializer)
    def get(self, request: Request, message_id: uuid.UUID) -> Response:
        """The message with its field tree and layers."""
        message = selectors.find_message(workspace=caller_of(request).workspace, message_id=message_id)
        if message is None:
            raise NotFound
        body = selectors.read_body(message)
        unfolded = selectors.unfold(message=message).to_dict()
        return Response(
            {
                **show_message(message),
                "message": body["message"],
                "about": body["record"],
                "fields": unfolded["fields"],
                "layers": unfolded["layers"],
                "parent": message.parent,
                "parent_basis": message.parent_basis,
                "parent_why": message.parent_why,
            }
        )


class ConversationsView(APIView):
    """Conversations, latest activity first."""

    @extend_schema(
        operation_id="list_conversations",
        responses=ConversationPageSerializer,
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
    )
    def get(self, request: Request) -> Response:
        """A page of conversations."""
        limit = read_limit(request)
        workspace = caller_of(request).workspace
        try:
            before = read_cursor(request.query_params.get("cursor"), workspace.pk)
        except CursorError as error:
            raise ProblemError(400, str(error)) from error
        found = selectors.list_conversations(workspace=workspace, before=before, limit=limit + 1)
        page = found[:limit]
        cursor = None
        if len(found) > limit and (last_at := page[-1].last_at):
            cursor = write_cursor((last_at, page[-1].pk), workspace.pk)
        return Response({"results": [show_conversation(row) for row in page], "next": cursor})


class ConversationView(APIView):
    """One conversation with a window of its tree."""

    @extend_schema(responses=ConversationDetailSerializer, parameters=[OpenApiParameter("offset", int)])
    def get(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """The conversation and up to 200 lines of its tree from `offset` on."""
        conversation = selectors.find_conversation(
            workspace=caller_of(request).workspace, conversation_id=conversation_id
        )
        if conversation is None:
            raise NotFound
        offset = max(0, read_whole_number(request, "offset", default=0))
        window = selectors.read_tree(conversation=conversation, offset=offset)
        tree = [
            {"depth": row.depth, "message": show_message(row.message) if row.message else None} for row in window.rows
        ]
        return Response({**show_conversation(conversation), "tree": tree, "next_offset": window.next_offset})
