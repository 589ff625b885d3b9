"""Hindsight: a milestone that is found after the fact, by settling what lies before it as if nothing had come since.

A conversation that was settled from its beginning has no milestone yet. Where a message was late by a little, the next
one will be as well: so the conversation as it stood some messages before that one is made out from the nodes at hand.
It is a milestone only where everything that came since left what lies before it as it was.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from ..models import Conversation, Task
from ..placing.nodes import StoredNode, Timeline, find_misread
from ..placing.placer import place
from ..tasks.found import make_task_id
from ..tasks.ledger import TaskRow
from ..telling.carried import CarriedContext
from . import carries
from .carries import assign_tasks, begin, is_current, write_carry
from .milestones import find_furthest, is_too_much
from .past import make_task, write_stood
from .summing import Sum, make_conversation, sum_nodes
from .together import look_up

# So many messages before one that is late, at least.
LEAST_BACK = 256


@dataclass(frozen=True, slots=True)
class Hindsight:
    """A milestone as it is to be written: the instant of its last message, how many there are up to it, the place that
    the next one has at least, what was carried and stood there, and the messages of its tree."""

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
    late = next((at for at, node in enumerate(nodes) if node.is_new), len(nodes))
    # What was not there before and is not at the end.
    if late == len(nodes) or all(node.is_new for node in nodes[late:]):
        return None
    cut = late - max(LEAST_BACK, len(nodes) - late)
    while cut > 0 and not _is_border(nodes[cut - 1], nodes[cut]):
        cut -= 1
    return cut if cut >= carries.LEAST_MESSAGES and len(nodes) - cut <= find_furthest(len(nodes)) else None


def _is_border(node: StoredNode, following: StoredNode) -> bool:
    return node.record != following.record and (node.instant, node.source, node.index) < (
        following.instant,
        following.source,
        following.index,
    )


def look_back(
    conversation: Conversation, nodes: Sequence[StoredNode], context: CarriedContext, summed: Sum, hidden: int
) -> Hindsight | None:
    """How a conversation would stand if these were all its messages; None where they would not stand as they do.

    Args:
        conversation: its row.
        nodes: the first of its nodes, placed and told with all that came since.
        context: what holds after them.
        summed: what its row and its tasks' rows say with all that came since.
        hidden: how many messages a withdrawal hides.
    """
    timeline = Timeline(sorted(map(_copy_unplaced, nodes), key=_rank_of))
    timeline.first_at, timeline.last_at = timeline.nodes[0].at, timeline.nodes[-1].at
    course = begin(conversation, timeline.nodes)
    course.context = context
    if any(True for _ in find_misread(timeline.nodes, course.spoken)):
        return None
    look_ups = look_up([conversation], {conversation.pk: timeline}, {conversation.pk: course})
    timeline.nodes = place(timeline.nodes, look_ups[conversation.pk], course.placed)
    timeline.give_places()
    assign_tasks(conversation, course, timeline.nodes)
    if any(map(_stands_otherwise, timeline.nodes, nodes)):
        return None
    before = sum_nodes(conversation, timeline, list(course.playing.plays.values()), hidden=hidden)
    carried = write_carry(course, before.counts, timeline)
    if carried is None:
        return None
    tasks = {make_task_id(conversation.pk, row[0]): row for row in before.tasks}
    stood = write_stood(make_conversation(before), _find_changed(conversation, tasks, summed))
    return Hindsight(*carried, stood, timeline.nodes) if not is_too_much(stood) else None


def _copy_unplaced(node: StoredNode) -> StoredNode:
    """A node as it is before it is placed."""
    unplaced = copy(node)
    unplaced.run, unplaced.parent, unplaced.above, unplaced.parent_elsewhere = 1, None, None, b""
    unplaced.cited, unplaced.ghost, unplaced.basis, unplaced.why = None, None, "", ""
    unplaced.is_answered, unplaced.opens_run = False, False
    unplaced.of_task, unplaced.link, unplaced.is_assigned, unplaced.task_id = None, "", False, None
    return unplaced


def _rank_of(node: StoredNode) -> int:
    return node.rank


def _stands_otherwise(one: StoredNode, other: StoredNode) -> bool:
    """Whether two nodes of one place are not the same message, placed alike."""
    if one.id != other.id or one.hash_place() != other.hash_place():
        return True
    return (one.ghost, one.link, one.parent_elsewhere) != (other.ghost, other.link, other.parent_elsewhere)


def _find_changed(conversation: Conversation, tasks: Mapping[uuid.UUID, TaskRow], summed: Sum) -> dict[uuid.UUID, Task]:
    """The tasks that have changed since, as they stood before."""
    changed = {}
    for row in summed.tasks:
        pk = make_task_id(conversation.pk, row[0])
        stood = tasks.get(pk)
        if stood is not None and stood != row:
            changed[pk] = make_task(conversation, pk, stood)
    return changed
