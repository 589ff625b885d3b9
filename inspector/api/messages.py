"""GET messages and conversations: lists by keyset, and each in full."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Set
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from dialects import make_visible
from inspector.effort import check_effort
from inspector.intake.withdrawals import is_hidden
from inspector.search import selectors as search
from inspector.search.conversations import mean_conversations
from inspector.search.cursors import CursorError, read_cursor
from inspector.search.language import QueryError
from inspector.threads import messages as message_reads
from inspector.threads import selectors
from inspector.threads.messages import Provenance, find_provenance
from inspector.threads.models import Conversation, Message, Wording
from inspector.threads.rendering.masks import MAX_BYTES_LOOKED_THROUGH
from inspector.threads.rendering.wordings import list_wordings
from inspector.threads.tasks.measures import get_state
from inspector.threads.timeline import read_timeline
from inspector.threads.transcripts import load_sentences, say_doubts, tell_lines

from .authentication import caller_of
from .choosing import FIELDS_ABOUT, choose
from .disclosures import open_for
from .endpoints import Endpoint
from .erasures import refuse_erased
from .masking import may_see_secrets, show_layers
from .narrowing import FILTERS, read_filters
from .paging import CURSOR as CURSOR
from .paging import FIXED, OFFSET, cut_found, find_single, find_walk, offer_order, read_row_id, read_start, show_next
from .paging import LIMIT as LIMIT
from .parameters import Names, Parameter
from .problems import ProblemError
from .serializers import (
    ConversationDetailSerializer,
    ConversationPageSerializer,
    ConversationSerializer,
    MessageDetailSerializer,
    MessageSerializer,
)

ORDER: Final = offer_order("latest", about="the latest activity first", fixed="the newest made first")
_CONVERSATIONS: Final = "conversations"
SEARCH: Final = (
    Parameter(name="q", about="the search language", default=""),
    CURSOR,
    LIMIT,
    Names(name="fields", about=FIELDS_ABOUT, choices=tuple(MessageSerializer().fields)),
)
MAX_TOPIC_LENGTH: Final = 200


def list_messages(request: Request, *, q: str, cursor: str | None, limit: int, fields: Set[str] | None) -> Response:
    """A page of messages for a query; `raw:` finds no masked character for a key that may not have these."""
    key = caller_of(request)
    workspace = key.workspace
    try:
        before = read_cursor(cursor, workspace.pk)
        found = search.search(
            workspace=workspace, query=q, before=before, limit=limit + 1, may_see_secrets=may_see_secrets(key)
        )
    except QueryError as error:
        raise ProblemError(400, str(error), parameter="q", start=error.start, end=error.end) from error
    except CursorError as error:
        raise ProblemError(400, str(error), parameter="cursor") from error
    except search.SlowQueryError as error:
        raise ProblemError(503, str(error), retry_after=5) from error
    page, on = cut_found(found, limit, workspace, at="order_time")
    return Response({"results": [choose(row, fields) for row in show_messages(page).values()], **on})


def show_messages(messages: Collection[Message]) -> dict[uuid.UUID, dict[str, Any]]:
    """Messages as the list shows them, by their ids; one statement says where they come from."""
    origins = find_provenance(messages) if messages else {}
    told = load_sentences(messages)
    return {
        message.pk: _show_message(message, origins[message.pk], told[message.pk])
        for message in messages
        if message.pk in origins
    }


def show_linked(messages: Collection[Message]) -> dict[uuid.UUID, dict[str, Any]]:
    """The same, each with what it answers."""
    shown = show_messages(messages)
    return {
        message.pk: {
            **shown[message.pk],
            "parent": message.parent,
            "parent_basis": message.parent_basis,
            "parent_why": message.parent_why,
        }
        for message in messages
        if message.pk in shown
    }


def _show_message(message: Message, origin: Provenance, told: str) -> dict[str, Any]:
    check_effort()
    return {
        "id": message.pk,
        "native_id": message.native_id or None,
        "channel": origin.channel,
        "conversation": message.conversation_id,
        "trace": origin.trace,
        "native_trace": message.trace_id or None,
        "delivery": origin.delivery,
        "record": message.record_id,
        "part": message.part,
        "dialect": message.dialect,
        "carrier": message.carrier or None,
        "performative": message.performative,
        "topic": message.topic[:MAX_TOPIC_LENGTH] or None,
        "sender": message.sender or None,
        "receivers": message.receivers,
        "english": told,
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
        "state": get_state(conversation),
        "agents": conversation.agents,
        "dialects": conversation.dialects,
        "message_count": conversation.message_count,
        "missing_count": conversation.missing_count,
        "severity": Message.Severity(conversation.severity).label,
        "first_at": conversation.first_at,
        "last_at": conversation.last_at,
        "is_settled": conversation.is_settled,
    }


def show_wording(earlier: Wording) -> dict[str, Any]:
    """An earlier wording of a message."""
    return {
        "number": earlier.number,
        "english": earlier.english,
        "also": list(earlier.also),
        "decoder": earlier.decoder,
        "since": earlier.since,
        "until": earlier.until,
        "cause": earlier.cause,
        "because_of": earlier.because_of,
    }


class MessageView(Endpoint):
    """One message in full."""

    reads = "messages"
    scopes: ClassVar = {"GET": "read"}
    refusals: ClassVar = {"GET": (409, 410)}

    @extend_schema(operation_id="get_message", responses=MessageDetailSerializer)
    def get(self, request: Request, message_id: uuid.UUID) -> Response:
        """The message with its field tree and its layers; secrets are masked in all of it.

        What a key of the keyring has opened is shown to a key with the scope `secrets`, and that is noted.
        """
        message = message_reads.find_message(workspace=caller_of(request).workspace, message_id=message_id)
        if message is None:
            refuse_erased(caller_of(request).workspace_id, message_id)
            raise NotFound
        shown = show_messages([message])[message.pk]
        opening = open_for(caller_of(request), message)
        body = message_reads.read_body(message)
        if opening is not None:
            body = opening.lay_over(body)
        size = vars(message)["record_bytes"]
        is_large = size > MAX_BYTES_LOOKED_THROUGH
        unfolded = (
            None if is_large else message_reads.unfold(message=message, keys=opening.resolver if opening else None)
        )
        cuts = [*body.get("cut", []), *([{"path": "fields", "total": size, "unit": "bytes"}] if is_large else [])]
        return Response(
            {
                **shown,
                **({"english": opening.english + say_doubts(body, message.part)} if opening else {}),
                "opened_with": list(opening.labels) if opening else [],
                "message": body["message"],
                "about": body["record"],
                "fields": unfolded.fields if unfolded else [],
                "layers": show_layers(unfolded) if unfolded else [],
                **({"cut": cuts} if cuts else {}),
                "parent": message.parent,
                "parent_basis": message.parent_basis,
                "parent_why": message.parent_why,
                "told_at": message.told_at,
                "wordings": [show_wording(each) for each in list_wordings(message=message)],
                "is_withdrawn": is_hidden(record=message.record),
            }
        )


class ConversationsView(Endpoint):
    """Conversations, the newest made first."""

    reads = "conversations"
    scopes: ClassVar = {"GET": "read"}
    parameters: ClassVar = {
        "GET": (
            Parameter(name="q", about="only those with a message that this means, in the search language", default=""),
            CURSOR,
            LIMIT,
            ORDER,
            *FILTERS,
            Names(name="fields", about=FIELDS_ABOUT, choices=tuple(ConversationSerializer().fields)),
        )
    }

    @extend_schema(operation_id="list_conversations", responses=ConversationPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of conversations."""
        key = caller_of(request)
        workspace = key.workspace
        wanted = read_filters(self.given, workspace)
        after = read_row_id(self.given, workspace, of=_CONVERSATIONS)
        try:
            meant = mean_conversations(workspace=workspace, query=self.given["q"], may_see_secrets=may_see_secrets(key))
        except QueryError as error:
            raise ProblemError(400, str(error), parameter="q", start=error.start, end=error.end) from error
        if self.given["order"] == FIXED:
            rows = selectors.filter_conversations(workspace=workspace, **wanted).order_by("-pk")
            page, on = find_walk(rows, meant, self.given, workspace, of=_CONVERSATIONS, after=after)
        else:
            rows = selectors.select_conversations(workspace=workspace, before=None, grade=None, **wanted)
            page, on = find_single(rows, meant, self.given, workspace, at="last_at")
        shown = [choose(show_conversation(row), self.given["fields"]) for row in page]
        return Response({"results": shown, **on})


class ConversationView(Endpoint):
    """One conversation with a page of its messages."""

    reads = "conversations"
    scopes: ClassVar = {"GET": "read"}
    parameters: ClassVar = {"GET": (CURSOR, OFFSET, LIMIT)}

    @extend_schema(operation_id="get_conversation", responses=ConversationDetailSerializer)
    def get(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """The conversation and a page of its messages in the order of time, each with what it answers."""
        workspace = caller_of(request).workspace
        conversation = selectors.find_conversation(workspace=workspace, conversation_id=conversation_id)
        if conversation is None:
            raise NotFound
        window = read_timeline(
            conversation=conversation,
            start=read_start(self.given, workspace, conversation),
            size=self.given["limit"],
            without=("words", "atoms"),
        )
        lines = tell_lines(workspace=workspace, messages=window.rows)
        linked = [{**shown, "line": make_visible(lines[pk].text)} for pk, shown in show_linked(window.rows).items()]
        return Response({**show_conversation(conversation), "messages": linked, **show_next(window, conversation)})
