"""The shapes of what the API answers with, for the schema and for readers of it."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from inspector.threads.models import Conversation, Message, Wording

from .paging import NEXT_OFFSET, chosen_of, page_of
from .receipts import ReceiptSerializer
from .shapes import list_of, refer

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
