"""Conversations: those that a query means, one with its messages, its tasks with its measures, as of a moment, and its
sequence, a window of the timeline as arrows, messages alike in a row taken together.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Final

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rest_framework import serializers
from rest_framework.request import Request

from dialects import make_visible
from inspector.browsing.sequence import WINDOW_STEPS, Arrow, read_sequence
from inspector.browsing.transcripts import tell_lines
from inspector.database import on_replica
from inspector.search.selectors import mean_conversations
from inspector.threads.models import Conversation, Task
from inspector.threads.selectors import filter_conversations, find_conversation, select_conversations
from inspector.threads.states import EVENTS, LINKS
from inspector.threads.tasks import find_moment, get_state, list_tasks, measure_conversation, read_steps
from inspector.threads.timeline import read_timeline

from .authentication import may_see_secrets
from .endpoints import Endpoint, operation
from .messages import LinkedMessageSerializer, show_linked
from .parameters import FILTERS, read_filters, take_choice, take_number, take_text
from .shapes import (
    CURSOR,
    FIXED,
    LIMIT,
    NEXT_OFFSET,
    OFFSET,
    SeverityField,
    TextOrNull,
    choose,
    cut_by_id,
    find_either,
    listing,
    offer_order,
    read_row_id,
    read_start,
    show,
    show_next,
)
from .traces import BEARERS_HELP, ORDER


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
    severity = SeverityField()
    first_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)
    is_settled = serializers.BooleanField()


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
    native_id = TextOrNull()
    state = serializers.ChoiceField(choices=Task.State.values, help_text="as of the moment")
    said_state = serializers.ChoiceField(
        source="state", choices=Task.State.values, help_text="what the messages say, at any moment"
    )
    request = serializers.UUIDField(allow_null=True, help_text="the message that asked; null: not received")
    act = TextOrNull()
    requester = TextOrNull()
    performer = TextOrNull()
    delegate = TextOrNull()
    delegation = TextOrNull(help_text="the mode in which it was passed on")
    deadline = TextOrNull(help_text="as the message states it")
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


def _read_as_of(text: str) -> datetime:
    at = timezone.now() if text == "now" else parse_datetime(text)
    if at is None or timezone.is_naive(at):
        raise ValueError
    return at


_AS_OF: Final = replace(
    take_text("as_of", about="the moment of reading: by default the latest record of the channel"),
    allowed="now, or a time with its zone such as 2026-11-21T09:00:00Z",
    read=_read_as_of,
)


def show_task(task: Task) -> dict[str, Any]:
    """A task as the list shows it, of `list_tasks`."""
    return show(
        TaskSerializer,
        task,
        state=getattr(task, "stands", task.state),
        steps=[
            show(StepSerializer, step, inferred=LINKS.get(step.link, step.link) or None)
            for step in read_steps(task.steps)
        ],
    )


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
    sender = TextOrNull()
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
    is_parent_withdrawn = serializers.BooleanField(
        source="is_withdrawn", help_text="whether it cites a message that was received and is withdrawn"
    )
    parent_bearers = serializers.IntegerField(source="bearers", help_text=BEARERS_HELP)
    missing_id = serializers.CharField(
        source="missing_name", allow_blank=True, help_text="the id that it cites in these cases, where that is known"
    )


class SequenceSerializer(serializers.Serializer[Any]):
    """A window of a sequence; `next` is the cursor of the window after, or null. The counts of its arrows add up to its
    messages."""

    agents = serializers.ListField(child=serializers.CharField(), help_text="the agents in it, by first appearance")
    message_count = serializers.IntegerField(help_text="of the whole conversation")
    arrows = ArrowSerializer(many=True)
    next = serializers.CharField(allow_null=True)
    next_offset = serializers.IntegerField(allow_null=True, help_text=NEXT_OFFSET)


class Conversations(Endpoint):
    """Conversations, and what stands in each."""

    @listing(
        "Conversation",
        ConversationSerializer,
        "Conversations",
        ORDER,
        *FILTERS,
        query=take_text("q", about="only those with a message that this means, in the search language", default=""),
        what="A conversation",
        reads="conversations",
    )
    @on_replica
    def list_conversations(self, request: Request) -> dict[str, Any]:
        """A page of conversations."""
        workspace, given = self.workspace, self.given
        wanted = read_filters(given, workspace)
        meant = mean_conversations(workspace=workspace, query=given["q"], may_see_secrets=may_see_secrets(self.key))
        fixed = filter_conversations(workspace=workspace, **wanted)
        moving = select_conversations(workspace=workspace, before=None, grade=None, **wanted)
        page, on = find_either(self, fixed, moving, meant, "conversations")
        shown = [choose(show_conversation(row), given) for row in page]
        return {"results": shown, **on}

    @operation(ConversationDetailSerializer, parameters=(CURSOR, OFFSET, LIMIT), reads="conversations")
    def get_conversation(self, request: Request, conversation_id: uuid.UUID) -> dict[str, Any]:
        """The conversation and a page of its messages in the order of time, each with what it answers."""
        conversation = self.find(find_conversation, conversation_id=conversation_id)
        window = read_timeline(
            conversation=conversation,
            start=read_start(self, conversation),
            size=self.given["limit"],
            without=("words", "atoms"),
        )
        lines = tell_lines(workspace=self.workspace, messages=window.rows)
        linked = [{**shown, "line": make_visible(lines[pk].text)} for pk, shown in show_linked(window.rows).items()]
        return {**show_conversation(conversation), "messages": linked, **show_next(window, conversation)}

    @operation(
        TaskPageSerializer,
        parameters=(
            CURSOR,
            LIMIT,
            offer_order("begin", about="in which they begin", fixed="by their ids"),
            take_choice("state", about="filter by state", choices=Task.State.values, default=""),
            _AS_OF,
        ),
    )
    def list_tasks(self, request: Request, conversation_id: uuid.UUID) -> dict[str, Any]:
        """A page of tasks, and the measures of all of them."""
        conversation = self.find(find_conversation, conversation_id=conversation_id)
        given, of = self.given, f"tasks {conversation.pk}"
        moment = given["as_of"] or find_moment(conversation=conversation)
        after = read_row_id(self, of)
        found = list_tasks(
            conversation=conversation,
            moment=moment,
            after=(b"", after) if after else None,
            limit=given["limit"] + 1,
            states=[given["state"]] if given["state"] else [],
            is_by_id=given["order"] == FIXED,
        )
        page, cursor = cut_by_id(self, found, lambda task: task.pk, of)
        return {
            "as_of": moment,
            "measures": asdict(measure_conversation(conversation=conversation, moment=moment)),
            "results": [show_task(task) for task in page],
            "next": cursor,
        }

    @operation(
        SequenceSerializer,
        parameters=(
            CURSOR,
            OFFSET,
            take_number("limit", about="how many messages a window has", least=1, most=200, default=WINDOW_STEPS),
            take_choice(
                "alike",
                about="messages alike in a row: as one, or each",
                choices=("together", "apart"),
                default="together",
            ),
        ),
        reads="conversations",
    )
    def get_sequence(self, request: Request, conversation_id: uuid.UUID) -> dict[str, Any]:
        """A window of the conversation in the order of time.

        Windows end to end hold every message once, whatever is added or withdrawn meanwhile.
        """
        conversation = self.find(find_conversation, conversation_id=conversation_id)
        arrows, window = read_sequence(
            conversation=conversation,
            start=read_start(self, conversation),
            size=self.given["limit"],
            is_all_opened=self.given["alike"] == "apart",
        )
        present = {name for arrow in arrows for step in arrow.steps for name in (step.sender, *step.receivers)}
        return {
            "agents": [name for name in conversation.agents if name in present],
            "message_count": conversation.message_count,
            "arrows": [show_arrow(arrow) for arrow in arrows],
            **show_next(window, conversation),
        }


def show_conversation(conversation: Conversation) -> dict[str, Any]:
    """A conversation as the list shows it."""
    return show(ConversationSerializer, conversation, state=get_state(conversation))


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
        cautions=arrow.cautions,
        is_parent_missing=bool(first.missing) and not first.bearers and not first.is_withdrawn,
    )
