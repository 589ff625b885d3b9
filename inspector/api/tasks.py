"""GET the tasks of a conversation, with its measures, as of a moment."""

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

from inspector.threads.models import Task
from inspector.threads.selectors import find_conversation
from inspector.threads.tasks.events import EVENTS, LINKS
from inspector.threads.tasks.measures import find_moment, list_tasks, measure_conversation
from inspector.threads.tasks.rows import read_steps

from .endpoints import Endpoint
from .paging import CURSOR, FIXED, LIMIT, cut_by_id, offer_order, read_row_id
from .parameters import Choice, Parameter
from .shapes import show


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
