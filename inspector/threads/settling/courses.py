"""Courses: what the settling of a conversation goes on from, and what it has come to know when it has gone through.

A course begins with nothing, or where a carry was written: then what the messages that come now may answer, follow or
go on with is loaded, and nothing else.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache

from django.db.models import Q

from ..models import Conversation, Message, Task
from ..placing.earlier import Earlier
from ..placing.nodes import StoredNode, load_placed
from ..placing.numbering import load_places
from ..placing.placer import Placed, find_asked
from ..placing.places import BlockSize, Places
from ..placing.runs import Runs
from ..placing.several import SEVERAL
from ..tasks.found import key_of_id, make_key, make_task_id
from ..tasks.memberships import Membership
from ..tasks.plays import Playing
from ..tasks.resuming import load_tasks
from ..tasks.standing import Standing
from ..telling.carried import CarriedContext
from ..uncertainty import UncertainError
from .carries import Start
from .summing import Before, Counts


@dataclass(slots=True)
class Course:
    """How far the settling of a conversation has come: what its nodes go on from, and what they leave.

    `resumed` is where it goes on from, None where the nodes are the whole of the conversation. `blocks` are those of
    the timeline up to there.
    """

    placed: Placed
    spoken: dict[str, None]
    context: CarriedContext
    membership: Membership
    playing: Playing
    # The placed messages that the nodes may follow or answer, by id.
    known: Mapping[uuid.UUID, StoredNode] = field(default_factory=dict)
    before: Before | None = None
    resumed: Start | None = None
    # The messages that are settled from there on, and stand there no more.
    since: Set[uuid.UUID] = frozenset()
    blocks: Sequence[BlockSize] = ()

    @property
    def start_count(self) -> int:
        """How many messages there were where it goes on from."""
        return self.resumed.written["count"] if self.resumed is not None else 0


def begin(conversation: Conversation, nodes: Sequence[StoredNode]) -> Course:
    """The course of a conversation that is settled from its beginning."""
    return Course(
        placed=Placed(Earlier(find_asked(nodes))),
        spoken={},
        context=CarriedContext(),
        membership=Membership(conversation.pk),
        playing=Playing(),
    )


def resume(
    conversation: Conversation,
    start: Start,
    nodes: Sequence[StoredNode],
    *,
    among: Sequence[StoredNode] | None = None,
) -> Course:
    """The course of a conversation that is gone on with.

    Args:
        conversation: its row.
        start: where it is gone on from.
        nodes: those that come after that, in order key: those that were added, and those that were placed there.
        among: where these are only the first of them, all of them.

    Raises:
        UncertainError: where one of them is late, or the conversation is not as it was carried.
    """
    written = start.written
    among = nodes if among is None else among
    since = frozenset(node.id for node in among)
    if nodes and not start.precedes(nodes[0]):
        raise UncertainError
    stored = load_places(conversation)
    places = stored.cut(written["count"])
    again = sum(not node.is_new for node in among)
    if stored.count - again != written["count"] or conversation.message_count != stored.count:
        raise UncertainError
    if start.row.message_count != written["count"]:
        raise UncertainError
    named = {uuid.UUID(hex=name) for name in Earlier.list_named(written["earlier"])}
    named |= {uuid.UUID(hex=name) for name, _ in Standing.list_named(written["standing"])}
    known = {node.id: node for node in _load(conversation, Q(pk__in=named), places)} if named else {}
    if len(known) != len(named):
        raise UncertainError
    borne = _find_borne(conversation, nodes, known, places, since)
    earlier = Earlier.read(written["earlier"], known)

    @lru_cache(maxsize=1024)
    def is_known_task(run: int, native_id: str) -> bool:
        pk = make_task_id(conversation.pk, key_of_id(run, native_id))
        return pk in start.tasks or Task.objects.filter(pk=pk, place__lt=start.border).exists()

    earlier.is_known_task = is_known_task
    placed = Placed(
        earlier,
        count=places.count,
        borne=borne,
        unmet={bytes.fromhex(name) for name in written["unmet"]},
        is_cut=written["is_cut"],
    )
    for dialect, run in written["runs"].items():
        placed.runs[dialect] = Runs.read(run)
    return Course(
        placed=placed,
        spoken=dict.fromkeys(written["spoken"]),
        context=CarriedContext.resume(written["context"], conversation.pk),
        membership=Membership(conversation.pk),
        playing=Playing(),
        known=known,
        resumed=start,
        since=since,
        blocks=places.blocks,
    )


def _load(conversation: Conversation, wanted: Q, places: Places) -> list[StoredNode]:
    """Placed nodes of a conversation, with their positions."""
    nodes = load_placed(conversation.pk, wanted)
    for node in nodes:
        node.position = places.find_position(node.place)
    return nodes


def _find_borne(
    conversation: Conversation,
    nodes: Sequence[StoredNode],
    known: dict[uuid.UUID, StoredNode],
    places: Places,
    since: Set[uuid.UUID],
) -> dict[bytes, list[StoredNode]]:
    """The messages before these nodes by the ids that they cite or bear; `since` are those that come after these.

    Raises:
        UncertainError: where one before them cites what one of these bears: it is a ghost no longer.
    """
    of_channel = Q(workspace_id=conversation.workspace_id, channel_id=conversation.channel_id) & ~Q(pk__in=since)
    own = {name for node in nodes for name in (*node.correlation, *((node.key,) if node.key else ()))}
    if own:
        citing = Message.objects.filter(of_channel, conversation=conversation, parent_key__in=own, place__isnull=False)
        if citing.exists():
            raise UncertainError
    keys = own | {way.key for node in nodes for way in node.ways if way.key is not None}
    borne: dict[bytes, list[StoredNode]] = {}
    if not keys:
        return borne
    for node in sorted(_load(conversation, of_channel & Q(id_key__in=keys), places), key=lambda each: each.position):
        held = known.setdefault(node.id, node)
        if held.key is not None:
            borne.setdefault(held.key, []).append(held)
    return borne


def assign_tasks(conversation: Conversation, course: Course, nodes: Sequence[StoredNode]) -> None:
    """Give each placed node its task, and play the tasks.

    Raises:
        UncertainError: where the tasks that are stored do not tell.
    """
    if course.resumed is not None:
        _resume_tasks(conversation, course, course.resumed, nodes)
    course.membership.assign(nodes)
    course.playing.play(nodes)


def _resume_tasks(conversation: Conversation, course: Course, start: Start, nodes: Sequence[StoredNode]) -> None:
    """Load the tasks that these nodes may belong to, as they were played."""
    written = start.written
    named = {uuid.UUID(hex=task) for _, task in Standing.list_named(written["standing"])}
    above = [node.above for node in nodes if node.above is not None and node.above.task_id is not None]
    ids = named | {node.task_id for node in above if node.task_id is not None}
    ids |= {make_task_id(conversation.pk, key) for key in _find_keys(nodes)}
    awaited = {bytes.fromhex(key): (native_id, state) for key, native_id, state in written["awaited"]}
    tasks = load_tasks(conversation.pk, ids, awaited, changed=start.tasks, border=start.border)
    if not named <= tasks.by_id.keys() or any(node.task_id not in tasks.by_id for node in above):
        raise UncertainError
    for node in above:
        node.of_task = tasks.by_id[node.task_id] if node.task_id is not None else None
    course.membership = Membership(
        conversation.pk, asked=Standing.read(written["standing"], course.known, tasks.by_id), known=tasks.by_key
    )
    course.playing = Playing(tasks.plays)
    course.before = Before(
        row=start.row,
        changed=start.tasks,
        border=start.border,
        counts=Counts.read(written["counts"]),
        standings={play: play.standing for play in tasks.plays.values()},
        missing=_find_missing(conversation, nodes, course.since),
    )


def _find_keys(nodes: Iterable[StoredNode]) -> set[bytes]:
    """The keys of the tasks that these nodes name, as an id or by what they answer."""
    keys = set()
    for node in nodes:
        keys |= {key_of_id(node.run, name) for name in (node.task, node.work.within) if name}
        if node.cited is not None:
            keys.add(make_key("cited", node.cited.hex()))
    return keys


def _find_missing(conversation: Conversation, nodes: Sequence[StoredNode], since: Set[uuid.UUID]) -> frozenset[bytes]:
    """Which of the messages that these nodes miss were missing before them."""
    ghosts = {node.ghost for node in nodes if node.ghost is not None}
    if not ghosts:
        return frozenset()
    rows = Message.objects.shown().filter(
        workspace_id=conversation.workspace_id,
        channel_id=conversation.channel_id,
        conversation=conversation,
        parent_key__in=ghosts,
        parent__isnull=True,
        place__isnull=False,
    )
    rows = rows.exclude(pk__in=since)
    rows = rows.exclude(parent_basis="").exclude(parent_why__contains=SEVERAL)
    return frozenset(bytes(key) for key in rows.values_list("parent_key", flat=True) if key)
