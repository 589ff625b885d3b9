"""What is stored of a conversation against what settling all of it would write, without writing it.

Where conversations are settled again and again, what was wrong once may be mended by the next settling: with this
every one of them can be looked at.
"""

from __future__ import annotations

from typing import Any

from inspector.threads.agents.exchanges import gather_exchanges
from inspector.threads.agents.tables import Appearance, Declaration, Exchange
from inspector.threads.hidden import count_hidden_by_conversation
from inspector.threads.models import Conversation
from inspector.threads.placing.nodes import Timeline, load_timelines
from inspector.threads.placing.numbering import load_places
from inspector.threads.placing.placer import place
from inspector.threads.settling.courses import Course, assign_tasks, begin
from inspector.threads.settling.summing import make_conversation, sum_nodes
from inspector.threads.settling.together import look_up
from inspector.threads.settling.writing import make_knots
from inspector.threads.tasks.found import make_task_id
from inspector.threads.telling.retelling import Retelling
from inspector.threads.trees.outline import draw_lines
from inspector.threads.trees.windows import load_tree

_SUMMED = ("state", "agents", "dialects", "message_count", "missing_count", "severity", "tally", "first_at", "last_at")
_COUNTED = {
    Appearance: ("agent_id", "dialect", "sent", "received", "failures", "first_at", "last_at"),
    Exchange: (
        *("sender_id", "receiver_id", "is_broadcast", "dialect"),
        *("messages", "failures", "first_at", "last_at"),
    ),
    Declaration: ("agent_id", "message", "dialect", "kind", "value", "name", "at"),
}


def place_whole(conversation: Conversation) -> tuple[Timeline, Course]:
    """All messages of a settled conversation, placed and assigned anew; nothing is written."""
    timelines = load_timelines([conversation.pk])
    timeline = timelines[conversation.pk]
    course = begin(conversation, timeline.nodes)
    looked_up = look_up([conversation], timelines, {conversation.pk: course})
    timeline.nodes = place(timeline.nodes, looked_up[conversation.pk], course.placed)
    timeline.give_places()
    assign_tasks(conversation, course, timeline.nodes)
    return timeline, course


def assert_whole(conversation: Conversation) -> None:
    """Prove that all that is stored of a settled conversation is what settling it from its beginning comes to."""
    timeline, course = place_whole(conversation)
    name = conversation.native_id
    assert list(timeline.blocks) == list(load_places(conversation).blocks), name
    differing = [node for node in timeline.nodes if node.hash_place() != node.was_placed]
    assert not differing, (name, differing[0])
    retelling = Retelling(timeline.nodes, lambda: None, course.context)
    told = [node for node, row, _ in retelling.go_through() if row is not None]
    assert not told, (name, told[0])
    hidden = count_hidden_by_conversation([conversation]).get(conversation.pk, 0)
    summed = sum_nodes(conversation, timeline, list(course.playing.plays.values()), hidden=hidden)
    assert summed.digest == bytes(conversation.settled_digest or b""), name
    for column in _SUMMED:
        assert getattr(summed, column) == getattr(conversation, column), (name, column)
    assert make_conversation(summed).subject == conversation.subject, name
    rows = {make_task_id(conversation.pk, row[0]): row[-2:] for row in summed.tasks}
    stored = {
        pk: (bytes(digest), bytes(at)) for pk, digest, at in conversation.tasks.values_list("pk", "digest", "place")
    }
    assert stored == rows, name
    tree = load_tree(conversation)
    lines = [] if tree is None else [(line.id, line.kind, depth, *line[2:]) for depth, line in tree.read_all()]
    assert lines == [line[:-1] for line in draw_lines(make_knots(timeline.nodes))], name
    gathered = gather_exchanges(conversation, timeline.nodes)
    for model, columns in _COUNTED.items():
        held: set[tuple[Any, ...]] = set(model._default_manager.filter(conversation=conversation).values_list(*columns))
        assert held == gathered.rows[model], (name, model.__name__)
