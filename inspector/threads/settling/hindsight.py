"""Hindsight: a milestone that is found after the fact, by settling what lies before it as if nothing had come since.

A conversation that was settled from its beginning has no milestone yet. Where a message was late by a little, the next
one will be as well: so the conversation as it stood some messages before that one is made out from the nodes at hand.
It is a milestone only where everything that came since left what lies before it as it was.

The same is done where settling went back to a milestone much further than what was late: where one clock is ahead of
all others, whatever comes is late by one message, and that milestone would come to lie ever further back.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..models import Conversation, Task
from ..placing.nodes import StoredNode, Timeline, copy_unplaced, find_misread
from ..placing.placer import place
from ..tasks.found import make_task_id
from ..tasks.ledger import TaskRow
from ..telling.carried import CarriedContext
from ..uncertainty import UncertainError
from . import carries
from .carries import Start, is_current, write_carry
from .courses import Course, assign_tasks, begin, resume
from .milestones import find_furthest, is_too_much
from .past import make_task, write_stood
from .stretches import is_long
from .summing import Sum, make_conversation, sum_nodes
from .together import look_up

# So many messages before one that is late, at least.
LEAST_BACK = 256
# Where so many times as many messages were settled again as a nearer milestone would have had settled, it is sought.
_FAR = 4


@dataclass(frozen=True, slots=True)
class Hindsight:
    """A milestone as it is to be written: the instant of its last message, how many there are up to it, the place that
    the next one has at least, what was carried and stood there, and its messages from where settling started."""

    reached: int
    count: int
    border: bytes
    carried: bytes
    stood: bytes
    nodes: Sequence[StoredNode]


def find_cut(conversation: Conversation, nodes: Sequence[StoredNode]) -> int | None:
    """How many of these placed nodes a milestone would have before it; None where there is to be none.

    Args:
        conversation: as it was before they were placed.
        nodes: every one of it, in the order of the timeline.
    """
    if not is_current(conversation) or not conversation.settled_generation:
        return None
    cut = _find_border(nodes)
    return cut if cut >= carries.LEAST_MESSAGES and len(nodes) - cut <= find_furthest(len(nodes)) else None


def find_nearer_cut(start: Start, nodes: Sequence[StoredNode]) -> int | None:
    """How many of these placed nodes a milestone would have before it; None where that is not worth it.

    Args:
        start: where they were gone on from.
        nodes: every one since, in the order of the timeline.
    """
    if not start.is_milestone:
        return None
    # What was sought in vain is sought again when so many more have come.
    count = len(nodes) - sum(node.is_new for node in nodes)
    if len(nodes) // LEAST_BACK == count // LEAST_BACK:
        return None
    cut = _find_border(nodes)
    return cut if cut > 0 and len(nodes) >= _FAR * (len(nodes) - cut) else None


def _find_border(nodes: Sequence[StoredNode]) -> int:
    """How many of these nodes are well before what is late among them; 0 where none are, or nothing is late."""
    late = next((at for at, node in enumerate(nodes) if node.is_new), len(nodes))
    # What was not there before and is not at the end.
    if late == len(nodes) or all(node.is_new for node in nodes[late:]):
        return 0
    cut = late - max(LEAST_BACK, len(nodes) - late)
    while cut > 0 and not _is_border(nodes[cut - 1], nodes[cut]):
        cut -= 1
    return max(cut, 0)


def _is_border(node: StoredNode, following: StoredNode) -> bool:
    return node.record != following.record and (node.instant, node.source, node.index) < (
        following.instant,
        following.source,
        following.index,
    )


def look_back(
    conversation: Conversation,
    nodes: Sequence[StoredNode],
    cut: int,
    context: CarriedContext,
    summed: Sum,
    *,
    hidden: int,
    start: Start | None,
) -> Hindsight | None:
    """How a conversation would stand if nothing had come after some nodes; None where they would not stand as they do.

    Args:
        conversation: its row; nothing has been written of what is new in it but messages.
        nodes: its nodes, placed and told: every one, or those since it was gone on from.
        cut: how many of them are the first that it would have.
        context: what holds after these.
        summed: what its row and its tasks' rows say with all of them.
        hidden: how many messages a withdrawal hides.
        start: where it was gone on from; None from its beginning.
    """
    try:
        return _look_back(conversation, nodes, cut, context, summed, hidden=hidden, start=start)
    except UncertainError:
        return None


def _look_back(
    conversation: Conversation,
    nodes: Sequence[StoredNode],
    cut: int,
    context: CarriedContext,
    summed: Sum,
    *,
    hidden: int,
    start: Start | None,
) -> Hindsight | None:
    timeline = Timeline(sorted(map(copy_unplaced, nodes[:cut]), key=_rank_of))
    timeline.first_at, timeline.last_at = timeline.nodes[0].at, timeline.nodes[-1].at
    if start is None:
        course = begin(conversation, timeline.nodes, is_long=is_long(len(nodes)))
    else:
        course = resume(conversation, start, timeline.nodes, among=nodes)
    course.context = context
    timeline.blocks = course.blocks
    if any(True for _ in find_misread(timeline.nodes, course.spoken)):
        return None
    look_ups = look_up([conversation], {conversation.pk: timeline}, {conversation.pk: course})
    timeline.nodes = place(timeline.nodes, look_ups[conversation.pk], course.placed, course.cut(timeline.nodes))
    timeline.give_places()
    assign_tasks(conversation, course, timeline.nodes)
    if any(map(_stands_otherwise, timeline.nodes, nodes)):
        return None
    if course.making is not None:
        course.making.note(timeline.nodes)
    plays = list(course.playing.plays.values())
    before = sum_nodes(conversation, timeline, plays, hidden=hidden, before=course.before)
    carried = write_carry(course, before.counts, timeline)
    if carried is None:
        return None
    stood = write_stood(make_conversation(before), _find_changed(conversation, before, summed, course))
    return Hindsight(*carried, stood, timeline.nodes) if not is_too_much(stood) else None


def _rank_of(node: StoredNode) -> int:
    return node.rank


def _stands_otherwise(one: StoredNode, other: StoredNode) -> bool:
    """Whether two nodes of one place are not the same message, placed alike."""
    if one.id != other.id or one.hash_place() != other.hash_place():
        return True
    return (one.ghost, one.link, one.parent_elsewhere) != (other.ghost, other.link, other.parent_elsewhere)


def _find_changed(conversation: Conversation, before: Sum, summed: Sum, course: Course) -> dict[uuid.UUID, Task]:
    """The tasks that have changed since, as they stood before."""
    tasks = _name_tasks(conversation, before)
    changed = {}
    others = []
    for pk, row in _name_tasks(conversation, summed).items():
        stood = tasks.get(pk)
        if stood is None:
            others.append(pk)
        elif stood != row:
            changed[pk] = make_task(conversation, pk, stood)
    if course.resumed is not None:
        # What none declared a word on up to there is stored as it stood where it was gone on from.
        changed |= Task.objects.filter(conversation=conversation, place__lt=course.resumed.border).in_bulk(others)
    return changed


def _name_tasks(conversation: Conversation, summed: Sum) -> Mapping[uuid.UUID, TaskRow]:
    return {make_task_id(conversation.pk, row[0]): row for row in summed.tasks}
