"""GET the sequence of a conversation: a window of its timeline as arrows, messages alike in a row taken together."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.browsing.sequence import WINDOW_STEPS, Arrow, read_sequence
from inspector.threads.selectors import find_conversation

from .endpoints import Endpoint
from .paging import CURSOR, NEXT_OFFSET, OFFSET, read_start, show_next
from .parameters import Choice, Number
from .shapes import show
from .tree_shapes import BEARERS_HELP

ALIKE: Final = ("together", "apart")


class ArrowSerializer(serializers.Serializer[Any]):
    """One message, or a bucket of equal messages in a row, described by the first."""

    number = serializers.IntegerField(help_text="of the first message in the conversation, from 1")
    count = serializers.IntegerField(help_text="how many messages it is")
    messages = serializers.ListField(child=serializers.UUIDField(), help_text="their ids, in order")
    first_at = serializers.DateTimeField(source="at")
    last_at = serializers.DateTimeField()
    at_basis = serializers.CharField(
        help_text="source of the times: wire (the message itself), envelope, start, receipt"
    )
    seconds_since = serializers.FloatField(allow_null=True, help_text="since the message before; null at the beginning")
    sender = serializers.CharField(allow_null=True)
    receivers = serializers.ListField(child=serializers.CharField())
    is_broadcast = serializers.BooleanField()
    performative = serializers.CharField(allow_null=True)
    native_act = serializers.CharField(allow_blank=True)
    topic = serializers.CharField(allow_blank=True, help_text="its first 200 characters")
    english = serializers.CharField(allow_blank=True, help_text="its first 400 characters")
    cautions = serializers.CharField(
        allow_blank=True, help_text="what is doubtful of it, in whole sentences; of several messages, of each of them"
    )
    is_failed = serializers.BooleanField()
    is_sealed = serializers.BooleanField()
    parent = serializers.UUIDField(allow_null=True)  # type: ignore[assignment]  # the record's own word
    parent_basis = serializers.CharField(allow_blank=True)
    parent_why = serializers.CharField(allow_blank=True)
    is_parent_missing = serializers.BooleanField(help_text="whether it cites a message that was not received")
    parent_bearers = serializers.IntegerField(source="bearers", help_text=BEARERS_HELP)
    missing_id = serializers.CharField(
        source="missing_name", allow_blank=True, help_text="the id that it cites in both cases, where that is known"
    )


class SequenceSerializer(serializers.Serializer[Any]):
    """A window of a sequence; `next` is the cursor of the window after, or null. The counts of its arrows add up to its
    messages."""

    agents = serializers.ListField(child=serializers.CharField(), help_text="the agents in it, by first appearance")
    message_count = serializers.IntegerField(help_text="of the whole conversation")
    arrows = ArrowSerializer(many=True)
    next = serializers.CharField(allow_null=True)
    next_offset = serializers.IntegerField(allow_null=True, help_text=NEXT_OFFSET)


class SequenceView(Endpoint):
    """The sequence of one conversation."""

    reads = "conversations"
    parameters: ClassVar = {
        "GET": (
            CURSOR,
            OFFSET,
            Number(name="limit", about="how many messages a window has", least=1, most=200, default=WINDOW_STEPS),
            Choice(name="alike", about="messages alike in a row: as one, or each", choices=ALIKE, default=ALIKE[0]),
        )
    }

    @extend_schema(operation_id="get_sequence", responses=SequenceSerializer)
    def get(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """A window of the conversation in the order of time.

        Windows end to end hold every message once, whatever is added or withdrawn meanwhile.
        """
        workspace, conversation = self.workspace, self.find(find_conversation, conversation_id=conversation_id)
        arrows, window = read_sequence(
            conversation=conversation,
            start=read_start(self.given, workspace, conversation),
            size=self.given["limit"],
            is_all_opened=self.given["alike"] == "apart",
        )
        present = {name for arrow in arrows for step in arrow.steps for name in (step.sender, *step.receivers)}
        return Response(
            {
                "agents": [name for name in conversation.agents if name in present],
                "message_count": conversation.message_count,
                "arrows": [show_arrow(arrow) for arrow in arrows],
                **show_next(window, conversation),
            }
        )


def show_arrow(arrow: Arrow) -> dict[str, Any]:
    """An arrow as the API shows it, with the cautions of its messages."""
    first = arrow.first
    return show(
        ArrowSerializer,
        first,
        number=first.position + 1,
        count=arrow.count,
        messages=[step.id for step in arrow.steps],
        last_at=arrow.last.at,
        seconds_since=None if arrow.since is None else arrow.since.total_seconds(),
        sender=first.sender or None,
        cautions=arrow.cautions,
        is_parent_missing=bool(first.missing) and not first.bearers,
    )
