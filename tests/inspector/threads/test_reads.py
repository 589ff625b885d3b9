"""A stretch that has read nothing of what a late message changes comes out as it did: a law, gone through by chance."""

from __future__ import annotations

import json
import os
import random
import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest

from inspector.threads import reads as reading
from inspector.threads.placing import earlier, runs
from inspector.threads.placing.cuts import Cut, Cuts
from inspector.threads.placing.earlier import Earlier
from inspector.threads.placing.links import Work
from inspector.threads.placing.nodes import StoredNode
from inspector.threads.placing.placer import Node, Placed, find_asked, place
from inspector.threads.placing.runs import Runs
from inspector.threads.reads import Border, Reads
from inspector.threads.tasks import asked
from inspector.threads.tasks import standing as standings
from inspector.threads.tasks.found import Found
from inspector.threads.tasks.memberships import Membership, list_moved
from inspector.threads.tasks.standing import Standing
from inspector.threads.uncertainty import UncertainError

from .test_placing_appended import babble_nodes, nowhere

# SEEDS=100 goes through two thousand logs.
BLOCKS, BLOCK, LINES, SPACING = int(os.environ.get("SEEDS", "3")), 20, 80, 6
CONVERSATION = uuid.UUID(int=0)
_ASKING = ("request", "delegate", "query", "propose", "subscribe")
_ACTS = (*_ASKING, "request", "query", "acknowledge", "progress", "done", "failure", "reject", "cancel", "inform", None)


def babble_stored(chance: random.Random, count: int) -> list[StoredNode]:
    """As `babble_nodes`, with what tasks see of messages."""
    nodes = []
    begun: set[str | None] = set()
    has_tasks = chance.random() < 0.5
    for node in babble_nodes(chance, count):
        said = {each.name: getattr(node, each.name) for each in fields(Node)}
        said["task"] = node.task if has_tasks else None
        within = f"t{chance.randrange(4)}" if chance.random() < 0.1 else ""
        work = Work(within=within, is_retry=chance.random() < 0.15, has_result=chance.random() < 0.2)
        # What is said of a task before anybody asks for it makes everything uncertain.
        act = chance.choice(_ACTS if not has_tasks or node.task in begun or chance.random() < 0.03 else _ASKING)
        begun.add(node.task)
        nodes.append(StoredNode(**said, performative=act, is_retryable=chance.random() < 0.5, work=work))
    return nodes


def show(node: StoredNode) -> tuple[object, ...]:
    """What settling decides of a message, but for its position."""
    task = node.of_task.key if node.of_task is not None else None
    return (node.id, node.run, node.parent, node.cited, node.ghost, node.basis, node.why, task, node.link)


def name_place(position: int) -> bytes:
    return position.to_bytes(4)


@dataclass
class Whole:
    """A conversation that was settled from its beginning: its nodes in order, and the stretches that this left."""

    nodes: list[StoredNode]
    membership: Membership
    cuts: Cuts
    digests: list[dict[bytes, set[bytes]]]


def settle_whole(nodes: Sequence[StoredNode]) -> Whole:
    copies = [replace(node) for node in nodes]
    cuts = Cuts(range(3, len(nodes)), Reads(0), spacing=SPACING)
    placed = place(copies, nowhere, Placed(Earlier(find_asked(copies))), cuts)
    membership = Membership(CONVERSATION)
    membership.assign(placed, cuts)
    borders = [Border(0, b""), *(Border(cut.position, name_place(cut.position)) for cut in cuts.made)]
    digests = []
    for at, each in enumerate([cuts.reads, *(cut.reads for cut in cuts.made)]):
        written = reading.write_digests(each.list_digests(borders[: at + 1]))
        digests.append(reading.read_digests(written))
    return Whole(placed, membership, cuts, digests)


def settle_plainly(nodes: Sequence[StoredNode]) -> tuple[list[StoredNode], Membership]:
    placed = place([replace(node) for node in nodes], nowhere)
    membership = Membership(CONVERSATION)
    membership.assign(placed)
    return placed, membership


@dataclass
class Run:
    """Some messages of a conversation settled from a cut before them."""

    placed: Placed
    membership: Membership
    nodes: list[StoredNode]
    reads: Reads


def settle_from(
    cut: Cut | None,
    nodes: Sequence[StoredNode],
    among: Sequence[StoredNode],
    end: int,
    names: set[bytes],
    late: int = 0,
    coming: frozenset[uuid.UUID] = frozenset(),
) -> Run:
    """Settle messages from what is known at a cut.

    Args:
        cut: the cut, None for the beginning.
        nodes: the messages, not placed.
        among: all messages as they were placed, those before the cut and those after the messages.
        end: the position among these of the first that comes after the messages.
        names: the keys for which bearers are looked up.
        late: so many messages have come in before the cut since it was made.
        coming: those of the messages that had not come when the others were settled.

    Raises:
        UncertainError: where that does not tell.
    """
    start = cut.position + late if cut is not None else 0
    before = {node.id: replace(node, above=None, is_answered=False) for node in among[:start]}
    after = [replace(node, above=None) for node in among[end:]]
    written = json.loads(json.dumps([cut.placed, cut.assigned])) if cut is not None else None
    copies = [replace(node) for node in nodes]
    cuts = Cuts((), Reads(start))
    tasks: dict[bytes, Found] = {}
    if written is None:
        placed, standing = Placed(Earlier(find_asked(among))), None
    else:
        held = Earlier.read(written[0]["earlier"], before, moved=late)
        known = {(node.run, node.task) for node in before.values()}
        held.is_known_task = lambda run, task: (run, task) in known
        placed = Placed(held, count=start)
        for dialect, run in written[0]["runs"].items():
            placed.runs[dialect] = Runs.read(run)
        tasks = load_tasks(among, start)
        for node in before.values():
            node.of_task = tasks[node.of_task.key] if node.of_task is not None else None
        by_id = {task.id: task for task in tasks.values()}
        if any(uuid.UUID(hex=name) not in by_id for _, name in Standing.list_named(written[1])):
            raise UncertainError
        standing = Standing.read(written[1], before, by_id)
    placed.coming = coming
    placed.borne = find_bearers(before.values(), names)
    placed.borne_later = find_bearers(after, names)
    membership = Membership(CONVERSATION, asked=standing, known=tasks)
    done = place(copies, nowhere, placed, cuts)
    known_tasks = dict(tasks)
    membership.assign(done, cuts)
    run = Run(placed, membership, done, cuts.reads)
    prove_asked(run, known_tasks, among, start, end)
    return run


def find_bearers(nodes: Any, names: set[bytes]) -> dict[bytes, list[Node]]:
    found: dict[bytes, list[Node]] = {}
    for node in nodes:
        if node.key in names:
            found.setdefault(node.key, []).append(node)
    return found


def load_tasks(among: Sequence[StoredNode], start: int) -> dict[bytes, Found]:
    """The tasks that were there at a position, as they stood there."""
    copies = copy_placed(among)
    membership = Membership(CONVERSATION)
    membership._find_requests(copies)
    membership._assign_all(copies[:start])
    before = {node.of_task for node in copies[:start]}
    wholes = {task.within for task in before if task is not None}
    tasks = {task.key: task for task in before | wholes if task is not None}
    for task in tasks.values():
        task.is_stored, task.is_awaited = task in before, task not in before
    return tasks


def copy_placed(nodes: Sequence[StoredNode]) -> list[StoredNode]:
    """Nodes as they were placed, assigned to no task."""
    copies = {node.id: replace(node, of_task=None, link="", is_assigned=False) for node in nodes}
    for node in copies.values():
        node.above = copies[node.above.id] if node.above is not None else None
    return list(copies.values())


def prove_asked(run: Run, tasks: dict[bytes, Found], among: Sequence[StoredNode], start: int, end: int) -> None:
    """No message of a run has to do with a task that was asked for after these, or that was there before it was."""
    positions = {node.id: at for at, node in enumerate(among)}
    final = {node.of_task.key: node.of_task.request for node in among if node.of_task is not None}
    nodes = [node for each in run.nodes for node in (each, each.above) if node is not None]
    for key in {node.of_task.key for node in nodes if node.of_task is not None}:
        request = final.get(key)
        if request is not None and positions[request] >= (start if key in tasks else end):
            raise UncertainError


class DifferentError(Exception):
    """A law does not hold."""


def go_through(seed: int, counted: Counter[str], *, is_thorough: bool = True) -> None:
    """Let one message of a log be late, and hold each stretch that has read nothing of it to what it comes out as.

    Raises:
        DifferentError: where one comes out otherwise.
    """
    chance = random.Random(seed)
    every = babble_stored(chance, LINES)
    late = chance.choice(every[:-1])
    nodes = [node for node in every if node is not late]
    old, new = settle_whole(nodes), settle_whole(every)
    counted["logs"] += 1
    plain, _ = settle_plainly(nodes)
    assert list(map(show, plain)) == list(map(show, old.nodes))
    cuts: list[Cut | None] = [None, *old.cuts.made]
    starts = [0, *(cut.position for cut in old.cuts.made), len(nodes)]
    at = bisect_right(starts, sum(node.rank < late.rank for node in nodes)) - 1
    last = min(at + chance.choice((1, 1, 2)), len(cuts))
    start, end = starts[at], starts[last]
    window = old.nodes[start:end]
    own = {name for name in (*late.correlation, late.key) if name}
    outside = [*old.nodes[:start], *old.nodes[end:]]
    if any(node.key in own or node.cited in own for node in outside if node.key or node.cited):
        counted["named elsewhere"] += 1
        return
    sought = reading.digest_keys(("sought", name) for name in own)
    if any(reading.sees(each, sought, b"\xff") for each in old.digests[:at]):
        counted["sought before"] += 1
        return
    originals = {node.id: node for node in every}
    before = [originals[node.id] for node in window]
    names = own | {each for node in [*window, late] for each in (node.key, *(way.key for way in node.ways)) if each}
    try:
        was = settle_from(cuts[at], before, old.nodes, end, names)
        now = settle_from(cuts[at], [*before, late], old.nodes, end, names, coming=frozenset({late.id}))
        changed = was.placed.list_differences(now.placed) | was.membership.list_differences(now.membership)
        changed |= list_moved(was.nodes, now.nodes)
    except UncertainError:
        counted["uncertain"] += 1
        return
    prove(list(map(show, was.nodes)) == list(map(show, window)), "what was there comes out as it did")
    digests = reading.digest_keys(changed)
    seen = [reading.sees(each, digests, name_place(end)) for each in old.digests[last:]]
    if any(seen):
        counted["seen"] += 1
        return
    counted["not seen"] += 1
    expected = {node.id: show(node) for node in new.nodes}
    prove([show(node) for node in now.nodes] == list(map(show, new.nodes[start : end + 1])), "the window")
    prove(all(show(node) == expected[node.id] for node in outside), "what is outside of it")
    if is_thorough:
        prove_later(old, new, originals, last, digests, counted)


def prove_later(
    old: Whole,
    new: Whole,
    originals: dict[uuid.UUID, StoredNode],
    last: int,
    digests: set[bytes],
    counted: Counter[str],
) -> None:
    """What is known at later cuts still holds, but for what has changed."""
    cuts: list[Cut | None] = [None, *old.cuts.made]
    starts = [0, *(cut.position for cut in old.cuts.made), len(old.nodes)]
    end, expected = starts[last], {node.id: show(node) for node in new.nodes}
    # In what has come out anew those that come after the late one begin later by one.
    borders = [Border(each + (each >= end), name_place(each)) for each in starts[:-1]]
    for cut, first, stop in zip(cuts[last:], starts[last:], starts[last + 1 :], strict=False):
        stretch = [originals[node.id] for node in old.nodes[first:stop]]
        names = {each for node in stretch for each in (node.key, *(way.key for way in node.ways)) if each}
        try:
            again = settle_from(cut, stretch, new.nodes, stop + 1, names, late=1)
        except UncertainError:
            continue
        if not reading.sees(again.reads.list_digests(borders), digests, name_place(end)):
            counted["stretches"] += 1
            prove([show(node) for node in again.nodes] == [expected[node.id] for node in stretch], "a later stretch")


def prove(is_so: bool, law: str) -> None:
    if not is_so:
        raise DifferentError(law)


def bound(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    for module in (earlier, runs, asked, standings):
        monkeypatch.setattr(module, "MOST_CARRIED", most)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_has_read_nothing_of_a_late_message_comes_out_as_it_did(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    counted = Counter[str]()
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        bound(monkeypatch, random.Random(seed).choice([3, 10, 400, 400, 400]))
        go_through(seed, counted)
    assert counted["not seen"] >= 3, counted
    assert counted["stretches"] >= 5, counted


# Logs in which a late message matters to a later stretch for one read alone.
_SHOWN = (
    *(("to_me", 25), ("previous", 1355), ("correlated", 29), ("borne", 301), ("said_to", 406), ("said_between", 122)),
    *(("open", 210), ("open_to", 57), ("open_between", 1043), ("latest", 48), ("asked_of", 565), ("questions", 116)),
    *(("standing", 479), ("task", 673), ("above", 1132)),
)


@pytest.mark.parametrize(("kind", "seed"), _SHOWN)
def test_a_read_that_is_not_noted_is_missed(monkeypatch: pytest.MonkeyPatch, kind: str, seed: int) -> None:
    note, note_found = Reads.note, Reads.note_found
    monkeypatch.setattr(Reads, "note", lambda self, *key: None if key[0] == kind else note(self, *key))
    monkeypatch.setattr(
        Reads, "note_found", lambda self, at, *key: None if key[0] == kind else note_found(self, at, *key)
    )
    with pytest.raises(DifferentError):
        go_through(seed, Counter(), is_thorough=False)
