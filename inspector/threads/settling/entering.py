"""Entering: the settling of a conversation gone on with at the beginning of one of its stretches.

Of what stands there is known what the stretch keeps. Tasks are stored as they stand at the end of the conversation:
those that went on behind that border are brought back to it by their messages.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Final

from django.db.models import Q

from ..models import Conversation, Message
from ..placing.instants import read_instant
from ..placing.nodes import StoredNode, load_placed
from ..placing.placer import Node, find_asked
from ..placing.places import Places, read_instant_of
from ..tasks.asked import Asked
from ..tasks.found import GOES_ON, Found, make_task_id
from ..tasks.memberships import Membership
from ..tasks.resuming import load_tasks
from ..tasks.standing import Standing, asked_for
from ..uncertainty import UncertainError
from .courses import Course, find_task_keys, go_on
from .stretches import State

# So many messages of tasks are gone through again, at most.
MOST_WORDS: Final = 2000


def enter(
    conversation: Conversation,
    state: State,
    border: bytes,
    until: bytes,
    nodes: Sequence[StoredNode],
    *,
    stored: Places,
    hidden: Set[uuid.UUID] = frozenset(),
) -> Course:
    """The course of a conversation within a stretch of it.

    Args:
        conversation: its row.
        state: what is known where the stretch begins.
        border: the place at which it begins.
        until: the place at which it is left.
        nodes: every message between them, those that are placed and those that are new.
        stored: the directory of the conversation.
        hidden: as `go_on` takes it.

    Raises:
        UncertainError: where one of these puts a question whose answer is not kept.
    """
    places = stored.cut(stored.find_position(border)) if border else Places()
    since = frozenset(node.id for node in nodes)
    moved = places.count - int(state["count"])
    course = go_on(
        conversation,
        state,
        border,
        nodes,
        places=places,
        since=since,
        changed={},
        moved=moved,
        until=until,
        hidden=hidden,
    )
    if not find_asked(nodes) <= course.placed.earlier.asked:
        # What answers such questions is not kept.
        raise UncertainError
    placed, later = course.placed, {pk for pk, node in course.known.items() if node.place >= border}
    borne = [(name, bearer) for name, bearers in placed.borne.items() for bearer in bearers]
    placed.borne = _group(each for each in borne if each[1].id not in later)
    placed.borne_later = _group(each for each in borne if each[1].id in later)
    return course


def _group(borne: Iterable[tuple[bytes, Node]]) -> dict[bytes, list[Node]]:
    found: dict[bytes, list[Node]] = defaultdict(list)
    for name, bearer in borne:
        found[name].append(bearer)
    return dict(found)


def find_tasks(
    conversation: Conversation, courses: Iterable[Course], state: State, nodes: Iterable[StoredNode]
) -> set[uuid.UUID]:
    """The ids of the tasks that the placed nodes of a stretch may belong to, as far as they are known before it."""
    named = {uuid.UUID(hex=task) for _, task in Standing.list_named(state["standing"])}
    since = frozenset[uuid.UUID]().union(*(course.since for course in courses))
    every = list(nodes)
    above = {node.above.task_id for node in every if node.above is not None and node.above.id not in since}
    keys = {make_task_id(conversation.pk, key) for key in find_task_keys(every)}
    return named | keys | {task for task in above if task is not None}


def assign_entered(
    conversation: Conversation,
    course: Course,
    state: State,
    border: bytes,
    nodes: Sequence[StoredNode],
    ids: Set[uuid.UUID],
    awaited: Mapping[bytes, tuple[str, str]],
) -> None:
    """Give each placed node of a stretch its task.

    Args:
        conversation: the row.
        course: what its settling goes on from.
        state: what is known where the stretch begins.
        border: the place at which it begins.
        nodes: the nodes, placed.
        ids: of the tasks that they may belong to (`find_tasks`).
        awaited: as `load_tasks` takes it.

    Raises:
        UncertainError: where the tasks that are stored do not tell.
    """
    tasks = load_tasks(conversation.pk, ids, awaited, changed={}, border=border)
    if not {uuid.UUID(hex=task) for _, task in Standing.list_named(state["standing"])} <= tasks.by_id.keys():
        raise UncertainError
    if border:
        since = read_instant(read_instant_of(border))
        plays = [(task, play) for task, play in tasks.plays.items() if not task.is_awaited]
        gone_on = [task for task, play in plays if play.last_at is None or play.last_at >= since]
        _bring_back(conversation, gone_on, border)
    for node in nodes:
        above = node.above
        if above is not None and above.id not in course.since and above.task_id is not None:
            if above.task_id not in tasks.by_id:
                raise UncertainError
            above.of_task = tasks.by_id[above.task_id]
    asked = Standing.read(state["standing"], course.known, tasks.by_id)
    course.membership = Membership(conversation.pk, asked=asked, known=tasks.by_key)
    course.membership.assign(nodes, course.cuts)


def _bring_back(conversation: Conversation, tasks: Collection[Found], border: bytes) -> None:
    """Let these tasks stand as they stood at a border, as far as membership asks."""
    if not tasks:
        return
    requests = [task.request for task in tasks if task.request is not None]
    if Message.objects.filter(pk__in=requests, place__gte=border).exists():
        # Whose task it is was said behind the border: membership knows it from the beginning, but not from here.
        raise UncertainError
    words: dict[uuid.UUID, list[StoredNode]] = defaultdict(list)
    every = load_placed(conversation.pk, Q(task__in=[task.id for task in tasks], place__lt=border))
    if len(every) > MOST_WORDS:
        raise UncertainError
    for node in sorted(every, key=lambda each: each.place):
        if node.task_id is not None:
            words[node.task_id].append(node)
    asked = Asked()
    for task in tasks:
        task.ends, task.ending = 0, GOES_ON
        for node in words[task.id]:
            asked.note_end(node, task, is_own=asked_for(task, node))
