"""Placing what is appended from what is carried is placing all of it: a law of pure functions, gone through by chance.

`test_resuming` holds the whole of settling to it; here many more cases are tried in the same time.
"""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from inspector.threads.placing import earlier, runs
from inspector.threads.placing.earlier import Earlier
from inspector.threads.placing.keys import key_of_id
from inspector.threads.placing.links import Way
from inspector.threads.placing.placer import Citation, Elsewhere, Node, Placed, find_asked, place
from inspector.threads.placing.runs import Runs
from inspector.threads.uncertainty import UncertainError

# SEEDS=100 goes through two thousand logs.
BLOCKS, BLOCK, LINES = int(os.environ.get("SEEDS", "3")), 20, 70
_DIALECTS = ("nslip", "agent_lingua", "lambda_lang", "clowl", "prose")
_TURN, _PREVIOUS = Way("latest-to-me", "turn", "by its turn"), Way("previous", "adjacency", "follows")


def babble_nodes(chance: random.Random, count: int) -> list[Node]:
    """Messages of one conversation in their order, that name, answer and follow one another by chance."""
    agents = [f"a{number}" for number in range(chance.choice([2, 3, 6]))]
    handles, tasks = chance.choice([2, 4, 12]), chance.choice([1, 3, 8])
    spoken = chance.choice([*((name,) for name in _DIALECTS[:4]), _DIALECTS])
    nodes, turn = [], 0

    def name_handle(more: int = 0) -> bytes:
        return key_of_id(f"h{chance.randrange(handles + more)}")

    for at in range(count):
        dialect, roll = chance.choice(spoken), chance.random()
        key = key_of_id(f"m{at}") if roll < 0.6 else name_handle() if roll < 0.63 else None
        names = [*([name_handle()] if chance.random() < 0.3 else []), *([key] if key else [])]
        said: dict[str, Any] = {"turn": None, "ways": ()}
        if dialect == "nslip":
            turn = chance.randint(0, 3) if chance.random() < 0.04 else turn + chance.choice([0, 1, 1, 1])
            told = chance.choice([turn] * 9 + [max(0, turn - chance.randint(0, 3)), None])
            said = {"turn": told, "ways": (*([_TURN] if chance.random() < 0.7 else []), _PREVIOUS)}
            said["said"] = key_of_id(f"{told} {chance.choice([0, 0, at])}")
        else:
            roll = chance.random()
            cited = key_of_id(f"m{chance.randrange(max(0, at - 8), at + 3)}") if roll < 0.2 else None
            cited = key_of_id("lost") if 0.2 <= roll < 0.25 else name_handle() if 0.25 <= roll < 0.3 else cited
            said["ways"] = (Way("message-id", "explicit", "it names it", cited),) if cited else ()
            correlated = Way("correlation-id", "correlation", "it carries an id", name_handle(more=2))
            if dialect in ("agent_lingua", "lambda_lang") and chance.random() < 0.5:
                whom = "latest-unanswered-of-other" if dialect == "agent_lingua" else "latest-of-other"
                by_turn = Way(whom, "turn", "by its turn")
                said["ways"] += (correlated, by_turn) if chance.random() < 0.5 else (by_turn,)
            elif dialect == "clowl" and not cited:
                said["ways"] = (_TURN, _PREVIOUS) if chance.random() < 0.6 else (_PREVIOUS,)
        nodes.append(
            Node(
                id=uuid.UUID(int=at + 1),
                record=uuid.UUID(int=at + 1),
                part=1,
                rank=at,
                dialect=dialect,
                sender=chance.choice(agents),
                receivers=tuple(chance.sample(agents, chance.choice([0, 1, 1, 1, 2]))),
                key=key,
                correlation=tuple(dict.fromkeys(names)),
                task=f"t{chance.randrange(tasks)}" if chance.random() < 0.5 else None,
                is_statement=chance.random() < 0.8,
                **said,
            )
        )
    return nodes


def nowhere(citations: object) -> dict[Citation, Elsewhere]:
    return {}


def show(node: Node) -> tuple[object, ...]:
    return (node.position, node.run, node.parent, node.cited, node.ghost, node.basis, node.why)


def resume(carried: dict[str, Any], placed: Sequence[Node], nodes: Sequence[Node]) -> Placed:
    """As `carries.resume` does, from messages that are at hand and not in the database."""
    known = {node.id: replace(node, above=None, is_answered=False) for node in placed}
    own = {name for node in nodes for name in (*node.correlation, *((node.key,) if node.key else ()))}
    if any(node.cited in own for node in placed if node.cited):
        raise UncertainError
    borne: dict[bytes, list[Node]] = {}
    for node in known.values():
        if node.key in own | {way.key for node in nodes for way in node.ways}:
            borne.setdefault(node.key or b"", []).append(node)
    held = Earlier.read(carried["earlier"], known)
    tasks = {(node.run, node.task) for node in placed}
    held.is_known_task = lambda run, task: (run, task) in tasks
    unmet = set(map(bytes.fromhex, carried["unmet"]))
    course = Placed(held, count=len(placed), borne=borne, unmet=unmet)
    for dialect, run in carried["runs"].items():
        course.runs[dialect] = Runs.read(run)
    return course


@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_is_appended_is_placed_as_all_of_it_is(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    resumed = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        chance = random.Random(seed)
        for module in (earlier, runs):
            monkeypatch.setattr(module, "MOST_CARRIED", chance.choice([1, 2, 3, 5, 10, 400]))
        every, end = babble_nodes(chance, LINES), 0
        placed: list[Node] = []
        carried: dict[str, Any] | None = None
        while end < len(every):
            start, end = end, end + chance.randint(1, 7)
            whole = Placed(Earlier(find_asked(every[:end])))
            expected = place([replace(node) for node in every[:end]], nowhere, whole)
            added = [replace(node) for node in every[start:end]]
            try:
                course = resume(carried, placed, added) if carried is not None else Placed(Earlier(find_asked(added)))
                placed = [*placed, *place(added, nowhere, course)]
                resumed += carried is not None
            except UncertainError:
                course, placed = whole, expected
            assert [show(node) for node in placed] == [show(node) for node in expected], f"seed {seed}"
            written = {
                "earlier": course.earlier.write(),
                "runs": {dialect: counted.write() for dialect, counted in course.runs.items()},
                "unmet": [name.hex() for name in course.unmet],
            }
            carried = json.loads(json.dumps(written))
    assert resumed > 20
