"""GET what stands in a conversation: its tasks, with its measures, as of a moment; and its sequence, a window of the
timeline as arrows, messages alike in a row taken together.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.browsing.sequence import WINDOW_STEPS, Arrow, read_sequence
from inspector.threads.models import Task
from inspector.threads.selectors import find_conversation
from inspector.threads.states import EVENTS, LINKS
from inspector.threads.tasks import find_moment, list_tasks, measure_conversation, read_steps

from .endpoints import Endpoint
from .paging import (
    CURSOR,
    FIXED,
    LIMIT,
    NEXT_OFFSET,
    OFFSET,
    cut_by_id,
    offer_order,
    read_row_id,
    read_start,
    show_next,
)
from .parameters import Choice, Number, Parameter
from .shapes import show
from .traces import BEARERS_HELP


class TimesSerializer(serializers.Serializer[Any]):
    """How long it took, in seconds, of those tasks whose times are known."""

    measured = serializers.IntegerField()
    median = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)


class MeasuresSerializer(serializers.Serializer[Any]):
    """What all tasks of the conversation come to."""

    asked = serializers.IntegerField()
    answered = serializers.IntegerField()
    unanswered = serializers.IntegerField(help_text="that stand though nobody but the requester said a word on them")
    states = serializers.DictField(child=serializers.IntegerField(), help_text="how many stand so, by state")
    retries = serializers.IntegerField()
    failures = serializers.IntegerField()
    late = serializers.IntegerField(help_text="that ended after their deadline")
    acknowledge = TimesSerializer(help_text="until the first word of anyone but the requester")
    finish = TimesSerializer(help_text="until it ended")


class StepSerializer(serializers.Serializer[Any]):
    """A change of a task: the message that caused it, what that was to it, and the state after it."""

    message = serializers.UUIDField(source="message_id")
    event = serializers.ChoiceField(choices=list(EVENTS))
    state = serializers.ChoiceField(choices=Task.State.values)
    inferred = serializers.CharField(
        allow_null=True, help_text="why the message is taken to belong to the task, where the message does not say so"
    )


class TaskSerializer(serializers.Serializer[Any]):
    """A task; docs/lifecycle.md says what each name means."""

    id = serializers.UUIDField()
    native_id = serializers.CharField(allow_null=True)
    state = serializers.ChoiceField(choices=Task.State.values, help_text="as of the moment")
    said_state = serializers.ChoiceField(
        source="state", choices=Task.State.values, help_text="what the messages say, at any moment"
    )
    request = serializers.UUIDField(allow_null=True, help_text="the message that asked; null: not received")
    act = serializers.CharField(allow_null=True)
    requester = serializers.CharField(allow_null=True)
    performer = serializers.CharField(allow_null=True)
    delegate = serializers.CharField(allow_null=True)
    delegation = serializers.CharField(allow_null=True, help_text="the mode in which it was passed on")
    deadline = serializers.CharField(allow_null=True, help_text="as the message states it")
    deadline_at = serializers.DateTimeField(allow_null=True)
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    asked_at = serializers.DateTimeField(allow_null=True, help_text="null where message and envelope carry no time")
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    acknowledge_seconds = serializers.FloatField(allow_null=True)
    finish_seconds = serializers.FloatField(allow_null=True)
    message_count = serializers.IntegerField()
    retries = serializers.IntegerField()
    failures = serializers.IntegerField()
    is_answered = serializers.BooleanField()
    is_inferred = serializers.BooleanField()
    step_count = serializers.IntegerField()
    steps = StepSerializer(many=True, help_text="its changes; of more than 200 the first and the last hundred")


class TaskPageSerializer(serializers.Serializer[Any]):
    """Tasks in the order in which they begin; `next` is the cursor of the page after, or null."""

    as_of = serializers.DateTimeField(allow_null=True, help_text="the moment at which they stand so")
    measures = MeasuresSerializer()
    results = TaskSerializer(many=True)
    next = serializers.CharField(allow_null=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment(Parameter):
    """`now`, or a time with its zone."""

    @property
    def allowed(self) -> str:
        return "now, or a time with its zone such as 2026-11-21T09:00:00Z"

    def read(self, text: str) -> datetime:
        """The moment.

        Raises:
            ValueError: for what is no time, or has no zone.
        """
        at = timezone.now() if text == "now" else parse_datetime(text)
        if at is None or timezone.is_naive(at):
            raise ValueError
        return at


AS_OF: Final = Moment(name="as_of", about="the moment of reading: by default the latest record of the channel")


class TasksView(Endpoint):
    """The tasks of a conversation."""

    parameters: ClassVar = {
        "GET": (
            CURSOR,
            LIMIT,
            offer_order("begin", about="in which they begin", fixed="by their ids"),
            Choice(name="state", about="filter by state", choices=Task.State.values, default=""),
            AS_OF,
        )
    }

    @extend_schema(operation_id="list_tasks", responses=TaskPageSerializer)
    def get(self, request: Request, conversation_id: uuid.UUID) -> Response:
        """A page of tasks, and the measures of all of them."""
        workspace, conversation = self.workspace, self.find(find_conversation, conversation_id=conversation_id)
        given, of = self.given, f"tasks {conversation.pk}"
        moment = given["as_of"] or find_moment(conversation=conversation)
        after = read_row_id(given, workspace, of=of)
        found = list_tasks(
            conversation=conversation,
            moment=moment,
            after=(b"", after) if after else None,
            limit=given["limit"] + 1,
            states=[given["state"]] if given["state"] else [],
            is_by_id=given["order"] == FIXED,
        )
        page, cursor = cut_by_id(found, given, workspace, lambda task: task.pk, of=of)
        return Response(
            {
                "as_of": moment,
                "measures": asdict(measure_conversation(conversation=conversation, moment=moment)),
                "results": [show_task(task) for task in page],
                "next": cursor,
            }
        )


_OR_NULL: Final = ("native_id", "act", "requester", "performer", "delegate", "delegation", "deadline")


def show_task(task: Task) -> dict[str, Any]:
    """A task as the list shows it, of `list_tasks`."""
    return show(
        TaskSerializer,
        task,
        state=getattr(task, "stands", task.state),
        **{name: getattr(task, name) or None for name in _OR_NULL},
        steps=[
            show(StepSerializer, step, inferred=LINKS.get(step.link, step.link) or None)
            for step in read_steps(task.steps)
        ],
    )


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
