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
from ..placing.cuts import Cuts
from ..placing.earlier import Earlier
from ..placing.nodes import StoredNode, load_placed
from ..placing.numbering import load_places
from ..placing.placer import Placed, find_asked
from ..placing.places import BEYOND, BlockSize, Places
from ..placing.runs import Runs
from ..placing.several import SEVERAL
from ..tasks.found import key_of_id, make_key, make_task_id
from ..tasks.memberships import Membership
from ..tasks.plays import Playing
from ..tasks.resuming import load_tasks
from ..tasks.standing import Standing
from ..telling.carried import CarriedContext
from ..uncertainty import UncertainError
from .carries import Start, Written
from .counts import Counts
from .stretches import Making, begin_stretches, resume_stretches
from .summing import Before


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
    # The stretches of a long conversation, as they come to be.
    making: Making | None = None

    def cut(self, nodes: Sequence[StoredNode]) -> Cuts | None:
        """Where these messages, in order key, are to be cut; they are about to be placed."""
        return self.making.cut(nodes) if self.making is not None else None

    @property
    def cuts(self) -> Cuts | None:
        """Where they were cut."""
        return self.making.cuts if self.making is not None else None

    def write_read(self) -> str | None:
        """What its last stretch has read, as text; None where it has no stretches."""
        return self.making.write_running() if self.making is not None else None


def begin(conversation: Conversation, nodes: Sequence[StoredNode], *, is_long: bool = False) -> Course:
    """The course of a conversation that is settled from its beginning; a long one is cut into stretches."""
    return Course(
        placed=Placed(Earlier(find_asked(nodes))),
        spoken={},
        context=CarriedContext(),
        membership=Membership(conversation.pk),
        playing=Playing(),
        making=begin_stretches() if is_long else None,
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
    if any(place < start.border for place in find_citing(conversation, nodes)):
        # It is a ghost no longer.
        raise UncertainError
    course = go_on(conversation, written, start.border, nodes, places=places, since=since, changed=start.tasks)
    course.placed.unmet = {bytes.fromhex(name) for name in written["unmet"]}
    course.placed.is_cut = written["is_cut"]
    course.resumed = start
    course.making = resume_stretches(conversation, written, places)
    return course


def go_on(
    conversation: Conversation,
    written: Written,
    border: bytes,
    nodes: Sequence[StoredNode],
    *,
    places: Places,
    since: Set[uuid.UUID],
    changed: Mapping[uuid.UUID, Task],
    moved: int = 0,
    until: bytes = BEYOND,
    hidden: Set[uuid.UUID] = frozenset(),
) -> Course:
    """The course of a conversation that is gone on with; nothing of that is checked.

    Args:
        conversation: its row.
        written: what is known where it is gone on from.
        border: the place that these nodes have at least.
        nodes: those that come now.
        places: the directory up to there.
        since: the messages that are settled from there on, by id, and stand there no more.
        changed: the tasks that have changed since, as they stood there.
        moved: by how many messages more than when it was written they come later.
        until: the place that they do not reach.
        hidden: messages that are placed and were not there when these were settled.

    Raises:
        UncertainError: where it does not tell.
    """
    named = {uuid.UUID(hex=name) for name in Earlier.list_named(written["earlier"])}
    named |= {uuid.UUID(hex=name) for name, _ in Standing.list_named(written["standing"])}
    known = {node.id: node for node in _load(conversation, Q(pk__in=named), places)} if named else {}
    if len(known) != len(named):
        raise UncertainError
    apart = Q(place__lt=border) | Q(place__gte=until)
    borne = _find_borne(conversation, nodes, known, places, apart & ~Q(pk__in=hidden))
    earlier = Earlier.read(written["earlier"], known, moved=moved)

    @lru_cache(maxsize=1024)
    def is_known_task(run: int, native_id: str) -> bool:
        pk = make_task_id(conversation.pk, key_of_id(run, native_id))
        return pk in changed or Task.objects.filter(pk=pk, place__lt=border).exists()

    earlier.is_known_task = is_known_task
    placed = Placed(earlier, count=places.count, borne=borne)
    for dialect, run in written["runs"].items():
        placed.runs[dialect] = Runs.read(run)
    return Course(
        placed=placed,
        spoken=dict.fromkeys(written["spoken"]),
        context=CarriedContext.resume(written["context"], conversation.pk),
        membership=Membership(conversation.pk),
        playing=Playing(),
        known=known,
        since=since,
        blocks=places.blocks,
    )


def _load(conversation: Conversation, wanted: Q, places: Places) -> list[StoredNode]:
    """Placed nodes of a conversation, with their positions."""
    nodes = load_placed(conversation.pk, wanted)
    for node in nodes:
        node.position = places.find_position(node.place)
    return nodes


def find_citing(conversation: Conversation, nodes: Iterable[StoredNode]) -> list[bytes]:
    """The places of the messages that cite in vain what is borne by those of these nodes that are new."""
    names = _list_borne(nodes)
    if not names:
        return []
    of_channel = Q(workspace_id=conversation.workspace_id, channel_id=conversation.channel_id)
    citing = Message.objects.filter(of_channel, conversation=conversation, parent_key__in=names, place__isnull=False)
    return [bytes(place) for place in citing.values_list("place", flat=True) if place is not None]


def _find_borne(
    conversation: Conversation,
    nodes: Sequence[StoredNode],
    known: dict[uuid.UUID, StoredNode],
    places: Places,
    apart: Q,
) -> dict[bytes, list[StoredNode]]:
    """The placed messages that stand apart from these nodes by the ids that these cite, or bear where they are new."""
    keys = _list_borne(nodes) | {way.key for node in nodes for way in node.ways if way.key is not None}
    borne: dict[bytes, list[StoredNode]] = {}
    if not keys:
        return borne
    of_channel = Q(workspace_id=conversation.workspace_id, channel_id=conversation.channel_id)
    found = _load(conversation, of_channel & Q(id_key__in=keys) & apart, places)
    for node in sorted(found, key=lambda each: each.position):
        held = known.setdefault(node.id, node)
        if held.key is not None:
            borne.setdefault(held.key, []).append(held)
    return borne


def _list_borne(nodes: Iterable[StoredNode]) -> set[bytes]:
    """The ids that those of these nodes bear that have come now."""
    new = [node for node in nodes if node.is_new]
    return {name for node in new for name in (*node.correlation, *((node.key,) if node.key else ()))}


def assign_tasks(conversation: Conversation, course: Course, nodes: Sequence[StoredNode]) -> None:
    """Give each placed node its task, and play the tasks.

    Raises:
        UncertainError: where the tasks that are stored do not tell.
    """
    if course.resumed is not None:
        _resume_tasks(conversation, course, course.resumed, nodes)
    course.membership.assign(nodes, course.cuts)
    course.playing.play(nodes)


def _resume_tasks(conversation: Conversation, course: Course, start: Start, nodes: Sequence[StoredNode]) -> None:
    """Load the tasks that these nodes may belong to, as they were played."""
    written = start.written
    named = {uuid.UUID(hex=task) for _, task in Standing.list_named(written["standing"])}
    above = [node.above for node in nodes if node.above is not None and node.above.task_id is not None]
    ids = named | {node.task_id for node in above if node.task_id is not None}
    ids |= {make_task_id(conversation.pk, key) for key in find_task_keys(nodes)}
    tasks = load_tasks(conversation.pk, ids, read_awaited(written), changed=start.tasks, border=start.border)
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
        missing=find_missing(conversation, nodes, course.since),
    )


def read_awaited(written: Written) -> dict[bytes, tuple[str, str]]:
    """The tasks that no message belongs to, by key: their ids on the wire, and the states that their parts led to."""
    return {bytes.fromhex(key): (native_id, state) for key, native_id, state in written["awaited"]}


def find_task_keys(nodes: Iterable[StoredNode]) -> set[bytes]:
    """The keys of the tasks that these nodes name, as an id or by what they answer."""
    keys = set()
    for node in nodes:
        keys |= {key_of_id(node.run, name) for name in (node.task, node.work.within) if name}
        if node.cited is not None:
            keys.add(make_key("cited", node.cited.hex()))
    return keys


def find_missing(conversation: Conversation, nodes: Sequence[StoredNode], since: Set[uuid.UUID]) -> frozenset[bytes]:
    """Which of the messages that these nodes miss are missing in others too, those of `since` left out."""
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
