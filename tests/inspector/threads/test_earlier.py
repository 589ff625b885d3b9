"""What is carried of earlier messages: the latest of each kind, and never an answer that an older one would change."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from inspector.threads.placing import earlier
from inspector.threads.placing.earlier import Earlier
from inspector.threads.placing.placer import Node
from inspector.threads.uncertainty import UncertainError

TO_ME, OF_OTHER, OPEN = "latest-to-me", "latest-of-other", "latest-unanswered-of-other"


def make_node(position: int, sender: str, *receivers: str, **more: Any) -> Node:
    """A node of a turn-counting dialect where it has a turn."""
    given: dict[str, Any] = {"dialect": "nslip" if "turn" in more else "agent_lingua", "key": None, "correlation": ()}
    given |= {"task": None, "turn": None, "ways": (), **more}
    names = uuid.UUID(int=position + 1), uuid.UUID(int=position + 1)
    return Node(*names, part=1, rank=position, sender=sender, receivers=receivers, position=position, **given)


def carry(monkeypatch: pytest.MonkeyPatch, *nodes: Node, most: int = 1) -> Earlier:
    """What is known after these messages, written and read again, no more than so many of a kind."""
    monkeypatch.setattr(earlier, "MOST_CARRIED", most)
    held = Earlier(frozenset({TO_ME, OF_OTHER, OPEN}))
    for node in nodes:
        held.add(node)
    return Earlier.read(json.loads(json.dumps(held.write())), {node.id: node for node in nodes})


def position_of(found: Node | None) -> int | None:
    return None if found is None else found.position


def test_a_turn_beside_it_does_not_stand_for_an_earlier_one_that_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    held = carry(
        monkeypatch,
        make_node(0, "ada", "bob", turn=1, task="build"),
        make_node(1, "ada", "bob", turn=2, task="ship"),
    )
    held.add(make_node(2, "ada", "bob", turn=3, task="build"))
    with pytest.raises(UncertainError):
        held.find(make_node(3, "bob", "ada", turn=3, task="build"), TO_ME)
    assert position_of(held.find(make_node(4, "bob", "ada", turn=4, task="build"), TO_ME)) == 2


def test_who_bears_an_id_as_its_own_does_not_stand_for_one_named_by_it_that_was_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = make_node(0, "ada", key=b"p", correlation=(b"p",)), make_node(1, "bob", correlation=(b"p",))
    held = carry(monkeypatch, first, second, make_node(2, "cid", correlation=(b"q",)))
    assert not held.knows(b"p")
    held.add_bearer(first, (b"p",))
    with pytest.raises(UncertainError):
        held.find_correlated(make_node(3, "dee"), b"p")
    held.add(make_node(4, "cid", correlation=(b"p",)))
    assert position_of(held.find_correlated(make_node(5, "dee"), b"p")) == 4
    with pytest.raises(UncertainError):
        held.find_correlated(make_node(6, "cid"), b"p")


def test_an_older_word_to_one_group_does_not_go_before_a_later_one_to_another_that_was_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = (make_node(0, "bob", "ada"), make_node(1, "cid"), make_node(2, "ada", "ada"))
    whole = carry(monkeypatch, *nodes, most=9)
    asking = make_node(3, "ada")
    assert position_of(whole.find(asking, OF_OTHER)) == 1
    with pytest.raises(UncertainError):
        carry(monkeypatch, *nodes).find(asking, OF_OTHER)


def test_what_was_said_between_two_needs_nothing_that_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    held = carry(monkeypatch, *(make_node(at, "ada", f"bob{at}") for at in range(4)), most=2)
    for whom in (OF_OTHER, OPEN):
        assert position_of(held.find(make_node(5, "bob3", "ada"), whom)) == 3
        with pytest.raises(UncertainError):
            held.find(make_node(5, "bob0", "ada"), whom)
