"""What a row says once a stretch of its timeline has come out otherwise is what it says of all messages summed up."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from inspector.intake.models import Door
from inspector.threads.models import Carry, Conversation
from inspector.threads.placing import places
from inspector.threads.placing.nodes import StoredNode, Timeline
from inspector.threads.placing.places import BEYOND, Places
from inspector.threads.placing.several import say_several
from inspector.threads.settling import carries, reckoning
from inspector.threads.settling.carries import read_carry
from inspector.threads.settling.counts import Counts
from inspector.threads.settling.courses import find_missing
from inspector.threads.settling.digests import list_elements
from inspector.threads.settling.summing import Before, Sum, change_sum, sum_nodes
from inspector.threads.uncertainty import UncertainError

from ..conftest import Cast, deliver, settle_all
from .babble import Babbler
from .wholes import place_whole

# WORLDS=20000 SEEDS=50 go through as many.
WORLDS, SEEDS = int(os.environ.get("WORLDS", "300")), int(os.environ.get("SEEDS", "4"))
START = datetime(2026, 11, 21, 9, tzinfo=UTC)
ACTS = ("inform", "request", "query", "done", "failure", "acknowledge", "handshake", None)
STATES = ("open", "done", "failed", "cancelled")
SUMMED = (
    *("digest", "state", "agents", "dialects", "message_count", "missing_count", "severity", "tally"),
    *("first_at", "last_at"),
)


def by_order_key(node: StoredNode) -> tuple[int, int]:
    return node.instant, node.index


class World:
    """A conversation by chance: few agents, names and times, so that most things are said of many messages."""

    def __init__(self, seed: int, *, agents: int) -> None:
        self.chance = random.Random(seed)
        self._agents = [f"agent-{number}" for number in range(agents)]
        self.is_plain = self.chance.random() < 0.3
        self.nodes: list[StoredNode] = []
        second = 0
        for _ in range(self.chance.randint(0, 40)):
            second += self.chance.choice((0, 1, 1, 3))
            self.nodes.append(self.make_node(second * 10))
        self.nodes.sort(key=by_order_key)
        for node in self.nodes:
            self.link(node, self.nodes)

    def make_node(self, second: int) -> StoredNode:
        """A message of this time."""
        chance = self.chance
        pk = uuid.UUID(int=chance.getrandbits(128))
        node = StoredNode(
            id=pk,
            record=pk,
            part=1,
            rank=0,
            dialect=chance.choice(("prose", "clowl", "nslip", "lambda")),
            sender=chance.choice([*self._agents, None]),
            receivers=tuple(chance.choices(self._agents, k=chance.choice((0, 1, 2)))),
            key=None,
            correlation=(),
            task=None,
            turn=None,
            ways=(),
        )
        node.at = START + timedelta(seconds=second)
        node.instant, node.source, node.index = second * 10**6, bytes(32), chance.randrange(10**6)
        node.identity, node.told_digest = pk.bytes * 2, chance.randbytes(32)
        node.mark = chance.randrange(6)
        # One of whose messages few are asked for or grave has its first ones and its gravest ones far apart.
        node.performative = "inform" if self.is_plain and chance.random() < 0.8 else chance.choice(ACTS)
        node.has_topic = chance.random() < (0.1 if self.is_plain else 0.5)
        node.severity = 0 if self.is_plain and chance.random() < 0.8 else chance.choice((0, 0, 1, 2, 3, 3, 4))
        return node

    def link(self, node: StoredNode, among: Sequence[StoredNode]) -> None:
        """Place a message: below another, below what is missing, or below nothing."""
        chance = self.chance
        node.above, node.cited, node.ghost, node.why, node.parent_elsewhere = None, None, None, "", b""
        node.run, node.basis = chance.choice((1, 2)), "explicit"
        roll = chance.random()
        if roll < 0.4:
            node.above, node.why = chance.choice(among), "it names its parent"
        elif roll < 0.6:
            node.cited = node.ghost = bytes([chance.randrange(4)]) * 32
            node.why = "it names its parent" if chance.random() < 0.7 else say_several("it names its parent", 3)
        elif roll < 0.7:
            node.cited, node.parent_elsewhere = bytes([9]) * 32, chance.randbytes(40)

    def find_stretch(self) -> tuple[int, int]:
        """Where a stretch begins and ends: a block of places begins there, and everything before is earlier."""
        count = len(self.nodes)
        clean = (at for at in range(count) if self.nodes[at].mark % 2 == 0)
        borders = [at for at in clean if not at or self.nodes[at - 1].instant < self.nodes[at].instant]
        start = self.chance.choice([0, 0, *borders, count])
        return start, self.chance.choice([at for at in (*borders, count) if at >= start])


@dataclass
class Change:
    """A stretch of a timeline before and after, and the whole of both."""

    old: Timeline
    new: Timeline
    start: int
    old_end: int
    new_end: int

    def list_outside(self) -> list[StoredNode]:
        """Those that are not in the stretch."""
        return [*self.new.nodes[: self.start], *self.new.nodes[self.new_end :]]


def put_in_order(nodes: list[StoredNode], chance: random.Random, start: int, end: int) -> Timeline:
    """A timeline in which some turns of the stretch stand otherwise than by their order keys; with places."""
    for rank, node in enumerate(nodes):
        node.rank = rank
    ordered = list(nodes)
    if end - start > 1 and chance.random() < 0.5:
        one, other = chance.sample(range(start, end), 2)
        ordered[one], ordered[other] = ordered[other], ordered[one]
    timeline = Timeline(ordered)
    for position, node in enumerate(ordered):
        node.position = position
    timeline.give_places()
    return timeline


def change_world(world: World, kind: str) -> Change:
    """Another state of the conversation in a stretch of it: messages added, placed or told otherwise, or anything."""
    chance = world.chance
    start, end = world.find_stretch()
    copies = {node.id: copy(node) for node in world.nodes}
    old = put_in_order(world.nodes, chance, start, end)
    for node in copies.values():
        node.above = copies[node.above.id] if node.above is not None else None
    nodes = list(copies.values())
    inner = nodes[start:end]
    first = inner[0].instant if inner else (nodes[start - 1].instant + 10**6 if start else -(10**9))
    last = nodes[end].instant - 10**6 if end < len(nodes) else 10**9
    if start == 0:
        first = -(10**9)
    for _ in range(chance.choice((0, 1, 1, 2, 5)) if first <= last else 0):
        added = world.make_node(chance.randint(first, min(last, first + 10**8)) // 10**6)
        inner.append(added)
    for node in inner:
        if node.id not in copies or (kind != "added" and chance.random() < 0.3):
            world.link(node, inner)
            node.told_digest = chance.randbytes(32)
        if node.id in copies and kind == "anything" and chance.random() < 0.2:
            other = world.make_node(0)
            for name in ("sender", "receivers", "dialect", "performative", "has_topic", "severity"):
                setattr(node, name, getattr(other, name))
    if kind == "anything" and inner and chance.random() < 0.3:
        gone = inner.pop(chance.randrange(len(inner)))
        for node in (*nodes, *inner):
            # Those that answered it are in the stretch, or it is not taken out.
            if node.above is gone and node not in inner:
                inner.append(gone)
                break
        else:
            for node in inner:
                node.above = None if node.above is gone else node.above
    inner.sort(key=by_order_key)
    changed = [*nodes[:start], *inner, *nodes[end:]]
    new = put_in_order(changed, chance, start, start + len(inner))
    outside = [*zip(old.nodes[:start], new.nodes[:start], strict=True)]
    outside += zip(old.nodes[end:], new.nodes[start + len(inner) :], strict=True)
    assert all(one.id == other.id and one.place == other.place for one, other in outside)
    return Change(old, new, start, end, start + len(inner))


def make_plays(chance: random.Random, count: int) -> list[Any]:
    """Tasks that are there and of which nothing is written."""
    return [
        SimpleNamespace(standing=(chance.random() < 0.3, chance.choice(STATES)), message_count=0) for _ in range(count)
    ]


def store(summed: Sum) -> tuple[Conversation, Counts]:
    """The row of a conversation as it would be loaded, and what is carried beside it."""
    row = Conversation(**{name: getattr(summed, name) for name in SUMMED if name != "digest"}, subject="as it was")
    return row, Counts.read(json.loads(json.dumps(summed.counts.write())))


def find_ghosts(nodes: Sequence[StoredNode]) -> frozenset[bytes]:
    return frozenset(node.ghost for node in nodes if node.ghost and "3 messages" not in node.why)


def assert_same(found: Sum, expected: Sum, before: Sum) -> None:
    for name in SUMMED:
        assert getattr(found, name) == getattr(expected, name), name
    carried, wanted = found.counts.write(), expected.counts.write()
    assert sorted(carried.pop("standings")) == sorted(wanted.pop("standings"))
    assert carried == wanted
    if found.subject_of is None:
        assert found.subject == "as it was"
        assert before.subject_of == expected.subject_of
    else:
        assert found.subject_of == expected.subject_of


@pytest.mark.parametrize(("kind", "most"), [("added", 400), ("placed", 400), ("anything", 400), ("anything", 3)])
def test_a_stretch_that_came_out_otherwise_is_reckoned_alone(
    monkeypatch: pytest.MonkeyPatch, kind: str, most: int
) -> None:
    """Where messages are only added, or placed and told otherwise, nothing is uncertain."""
    monkeypatch.setattr(places, "_SPACING", 2)
    monkeypatch.setattr(reckoning, "MOST_AGENTS", most)
    monkeypatch.setattr(reckoning, "MOST_SENDERS", min(most, 50) - 1)
    conversation, met = Conversation(), Counter[str]()
    for seed in range(WORLDS):
        world = World(seed, agents=8)
        change = change_world(world, kind)
        plays, later = (make_plays(world.chance, world.chance.randint(0, 3)) for _ in range(2))
        kept = make_plays(world.chance, 2)
        before = sum_nodes(conversation, change.old, [*plays, *kept], hidden=1)
        expected = sum_nodes(conversation, change.new, [*later, *kept], hidden=2)
        assert expected.missing_count == len(find_ghosts(change.new.nodes))
        row, counts = store(before)
        held = counts.write()
        standings = Counter(play.standing for play in later)
        standings.subtract(play.standing for play in plays)
        try:
            found = change_sum(
                row,
                counts,
                change.old.nodes[change.start : change.old_end],
                change.new.nodes[change.start : change.new_end],
                standings=standings,
                ghosts=find_ghosts(change.list_outside()),
                hidden=2,
            )
        except UncertainError:
            met["uncertain"] += 1
            assert kind == "anything", seed
        else:
            met["certain"] += 1
            assert_same(found, expected, before)
            assert (found.is_whole, found.since) == (False, BEYOND)
        assert counts.write() == held
    assert met["certain"] > WORLDS // (2 if most > 100 else 8), met


@pytest.mark.parametrize("most", [400, 3])
def test_what_is_appended_is_reckoned_alone(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(reckoning, "MOST_AGENTS", most)
    monkeypatch.setattr(reckoning, "MOST_SENDERS", min(most, 50) - 1)
    for seed in range(WORLDS):
        world = World(seed, agents=8)
        cut = world.chance.randint(0, len(world.nodes))
        whole = put_in_order(world.nodes, world.chance, 0, 0)
        expected = sum_nodes(Conversation(), whole, [], hidden=0)
        first = put_in_order(world.nodes[:cut], world.chance, 0, 0)
        before = sum_nodes(Conversation(), first, [], hidden=0)
        row, counts = store(before)
        rest = Timeline(world.nodes[cut:], blocks=first.blocks)
        rest.give_places()
        missing = find_ghosts(first.nodes)
        border = Places(first.blocks).border
        found = sum_nodes(
            Conversation(), rest, [], hidden=0, before=Before(row, {}, border, counts, {}, missing=missing)
        )
        assert_same(found, expected, before)


def sum_up(*nodes: StoredNode) -> tuple[list[StoredNode], Conversation, Counts]:
    """A timeline whose blocks hold one message each, its row and what is carried beside it."""
    for node in nodes:
        node.mark = 0
    timeline = put_in_order(list(nodes), random.Random(0), 0, 0)
    return timeline.nodes, *store(sum_nodes(Conversation(), timeline, [], hidden=0))


def change_one(nodes: list[StoredNode], row: Conversation, counts: Counts, at: int, **changed: Any) -> Sum:
    """What the row says with one message otherwise."""
    other = replace(nodes[at], **changed)
    return change_sum(row, counts, [nodes[at]], [other], standings={}, ghosts=(), hidden=0)


@pytest.fixture
def single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_SPACING", 1)


def make_nodes(**said: Sequence[Any]) -> list[StoredNode]:
    """Plain messages, a second apart."""
    world = World(1, agents=1)
    found = [world.make_node(second) for second in range(len(next(iter(said.values()))))]
    for at, node in enumerate(found):
        node.performative, node.has_topic, node.severity = "inform", False, 0
        node.dialect, node.sender = "prose", "agent-0"
        for name, values in said.items():
            setattr(node, name, values[at])
    return found


@pytest.mark.usefixtures("single")
class TestWhatIsNotKnown:
    """One message of several is otherwise, and what is first or gravest then may be any of those that are not seen."""

    def test_which_warning_is_next_where_one_of_the_gravest_is_none_any_more(self) -> None:
        nodes, row, counts = sum_up(*make_nodes(severity=[3, 3, 3, 3, 0]))
        with pytest.raises(UncertainError):
            change_one(nodes, row, counts, 1, severity=0)

    def test_a_warning_that_is_none_any_more_where_there_are_but_three(self) -> None:
        nodes, row, counts = sum_up(*make_nodes(severity=[3, 0, 4, 3, 0]))
        found = change_one(nodes, row, counts, 2, severity=0)
        assert (found.severity, list(found.counts.severities.values())) == (3, [3, 3])

    def test_an_error_that_is_a_warning_now_and_still_stands_before_all_others(self) -> None:
        nodes, row, counts = sum_up(*make_nodes(severity=[4, 3, 3, 3, 0]))
        found = change_one(nodes, row, counts, 0, severity=3)
        assert found.severity == 3
        assert [*found.counts.severities] == [node.place.hex() for node in nodes[:3]]

    def test_an_error_that_is_a_warning_now_behind_others(self) -> None:
        nodes, row, counts = sum_up(*make_nodes(severity=[3, 3, 3, 3, 4]))
        with pytest.raises(UncertainError):
            change_one(nodes, row, counts, 4, severity=3)

    def test_who_asks_first_where_the_first_does_not_ask_any_more(self) -> None:
        nodes, row, counts = sum_up(*make_nodes(performative=["inform", "request", "request"]))
        with pytest.raises(UncertainError):
            change_one(nodes, row, counts, 1, performative="inform")
        assert change_one(nodes, row, counts, 2, performative="inform").tally == row.tally.replace(
            '"asked_count":2', '"asked_count":1'
        )

    def test_what_it_is_about_where_that_is_not_said_any_more(self) -> None:
        nodes, row, counts = sum_up(*make_nodes(has_topic=[False, True, True]))
        with pytest.raises(UncertainError):
            change_one(nodes, row, counts, 1, has_topic=False)
        assert change_one(nodes, row, counts, 2, has_topic=False).subject_of is None
        assert change_one(nodes, row, counts, 2, performative="query").subject_of == nodes[2].id
        assert change_one(nodes, row, counts, 0, has_topic=True).subject_of == nodes[0].id

    def test_an_agent_who_is_not_where_it_appeared_first(self) -> None:
        nodes, row, counts = sum_up(*make_nodes(sender=["ada", "bob", "bob"], receivers=[(), (), ()]))
        with pytest.raises(UncertainError):
            change_one(nodes, row, counts, 1, sender="ada")
        assert change_one(nodes, row, counts, 2, sender="ada").agents == ["ada", "bob"]

    def test_where_the_agents_appear_first_of_whom_that_is_not_carried(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reckoning, "MOST_SENDERS", 1)
        monkeypatch.setattr(reckoning, "MOST_AGENTS", 2)
        nodes, row, counts = sum_up(*make_nodes(sender=["ada"] * 3, receivers=[("bob", "cid"), (), ("cid",)]))
        assert row.agents == ["ada", "bob", "cid"]
        with pytest.raises(UncertainError):
            change_one(nodes, row, counts, 0, receivers=("bob", "dee"))
        assert change_one(nodes, row, counts, 2, severity=1).agents == row.agents

    def test_when_it_ended_where_its_last_message_is_taken_out_alone(self) -> None:
        nodes, row, counts = sum_up(*make_nodes(receivers=[(), (), ()]))
        found = change_sum(row, counts, nodes[:2], nodes[1:2], standings={}, ghosts=(), hidden=0)
        assert (found.first_at, found.last_at) == (nodes[1].at, nodes[2].at)
        found = change_sum(row, counts, nodes[1:], nodes[1:2], standings={}, ghosts=(), hidden=0)
        assert (found.first_at, found.last_at) == (nodes[0].at, nodes[1].at)
        with pytest.raises(UncertainError):
            change_sum(row, counts, nodes[2:], [], standings={}, ghosts=(), hidden=0)

    def test_messages_that_are_not_in_it(self) -> None:
        nodes, row, counts = sum_up(*make_nodes(severity=[0, 0, 0]))
        stranger = replace(nodes[1], severity=2)
        with pytest.raises(UncertainError):
            change_sum(row, counts, [stranger], [nodes[1]], standings={}, ghosts=(), hidden=0)


def describe(node: StoredNode) -> tuple[object, ...]:
    """Everything of a message that sums look at."""
    return (
        (node.id, node.place, node.dialect, node.sender, node.receivers, node.performative, node.has_topic),
        (node.severity, node.ghost, node.why, next(list_elements([node]))),
    )


@pytest.mark.long(seconds=2)
@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(SEEDS))
def test_one_line_that_is_late_is_reckoned_by_the_stretch_that_it_changes(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(carries, "LEAST_MESSAGES", 1)
    monkeypatch.setattr(places, "_SPACING", 4)
    chance = random.Random(seed)
    lines = [
        json.dumps({**json.loads(line), "conversation": "mixed"}).encode() + b"\n"
        for line in Babbler(seed, ids=40).babble(80)
    ]
    late = lines.pop(chance.randrange(4, 60))
    deliver(cast, *lines, door=Door.API)
    settle_all()
    row, counts = load_summed()
    old, course = place_whole(row)
    before = Counter(play.standing for play in course.playing.plays.values() if play.standing)
    deliver(cast, late, door=Door.API)
    settle_all()
    settled, expected = load_summed()
    new, course = place_whole(settled)
    standings = Counter(play.standing for play in course.playing.plays.values() if play.standing)
    standings.subtract(before)
    start, end = find_stretch(old.nodes, new.nodes)
    gone, come = old.nodes[start : len(old.nodes) - end], new.nodes[start : len(new.nodes) - end]
    ghosts = find_missing(settled, [*gone, *come], since={node.id for node in (*gone, *come)})
    found = change_sum(row, counts, gone, come, standings=standings, ghosts=ghosts, hidden=0)
    assert found.digest == bytes(settled.settled_digest or b"")
    for name in SUMMED[1:]:
        assert getattr(found, name) == getattr(settled, name), name
    carried, wanted = found.counts.write(), expected.write()
    assert sorted(carried.pop("standings")) == sorted(wanted.pop("standings"))
    assert carried == wanted


def load_summed() -> tuple[Conversation, Counts]:
    conversation = Conversation.objects.get(native_id="mixed")
    carry = Carry.objects.get(conversation=conversation, generation=conversation.settled_generation)
    written = read_carry(carry.data)
    assert written is not None
    return conversation, Counts.read(written["counts"])


def find_stretch(old: Sequence[StoredNode], new: Sequence[StoredNode]) -> tuple[int, int]:
    """How many messages before and after it are the same, and differ from it in time."""
    start, end = 0, 0
    while start < min(len(old), len(new)) and describe(old[start]) == describe(new[start]):
        start += 1
    while end < min(len(old), len(new)) - start and describe(old[-1 - end]) == describe(new[-1 - end]):
        end += 1
    return start, end
