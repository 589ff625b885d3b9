"""The shapes of traces and of windows of trees, for the schema and for readers of it."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers

from inspector.threads.models import Conversation
from inspector.threads.placing.citations import MAX_BEARERS
from inspector.threads.trees.lines import Kind, Outcome

from .paging import chosen_of, page_of
from .serializers import SEVERITIES, LinkedMessageSerializer

BEARERS_HELP: Final = (
    f"how many messages elsewhere bear the cited id, so that none is the parent; 0: none, {MAX_BEARERS + 1}: more"
)


class TraceSerializer(serializers.Serializer[Any]):
    """A trace: the messages that carry one trace id."""

    id = serializers.UUIDField()
    native_id = serializers.CharField(help_text="the trace id in the message or its envelope")
    channel = serializers.CharField(
        source="channel.name", allow_null=True, help_text="the channel that scopes the id; null across channels"
    )
    subject = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(choices=Conversation.State.values)
    agents = serializers.ListField(child=serializers.CharField())
    dialects = serializers.ListField(child=serializers.CharField())
    message_count = serializers.IntegerField()
    conversation_count = serializers.IntegerField()
    missing_count = serializers.IntegerField(help_text="messages that are cited and were not received")
    open_count = serializers.IntegerField(help_text="requests without an answer")
    severity = serializers.ChoiceField(choices=SEVERITIES)
    first_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)
    is_settled = serializers.BooleanField()


TracePageSerializer: Final = page_of(
    "Trace", chosen_of("Trace", TraceSerializer, "A trace"), "Traces", is_searched=True
)


class TraceDetailSerializer(TraceSerializer):
    """A trace, and those of the same id that nothing joins to it."""

    same_id_elsewhere = TraceSerializer(many=True)


class HeadingSerializer(serializers.Serializer[Any]):
    """The conversation that a row is the heading of."""

    id = serializers.UUIDField()
    native_id = serializers.CharField(allow_blank=True)
    subject = serializers.CharField(allow_blank=True)


class PlaceSerializer(serializers.Serializer[Any]):
    """A row of a window: its place in the tree, as `at` takes it, and its depth."""

    place = serializers.CharField()
    depth = serializers.IntegerField()
    is_critical = serializers.BooleanField(help_text="whether the latest message stands at or not far below it")


class WindowSerializer(serializers.Serializer[Any]):
    """Where a window stands: `next` and `previous` are the `at` of its neighbours, null at the ends."""

    count = serializers.IntegerField(help_text="rows of the whole tree")
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


class TreeWindowRowSerializer(PlaceSerializer):
    """A row of a tree: of `message` and `conversation` one is there, or neither for a ghost."""

    kind = serializers.ChoiceField(choices=[kind.name.lower() for kind in Kind])
    message = LinkedMessageSerializer(allow_null=True)
    conversation = HeadingSerializer(allow_null=True)
    missing = serializers.CharField(allow_null=True, help_text="of a ghost: the id that is cited, where it is known")
    bearers = serializers.IntegerField(allow_null=True, help_text=f"of a ghost: {BEARERS_HELP}; null: not known")
    is_open = serializers.BooleanField(allow_null=True, help_text="null where there is nothing below")
    hidden = serializers.IntegerField(help_text="how many rows below are not shown")
    is_more_hidden = serializers.BooleanField(help_text="whether these are more than `hidden`: not all were counted")


class TreeSerializer(WindowSerializer):
    """A window of a tree."""

    rows = TreeWindowRowSerializer(many=True)


class BarSerializer(PlaceSerializer):
    """When a row was said, and until when it lasted: a request until its answer, anything else an instant."""

    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    outcome = serializers.ChoiceField(choices=[outcome.name.lower() for outcome in Outcome])
    severity = serializers.ChoiceField(choices=SEVERITIES)


class StretchSerializer(serializers.Serializer[Any]):
    """A stretch of time of the whole tree: the number of its messages, and the most severe finding."""

    rows = serializers.IntegerField()
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    severity = serializers.ChoiceField(choices=SEVERITIES)


class WaterfallSerializer(WindowSerializer):
    """A window of bars, and a map of the whole."""

    first_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)
    bars = BarSerializer(many=True)
    map = StretchSerializer(many=True)
