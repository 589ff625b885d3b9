"""What is stored of a conversation against what settling all of it would write, without writing it.

Where conversations are settled again and again, what was wrong once may be mended by the next settling: with this
every one of them can be looked at.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from inspector.threads.agents.exchanges import gather_exchanges
from inspector.threads.agents.tables import Appearance, Declaration, Exchange
from inspector.threads.hidden import count_hidden_by_conversation
from inspector.threads.models import Conversation, Task
from inspector.threads.placing.nodes import Timeline, load_timelines
from inspector.threads.placing.numbering import load_all_places
from inspector.threads.placing.placer import place
from inspector.threads.placing.places import Places
from inspector.threads.resolving.courses import Course, assign_tasks, begin
from inspector.threads.resolving.summing import make_conversation, sum_nodes
from inspector.threads.resolving.together import look_up
from inspector.threads.tasks.found import make_task_id
from inspector.threads.telling.retelling import Retelling
from inspector.threads.trees.outline import ADJACENCY, name_ghost
from inspector.threads.trees.windows import Tree

from .plain_trees import Knot, draw

Whole = tuple[Timeline, Course]

_SUMMED = ("state", "agents", "dialects", "message_count", "missing_count", "severity", "tally", "first_at", "last_at")
_COUNTED = {
    Appearance: ("agent_id", "dialect", "sent", "received", "failures", "first_at", "last_at"),
    Exchange: (
        *("sender_id", "receiver_id", "is_broadcast", "dialect"),
        *("messages", "failures", "first_at", "last_at"),
    ),
    Declaration: ("agent_id", "message", "dialect", "kind", "value", "name", "at"),
}


def place_whole(conversation: Conversation) -> Whole:
    """All messages of a settled conversation, placed and assigned anew; nothing is written."""
    return place_wholes([conversation])[conversation.pk]


def place_wholes(conversations: Sequence[Conversation]) -> dict[uuid.UUID, Whole]:
    """Those of several conversations of a workspace, loaded together."""
    timelines = load_timelines([each.pk for each in conversations])
    courses = {each.pk: begin(each, timelines[each.pk].nodes) for each in conversations}
    looked_up = look_up(conversations, timelines, courses)
    for each in conversations:
        timeline, course = timelines[each.pk], courses[each.pk]
        timeline.nodes = place(timeline.nodes, looked_up[each.pk], course.placed)
        timeline.give_places()
        assign_tasks(each, course, timeline.nodes)
    return {each.pk: (timelines[each.pk], courses[each.pk]) for each in conversations}


def assert_whole(*conversations: Conversation) -> None:
    """Prove that all that is stored of settled conversations is what settling them from their beginning comes to."""
    wholes, stored = place_wholes(conversations), Stored.load(conversations)
    for each in conversations:
        assert_is(each, *wholes[each.pk], stored)


@dataclass(frozen=True)
class Stored:
    """What is stored of conversations, by theirs."""

    places: dict[uuid.UUID, Places]
    hidden: dict[uuid.UUID, int]
    tasks: dict[uuid.UUID, dict[uuid.UUID, tuple[bytes, bytes]]]
    counted: dict[tuple[type[Model], uuid.UUID], set[tuple[Any, ...]]]

    @classmethod
    def load(cls, conversations: Sequence[Conversation]) -> Stored:
        ids = [each.pk for each in conversations]
        tasks: dict[uuid.UUID, dict[uuid.UUID, tuple[bytes, bytes]]] = defaultdict(dict)
        for task in Task.objects.filter(conversation__in=ids).only("conversation_id", "digest", "place"):
            tasks[task.conversation_id][task.pk] = (bytes(task.digest), bytes(task.place))
        counted: dict[tuple[type[Model], uuid.UUID], set[tuple[Any, ...]]] = defaultdict(set)
        for model, columns in _COUNTED.items():
            rows = model._default_manager.filter(conversation__in=ids)
            for conversation_id, *row in rows.values_list("conversation_id", *columns):
                counted[model, conversation_id].add(tuple(row))
        return cls(
            places=load_all_places(ids),
            hidden=count_hidden_by_conversation(conversations),
            tasks=tasks,
            counted=counted,
        )


def assert_is(conversation: Conversation, timeline: Timeline, course: Course, stored: Stored) -> None:
    """What is stored of a conversation is this."""
    pk, name = conversation.pk, conversation.native_id
    assert list(timeline.blocks) == list(stored.places.get(pk, Places()).blocks), name
    differing = [node for node in timeline.nodes if node.hash_place() != node.was_placed]
    assert not differing, (name, differing[0])
    retelling = Retelling(timeline.nodes, lambda: None, course.context)
    told = [node for node, row, _ in retelling.go_through() if row is not None]
    assert not told, (name, told[0])
    plays = list(course.playing.plays.values())
    summed = sum_nodes(conversation, timeline, plays, hidden=stored.hidden.get(pk, 0))
    assert summed.digest == bytes(conversation.settled_digest or b""), name
    for column in _SUMMED:
        assert getattr(summed, column) == getattr(conversation, column), (name, column)
    assert make_conversation(summed).subject == conversation.subject, name
    assert stored.tasks[pk] == {make_task_id(pk, row[0]): row[-2:] for row in summed.tasks}, name
    knots = [
        Knot(
            id=node.id,
            at=node.instant,
            performative=None if node.work.is_public else node.performative,
            severity=node.severity,
            parent=None if node.basis == ADJACENCY else node.parent_at,
            ghost=name_ghost(pk.bytes, node.ghost) if node.ghost is not None else None,
        )
        for node in timeline.nodes
    ]
    assert list(Tree(conversation).read_all()) == draw(knots), name
    gathered = gather_exchanges(conversation, timeline.nodes)
    for model in _COUNTED:
        assert stored.counted[model, pk] == gathered.rows[model], (name, model.__name__)
