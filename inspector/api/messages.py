"""GET messages and conversations: lists by keyset, and each in full; GET live, the messages that were told since a
cursor, each once, for programs that follow a workspace; and the shapes of these answers, for the schema and for readers
of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence, Set
from itertools import islice
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from dialects import Field, make_visible, to_shallow_json
from inspector.bounds import check_effort
from inspector.browsing.transcripts import load_sentences, say_cautions_of, tell_lines
from inspector.database import on_replica
from inspector.intake.readings import MAX_BYTES_LOOKED_THROUGH
from inspector.intake.withdrawals import is_hidden
from inspector.search import selectors as search
from inspector.search.news import begin, list_news, read_since, write_since
from inspector.search.selectors import CursorError, mean_conversations, read_cursor
from inspector.threads import selectors
from inspector.threads.models import Conversation, Message, Wording
from inspector.threads.resolving.writing import list_wordings
from inspector.threads.selectors import Provenance, find_provenance
from inspector.threads.tasks import get_state
from inspector.threads.timeline import read_timeline

from .authentication import caller_of
from .endpoints import Endpoint
from .erasures import refuse_erased
from .masking import may_see_secrets, open_for, show_layers
from .paging import (
    CURSOR,
    FIELDS_ABOUT,
    LIMIT,
    NEXT_OFFSET,
    OFFSET,
    choose,
    chosen_of,
    cut_found,
    find_either,
    offer_order,
    page_of,
    read_start,
    show_next,
)
from .parameters import FILTERS, Names, Number, Parameter, read_filters
from .problems import ProblemError
from .receipts import ReceiptSerializer
from .shapes import list_of, refer, show

SEVERITIES = Message.Severity.labels


class MessageSerializer(serializers.Serializer[Any]):
    """A message in a list: what it says, who to whom, where it belongs."""

    id = serializers.UUIDField()
    native_id = serializers.CharField(allow_null=True, help_text="its id in the message or its envelope")
    channel = serializers.CharField()
    conversation = serializers.UUIDField(source="conversation_id")
    trace = serializers.UUIDField(allow_null=True)
    native_trace = serializers.CharField(allow_null=True, help_text="the trace's id in the message or its envelope")
    delivery = serializers.UUIDField(help_text="the first that brought it and is not withdrawn")
    record = serializers.UUIDField(source="record_id")
    part = serializers.IntegerField()
    dialect = serializers.CharField()
    carrier = serializers.CharField(
        allow_null=True, help_text="the dialect of its record, where it is a text inside a message of that"
    )
    performative = serializers.CharField(allow_null=True)
    topic = serializers.CharField(allow_null=True, help_text="what it is about: its first 200 characters")
    sender = serializers.CharField(allow_null=True)
    receivers = serializers.ListField(child=serializers.CharField())
    english = serializers.CharField(help_text="with its cautions; empty until the conversation is processed")
    at = serializers.DateTimeField(source="order_time", help_text="the time of its order key")
    at_basis = serializers.CharField(
        source="order_basis", help_text="source of that time: wire (the message itself), envelope, start, receipt"
    )
    severity = serializers.ChoiceField(choices=SEVERITIES, help_text="the most severe note")


@extend_schema_field(refer("ToldMessage"))
class ToldMessageField(serializers.JSONField):
    """A message as the codecs tell it."""


@extend_schema_field(list_of(refer("ToldField")))
class FieldsField(serializers.JSONField):
    """The field tree."""


@extend_schema_field(list_of(refer("ToldLayer")))
class LayersField(serializers.JSONField):
    """The texts in which spans count."""


class WaitedReceiptSerializer(ReceiptSerializer):
    """A receipt; the last three names are there where `Prefer: wait` was applied."""

    is_settled = serializers.BooleanField(required=False, help_text="whether all messages are processed")
    messages = MessageSerializer(many=True, required=False, help_text="of its records, at most 200")
    has_more_messages = serializers.BooleanField(required=False)


ChosenMessageSerializer: Final = chosen_of("Message", MessageSerializer, "A message")
MessagePageSerializer: Final = page_of("Message", ChosenMessageSerializer, "Messages, newest first", is_searched=True)


class WordingSerializer(serializers.Serializer[Any]):
    """An earlier wording of a message, and when it was reworded."""

    number = serializers.IntegerField(help_text="counted from 1; a gap says how many are no longer kept")
    english = serializers.CharField(allow_blank=True)
    also = serializers.ListField(child=serializers.CharField())
    decoder = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    cause = serializers.ChoiceField(choices=Wording.Cause.values, help_text="why it was reworded then")
    because_of = serializers.UUIDField(allow_null=True, help_text="the one message that arrived late, where it was one")


class MessageDetailSerializer(MessageSerializer):
    """A message in full: its record, its field tree and its layers."""

    is_withdrawn = serializers.BooleanField(
        help_text="whether every delivery of its record is withdrawn: lists do not show it then"
    )
    opened_with = serializers.ListField(
        child=serializers.CharField(),
        help_text="the labels of the keys that opened it; empty where it is shown as it was sent, or sealed",
    )
    message = ToldMessageField(help_text="the names of docs/record.md; absent ones are left out")
    about = serializers.DictField(help_text="dialect, version, candidates and notes of its record")
    fields = FieldsField()  # type: ignore[assignment]  # the record's own word
    layers = LayersField()
    parent = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]  # likewise
    parent_basis = serializers.CharField()
    parent_why = serializers.CharField()
    told_at = serializers.DateTimeField(allow_null=True, help_text="since when it has this wording")
    wordings = WordingSerializer(many=True, help_text="its earlier wordings, oldest first")


class ConversationSerializer(serializers.Serializer[Any]):
    """A conversation in a list."""

    id = serializers.UUIDField()
    native_id = serializers.CharField(allow_blank=True)
    channel = serializers.CharField(source="channel.name")
    subject = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(choices=Conversation.State.values)
    agents = serializers.ListField(child=serializers.CharField())
    dialects = serializers.ListField(child=serializers.CharField())
    message_count = serializers.IntegerField()
    missing_count = serializers.IntegerField()
    severity = serializers.ChoiceField(choices=SEVERITIES)
    first_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)
    is_settled = serializers.BooleanField()


ConversationPageSerializer: Final = page_of(
    "Conversation",
    chosen_of("Conversation", ConversationSerializer, "A conversation"),
    "Conversations",
    is_searched=True,
)


class LinkedMessageSerializer(MessageSerializer):
    """A message with what it answers."""

    parent = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]  # the record's own word
    parent_basis = serializers.CharField(allow_blank=True)
    parent_why = serializers.CharField(allow_blank=True)


class TranscriptMessageSerializer(LinkedMessageSerializer):
    """A message with what it answers, and as a line of its conversation's transcript."""

    line = serializers.CharField(
        help_text="as the transcript in plain text prints it: number, time, sentence, what it answers, cautions"
    )


class ConversationDetailSerializer(ConversationSerializer):
    """A conversation with a page of its messages; `next` is the cursor of the page after, or null."""

    messages = TranscriptMessageSerializer(many=True, help_text="in the order of time")
    next = serializers.CharField(allow_null=True)
    next_offset = serializers.IntegerField(allow_null=True, help_text=NEXT_OFFSET)


ORDER: Final = offer_order("latest", about="the latest activity first", fixed="the newest made first")
SEARCH: Final = (
    Parameter(name="q", about="the search language", default=""),
    CURSOR,
    LIMIT,
    Names(name="fields", about=FIELDS_ABOUT, choices=tuple(MessageSerializer().fields)),
)
MAX_TOPIC_LENGTH: Final = 200
MAX_NODES: Final = 2_000
_NODE: Final[dict[str, Any]] = {
    "type": "object",
    "description": "a field of docs/record.md without its children: `depth` says how deep it stands",
    "properties": {"depth": {"type": "integer"}, "children": {"type": "integer"}},
    "required": ["depth", "children"],
    "additionalProperties": {},
}


def list_messages(request: Request, *, q: str, cursor: str | None, limit: int, fields: Set[str] | None) -> Response:
    """A page of messages for a query; `raw:` finds no masked character for a key that may not have these."""
    key = caller_of(request)
    workspace = key.workspace
    before = read_cursor(cursor, workspace.pk)
    found = search.search(
        workspace=workspace, query=q, before=before, limit=limit + 1, may_see_secrets=may_see_secrets(key)
    )
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
    return show(
        MessageSerializer,
        message,
        native_id=message.native_id or None,
        channel=origin.channel,
        trace=origin.trace,
        native_trace=message.trace_id or None,
        delivery=origin.delivery,
        carrier=message.carrier or None,
        topic=message.topic[:MAX_TOPIC_LENGTH] or None,
        sender=message.sender or None,
        english=told,
        severity=Message.Severity(message.severity).label,
    )


def show_conversation(conversation: Conversation) -> dict[str, Any]:
    """A conversation as the list shows it."""
    severity = Message.Severity(conversation.severity).label
    return show(ConversationSerializer, conversation, state=get_state(conversation), severity=severity)


class MessageView(Endpoint):
    """One message in full."""

    reads = "messages"
    refusals: ClassVar = {"GET": (409, 410)}

    @extend_schema(operation_id="get_message", responses=MessageDetailSerializer)
    def get(self, request: Request, message_id: uuid.UUID) -> Response:
        """The message with its field tree and its layers; secrets are masked in all of it.

        What a key of the keyring has opened is shown to a key with the scope `secrets`, and that is noted.
        """
        message = selectors.find_message(workspace=self.workspace, message_id=message_id)
        if message is None:
            refuse_erased(self.key.workspace_id, message_id)
            raise NotFound
        shown = show_linked([message])[message.pk]
        opening = open_for(self.key, message)
        body = selectors.read_body(message)
        if opening is not None:
            body = opening.lay_over(body)
        size = vars(message)["record_bytes"]
        is_large = size > MAX_BYTES_LOOKED_THROUGH
        unfolded = None if is_large else selectors.unfold(message=message, keys=opening.resolver if opening else None)
        cuts = [*body.get("cut", []), *([{"path": "fields", "total": size, "unit": "bytes"}] if is_large else [])]
        return Response(
            {
                **shown,
                **({"english": opening.english + say_cautions_of(message, body)} if opening else {}),
                "opened_with": list(opening.labels) if opening else [],
                "message": body["message"],
                "about": body["record"],
                "fields": unfolded.fields if unfolded else [],
                "layers": show_layers(unfolded) if unfolded else [],
                **({"cut": cuts} if cuts else {}),
                "told_at": message.told_at,
                "wordings": [show(WordingSerializer, each) for each in list_wordings(message=message)],
                "is_withdrawn": is_hidden(record=message.record),
            }
        )


class ConversationsView(Endpoint):
    """Conversations, the newest made first."""

    reads = "conversations"
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
    @on_replica
    def get(self, request: Request) -> Response:
        """A page of conversations."""
        workspace, given = self.workspace, self.given
        wanted = read_filters(given, workspace)
        meant = mean_conversations(workspace=workspace, query=given["q"], may_see_secrets=may_see_secrets(self.key))
        fixed = selectors.filter_conversations(workspace=workspace, **wanted)
        moving = selectors.select_conversations(workspace=workspace, before=None, grade=None, **wanted)
        page, on = find_either(fixed, moving, meant, given, workspace, of="conversations")
        shown = [choose(show_conversation(row), given["fields"]) for row in page]
        return Response({"results": shown, **on})


class ConversationView(Endpoint):
    """One conversation with a page of its messages."""

    reads = "conversations"
    parameters: ClassVar = {"GET": (CURSOR, OFFSET, LIMIT)}

    @extend_schema(operation_id="get_conversation", responses=ConversationDetailSerializer)
    def get(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """The conversation and a page of its messages in the order of time, each with what it answers."""
        workspace = self.workspace
        conversation = self.find(selectors.find_conversation, conversation_id=conversation_id)
        window = read_timeline(
            conversation=conversation,
            start=read_start(self.given, workspace, conversation),
            size=self.given["limit"],
            without=("words", "atoms"),
        )
        lines = tell_lines(workspace=workspace, messages=window.rows)
        linked = [{**shown, "line": make_visible(lines[pk].text)} for pk, shown in show_linked(window.rows).items()]
        return Response({**show_conversation(conversation), "messages": linked, **show_next(window, conversation)})


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
        message = self.find(selectors.find_message, message_id=message_id)
        size = vars(message)["record_bytes"]
        if size > MAX_BYTES_LOOKED_THROUGH:
            return Response({"results": [], "next": None, "cut": [{"path": "results", "total": size, "unit": "bytes"}]})
        start, limit = self.given["offset"], self.given["limit"]
        fields = selectors.unfold(message=message).fields
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
