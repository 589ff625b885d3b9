"""Messages: those that a query means, one in full, its fields, and those that were told since a cursor, each once, for
programs that follow a workspace.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from dialects import Field, to_shallow_json
from inspector.bounds import check_effort
from inspector.browsing.transcripts import load_sentences, say_cautions_of
from inspector.database import on_replica
from inspector.intake.readings import MAX_BYTES_LOOKED_THROUGH, mask_layers
from inspector.intake.withdrawals import is_hidden
from inspector.keyring.models import KeyEvent
from inspector.opening import disclose, find_openings_of
from inspector.search import selectors as search
from inspector.search.news import begin, list_news, read_since, write_since
from inspector.search.selectors import CursorError
from inspector.threads import selectors as messages
from inspector.threads.models import Message, Wording
from inspector.threads.resolving.writing import list_wordings
from inspector.threads.selectors import find_provenance

from .authentication import may_see_secrets
from .decoding import list_of, refer
from .endpoints import Endpoint, operation
from .evidence import refuse_erased
from .parameters import take_number, take_text
from .problems import ProblemError
from .shapes import (
    SeverityField,
    TextOrNull,
    choose,
    chosen_of,
    cut_found,
    fields_of,
    listing,
    read_place,
    show,
)


class MessageSerializer(serializers.Serializer[Any]):
    """A message in a list: what it says, who to whom, where it belongs."""

    id = serializers.UUIDField()
    native_id = TextOrNull(help_text="its id in the message or its envelope")
    channel = serializers.CharField()
    conversation = serializers.UUIDField(source="conversation_id")
    trace = serializers.UUIDField(allow_null=True)
    native_trace = TextOrNull(source="trace_id", help_text="the trace's id in the message or its envelope")
    delivery = serializers.UUIDField(help_text="the first that brought it and is not withdrawn")
    record = serializers.UUIDField(source="record_id")
    part = serializers.IntegerField()
    dialect = serializers.CharField()
    carrier = TextOrNull(help_text="the dialect of its record, where it is a text inside a message of that")
    performative = serializers.CharField(allow_null=True)
    topic = serializers.CharField(allow_null=True, help_text="what it is about: its first 200 characters")
    sender = TextOrNull()
    receivers = serializers.ListField(child=serializers.CharField())
    english = serializers.CharField(help_text="with its cautions; empty until the conversation is processed")
    at = serializers.DateTimeField(source="order_time", help_text="the time of its order key")
    at_basis = serializers.CharField(
        source="order_basis", help_text="source of that time: wire (the message itself), envelope, start, receipt"
    )
    severity = SeverityField(help_text="the most severe note")


ChosenMessageSerializer: Final = chosen_of("Message", MessageSerializer, "A message")


def described(schema: dict[str, Any], **names: Any) -> serializers.Field[Any, Any, Any, Any]:
    """A field of this schema."""
    kind = extend_schema_field(schema)(type("DescribedField", (serializers.JSONField,), {}))
    field: serializers.Field[Any, Any, Any, Any] = kind(**names)
    return field


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


class LinkedMessageSerializer(MessageSerializer):
    """A message with what it answers."""

    parent = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]  # the record's own word
    parent_basis = serializers.CharField(allow_blank=True)
    parent_why = serializers.CharField(allow_blank=True)


class MessageDetailSerializer(LinkedMessageSerializer):
    """A message in full: its record, its field tree and its layers."""

    is_withdrawn = serializers.BooleanField(
        help_text="whether every delivery of its record is withdrawn: lists do not show it then"
    )
    opened_with = serializers.ListField(
        child=serializers.CharField(),
        help_text="the labels of the keys that opened it; empty where it is shown as it was sent, or sealed",
    )
    message = described(refer("ToldMessage"), help_text="the names of docs/record.md; absent ones are left out")
    about = serializers.DictField(help_text="dialect, version, candidates and notes of its record")
    fields = described(list_of(refer("ToldField")))  # type: ignore[assignment]  # the record's own word
    layers = described(list_of(refer("ToldLayer")))
    told_at = serializers.DateTimeField(allow_null=True, help_text="since when it has this wording")
    wordings = WordingSerializer(many=True, help_text="its earlier wordings, oldest first")


MAX_NODES: Final = 2_000
_NODE: Final[dict[str, Any]] = {
    "type": "object",
    "description": "a field of docs/record.md without its children: `depth` says how deep it stands",
    "properties": {"depth": {"type": "integer"}, "children": {"type": "integer"}},
    "required": ["depth", "children"],
    "additionalProperties": {},
}


def show_messages(messages: Collection[Message]) -> dict[uuid.UUID, dict[str, Any]]:
    """Messages as the list shows them, by their ids; one statement says where they come from."""
    origins = find_provenance(messages) if messages else {}
    told = load_sentences(messages)
    shown = {}
    for message in messages:
        if origin := origins.get(message.pk):
            check_effort()
            shown[message.pk] = show(
                MessageSerializer,
                message,
                channel=origin.channel,
                trace=origin.trace,
                delivery=origin.delivery,
                topic=message.topic[:200] or None,
                english=told[message.pk],
            )
    return shown


def show_linked(messages: Collection[Message]) -> dict[uuid.UUID, dict[str, Any]]:
    """The same, each with what it answers."""
    shown = show_messages(messages)
    by_id = {message.pk: message for message in messages}
    return {pk: show(LinkedMessageSerializer, by_id[pk], **row) for pk, row in shown.items()}


class FieldWindowSerializer(serializers.Serializer[Any]):
    """A window of the fields, each before its children; `next` is the offset of the window after, or null."""

    results = described(list_of(_NODE))
    next = serializers.IntegerField(allow_null=True)


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


class Messages(Endpoint):
    """Messages: those that a query means, one in full, its fields, and what is new."""

    @listing(
        "Message",
        ChosenMessageSerializer,
        "Messages, newest first",
        query=take_text("q", about="the search language", default=""),
        reads="messages",
    )
    @on_replica
    def list_messages(self, request: Request) -> dict[str, Any]:
        """Messages that a query means, newest first."""
        found = search.search(
            workspace=self.workspace,
            query=self.given["q"],
            before=read_place(self),
            limit=self.given["limit"] + 1,
            # `raw:` finds no masked character for a key that may not have these.
            may_see_secrets=may_see_secrets(self.key),
        )
        page, on = cut_found(self, found, "order_time")
        return {"results": [choose(row, self.given) for row in show_messages(page).values()], **on}

    @operation(MessageDetailSerializer, refusals=(409, 410), reads="messages")
    def get_message(self, request: Request, message_id: uuid.UUID) -> dict[str, Any]:
        """The message with its field tree and its layers; secrets are masked in all of it.

        What a key of the keyring has opened is shown to a key with the scope `secrets`, and that is noted.
        """
        message = messages.find_message(workspace=self.workspace, message_id=message_id)
        if message is None:
            refuse_erased(self.key.workspace_id, message_id)
            raise NotFound
        shown = show_linked([message])[message.pk]
        opening = None
        if may_see_secrets(self.key):
            openings = find_openings_of(messages=[message])
            disclose(openings, door=KeyEvent.Door.API, api_key=self.key)
            opening = openings.get(message.pk)
        body = messages.read_body(message)
        if opening is not None:
            body = opening.lay_over(body)
        size = vars(message)["record_bytes"]
        is_large = size > MAX_BYTES_LOOKED_THROUGH
        unfolded = None if is_large else messages.unfold(message=message, keys=opening.resolver if opening else None)
        masked = zip(unfolded.layers, mask_layers(unfolded), strict=True) if unfolded else ()
        cuts = [*body.get("cut", []), *([{"path": "fields", "total": size, "unit": "bytes"}] if is_large else [])]
        return {
            **shown,
            **({"english": opening.english + say_cautions_of(message, body)} if opening else {}),
            "opened_with": list(opening.labels) if opening else [],
            "message": body["message"],
            "about": body["record"],
            "fields": unfolded.fields if unfolded else [],
            "layers": [layer.replace(text=text).to_dict() for layer, text in masked],
            **({"cut": cuts} if cuts else {}),
            "told_at": message.told_at,
            "wordings": [show(WordingSerializer, each) for each in list_wordings(message=message)],
            "is_withdrawn": is_hidden(record=message.record),
        }

    @operation(
        FieldWindowSerializer,
        parameters=(
            take_number("offset", about="the first field of the window", default=0, most=10**9),
            take_number("limit", about="how many fields", default=500, least=1, most=MAX_NODES),
        ),
        refusals=(409, 410),
        reads="messages",
    )
    def list_fields(self, request: Request, message_id: uuid.UUID) -> dict[str, Any]:
        """A window of the field tree, in the order of the text; secrets are masked in it."""
        message = self.find(messages.find_message, message_id=message_id)
        size = vars(message)["record_bytes"]
        if size > MAX_BYTES_LOOKED_THROUGH:
            return {"results": [], "next": None, "cut": [{"path": "results", "total": size, "unit": "bytes"}]}
        start, limit = self.given["offset"], self.given["limit"]
        fields = messages.unfold(message=message).fields
        window = list(islice(walk_fields(fields), start, start + limit + 1))
        shown = [to_shallow_json(field) | {"depth": depth, "children": len(field.children)} for depth, field in window]
        return {"results": shown[:limit], "next": start + limit if len(shown) > limit else None}

    @operation(
        LiveSerializer,
        parameters=(
            take_text("after", about="`after` of the answer before; without it this is where to begin"),
            take_text("q", about="only what this means, in the search language", default=""),
            take_number("limit", about="how many new messages are looked at", least=1, most=200, default=50),
            fields_of(MessageSerializer),
        ),
        refusals=(410,),
        reads="new messages",
    )
    def follow_messages(self, request: Request) -> dict[str, Any]:
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
        rows = [choose(row, self.given) for row in shown.values()]
        return {"results": rows, "after": write_since(since, key.workspace_id), "has_more": has_more}
