"""Carries: what a settled conversation hands on to the messages that are appended to it.

Settling is a fold over the timeline. What it knows at the end is written down: of whom who was asked what, which
statements wait for an answer, which run of turns it is in, what is established. With it, messages that come after all
others are settled without reading those, at a cost that depends on them alone. Everything that is named stands in its
own row; a carry holds ids, and no more than a few hundred of a kind. Whatever it does not tell for certain
(`UncertainError`) is settled from the beginning of the conversation, and comes out the same.

A carry holds for one settled generation. A change that is more than messages added (`Conversation.whole_generation`),
a message that is late, another decoder: each of them leads to the beginning.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from django.db import connection
from django.db.models import Q

from ..models import Carry, Conversation, Message, Task
from ..placing.earlier import Earlier
from ..placing.nodes import StoredNode, load_placed
from ..placing.numbering import load_places
from ..placing.placer import Placed, find_asked
from ..placing.places import Places
from ..placing.runs import Runs
from ..placing.several import SEVERAL
from ..tasks.found import key_of_id, make_key, make_task_id
from ..tasks.memberships import Membership
from ..tasks.plays import Playing
from ..tasks.resuming import load_tasks
from ..tasks.standing import Standing
from ..telling import contexts
from ..telling.contexts import TrackedContext
from ..uncertainty import UncertainError
from .summing import Before, Counts

# The form of what is written; another one is not read, nor what another decoder wrote.
_FORM: Final = 2
# A conversation of fewer messages is settled from its beginning sooner than what it would carry is loaded.
LEAST_MESSAGES = 400
# What is larger is not carried: it would be written with every message.
MOST_BYTES: Final = 512 * 1024
# Every request in CLowl establishes one: how its task stands.
MOST_ENTRIES: Final = 2000
MOST_UNMET: Final = 400
MOST_AWAITED: Final = 200

Written = dict[str, Any]


@dataclass(slots=True)
class Course:
    """How far the settling of a conversation has come: what its nodes go on from, and what they leave.

    `resumed` is what was carried, None where the nodes are the whole of the conversation.
    """

    placed: Placed
    spoken: dict[str, None]
    context: TrackedContext
    membership: Membership
    playing: Playing
    # The placed messages that the nodes may follow or answer, by id.
    known: Mapping[uuid.UUID, StoredNode] = field(default_factory=dict)
    before: Before | None = None
    resumed: Written | None = None


def _name_version() -> str:
    return f"{_FORM} {contexts.DECODER_VERSION}"


def load_carries(conversations: Iterable[Conversation]) -> dict[uuid.UUID, Written]:
    """What these conversations carry, of those that can be gone on with, by their ids."""
    current = {
        each.pk: each.settled_generation
        for each in conversations
        if each.message_count >= LEAST_MESSAGES and each.whole_generation <= each.settled_generation
    }
    if not current:
        return {}
    found = {}
    for pk, generation, data in Carry.objects.filter(pk__in=current).values_list("pk", "generation", "data"):
        written = json.loads(bytes(data))
        if generation == current[pk] and written["version"] == _name_version():
            found[pk] = written
    return found


def begin(conversation: Conversation, nodes: Sequence[StoredNode]) -> Course:
    """The course of a conversation that is settled from its beginning."""
    return Course(
        placed=Placed(Earlier(find_asked(nodes))),
        spoken={},
        context=TrackedContext(),
        membership=Membership(conversation.pk),
        playing=Playing(),
    )


def resume(conversation: Conversation, written: Written, nodes: Sequence[StoredNode]) -> Course:
    """The course of a conversation that is gone on with.

    Args:
        conversation: its row.
        written: what it carries.
        nodes: those that were added, in order key.

    Raises:
        UncertainError: where one of them is late, or the conversation is not as it was carried.
    """
    if nodes and _key_of(nodes[0]) <= _read_key(written["last"]):
        raise UncertainError
    places = load_places(conversation)
    if places.count != written["count"] or conversation.message_count != written["count"]:
        raise UncertainError
    named = {uuid.UUID(hex=name) for name in Earlier.list_named(written["earlier"])}
    named |= {uuid.UUID(hex=name) for name, _ in Standing.list_named(written["standing"])}
    known = {node.id: node for node in _load(conversation, Q(pk__in=named), places)} if named else {}
    if len(known) != len(named):
        raise UncertainError
    borne = _find_borne(conversation, nodes, known, places)
    earlier = Earlier.read(written["earlier"], known)

    @lru_cache(maxsize=1024)
    def is_known_task(run: int, native_id: str) -> bool:
        return Task.objects.filter(pk=make_task_id(conversation.pk, key_of_id(run, native_id))).exists()

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
        context=TrackedContext.resume(written["context"]),
        membership=Membership(conversation.pk),
        playing=Playing(),
        known=known,
        resumed=written,
    )


def _load(conversation: Conversation, wanted: Q, places: Places) -> list[StoredNode]:
    """Placed nodes of a conversation, with their positions."""
    nodes = load_placed(conversation.pk, wanted)
    for node in nodes:
        node.position = places.find_position(node.place)
    return nodes


def _find_borne(
    conversation: Conversation, nodes: Sequence[StoredNode], known: dict[uuid.UUID, StoredNode], places: Places
) -> dict[bytes, list[StoredNode]]:
    """The placed messages by the ids that these nodes cite or bear.

    Raises:
        UncertainError: where one that is placed cites what one of these bears: it is a ghost no longer.
    """
    of_channel = Q(workspace_id=conversation.workspace_id, channel_id=conversation.channel_id)
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


def _resume_tasks(conversation: Conversation, course: Course, written: Written, nodes: Sequence[StoredNode]) -> None:
    """Load the tasks that these nodes may belong to, as they were played."""
    named = {uuid.UUID(hex=task) for _, task in Standing.list_named(written["standing"])}
    above = [node.above for node in nodes if node.above is not None and node.above.task_id is not None]
    ids = named | {node.task_id for node in above if node.task_id is not None}
    ids |= {make_task_id(conversation.pk, key) for key in _find_keys(nodes)}
    awaited = {bytes.fromhex(key): (native_id, state) for key, native_id, state in written["awaited"]}
    tasks = load_tasks(conversation.pk, ids, awaited)
    if not named <= tasks.by_id.keys() or any(node.task_id not in tasks.by_id for node in above):
        raise UncertainError
    for node in above:
        node.of_task = tasks.by_id[node.task_id] if node.task_id is not None else None
    course.membership = Membership(
        conversation.pk, asked=Standing.read(written["standing"], course.known, tasks.by_id), known=tasks.by_key
    )
    course.playing = Playing(tasks.plays)
    course.before = Before(
        counts=Counts.read(written["counts"]),
        standings={play: play.standing for play in tasks.plays.values()},
        missing=_find_missing(conversation, nodes),
    )


def _find_keys(nodes: Iterable[StoredNode]) -> set[bytes]:
    """The keys of the tasks that these nodes name, as an id or by what they answer."""
    keys = set()
    for node in nodes:
        keys |= {key_of_id(node.run, name) for name in (node.task, node.work.within) if name}
        if node.cited is not None:
            keys.add(make_key("cited", node.cited.hex()))
    return keys


def _find_missing(conversation: Conversation, nodes: Iterable[StoredNode]) -> frozenset[bytes]:
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
    rows = rows.exclude(parent_basis="").exclude(parent_why__contains=SEVERAL)
    return frozenset(bytes(key) for key in rows.values_list("parent_key", flat=True) if key)


def write_carries(rows: Sequence[tuple[Conversation, Course, Counts, Sequence[StoredNode]]]) -> None:
    """Write what these settled conversations carry; call inside the transaction that holds them.

    Args:
        rows: each conversation as it was loaded, how it was settled, what was counted, and its nodes.
    """
    written = [
        (conversation.pk, conversation.workspace_id, conversation.generation, data)
        for conversation, course, counts, nodes in rows
        if course.placed.count >= LEAST_MESSAGES and (data := _write(course, counts, nodes)) is not None
    ]
    if not written:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO threads_carry (conversation_id, workspace_id, generation, data)
            SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[], %s::bytea[])
            ON CONFLICT (conversation_id) DO UPDATE SET generation = excluded.generation, data = excluded.data
            """,
            [list(column) for column in zip(*written, strict=True)],
        )


def drop_carry(conversation_id: uuid.UUID) -> None:
    """Forget what a conversation carries: some of what was added to it is about to be written, and not all."""
    Carry.objects.filter(pk=conversation_id).delete()


def _write(course: Course, counts: Counts, nodes: Sequence[StoredNode]) -> bytes | None:
    """What is carried, None where it is too much."""
    placed = course.placed
    last = (
        _write_key(max(nodes, key=lambda node: node.rank))
        if nodes
        else course.resumed["last"]
        if course.resumed is not None
        else None
    )
    context = course.context.write()
    awaited = [
        [task.key.hex(), task.native_id, play.state]
        for task, play in course.playing.plays.items()
        if not play.message_count
    ]
    if last is None or len(context) > MOST_ENTRIES or len(awaited) > MOST_AWAITED:
        return None
    unmet = sorted(name.hex() for name in placed.unmet)
    # What a log says may hold what only Python's JSON hands on as it is: lone surrogates, numbers of any size.
    data = json.dumps(
        {
            "version": _name_version(),
            "count": placed.count,
            "last": last,
            "earlier": placed.earlier.write(),
            "runs": {dialect: runs.write() for dialect, runs in placed.runs.items()},
            "unmet": unmet[:MOST_UNMET],
            "is_cut": placed.is_cut or len(unmet) > MOST_UNMET,
            "spoken": list(course.spoken),
            "context": context,
            "standing": course.membership.standing.write(),
            "awaited": awaited,
            "counts": counts.write(),
        },
        separators=(",", ":"),
    ).encode()
    return data if len(data) <= MOST_BYTES else None


def _key_of(node: StoredNode) -> tuple[int, bytes, int]:
    return node.instant, node.source, node.index


def _write_key(node: StoredNode) -> list[Any]:
    return [node.instant, node.source.hex(), node.index]


def _read_key(written: Sequence[Any]) -> tuple[int, bytes, int]:
    instant, source, index = written
    return instant, bytes.fromhex(source), index
