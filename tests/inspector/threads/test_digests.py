"""The elements that the digest of a settled conversation is over: all that a reader sees, and nothing that moves."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from inspector.threads.nodes import StoredNode
from inspector.threads.summaries import Moment, list_elements

ONE, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


def make_node(pk: uuid.UUID, instant: int = 0) -> StoredNode:
    """A plain message that answers nothing."""
    node = StoredNode(
        id=pk,
        record=pk,
        part=1,
        dialect="prose",
        sender=None,
        receivers=(),
        key=None,
        correlation=(),
        task=None,
        turn=None,
        ways=(),
    )
    node.instant, node.identity, node.told_digest = instant, pk.bytes * 2, b"told".ljust(32)
    return node


def test_every_part_of_what_a_reader_sees_is_in_the_digest() -> None:
    one, other = make_node(ONE), make_node(OTHER)
    said: dict[str, Any] = {
        "instant": 5,
        "identity": bytes(32),
        "part": 2,
        "run": 9,
        "above": other,
        "parent_elsewhere": b"elsewhere",
        "cited": bytes(32),
        "ghost": bytes(32),
        "basis": "turn",
        "why": "\ud83d",
        "told_digest": bytes(32),
    }
    nodes = [one, *(replace(one, **{name: value}) for name, value in said.items())]
    nodes.append(replace(one, above=replace(other, part=2)))
    nodes.append(replace(one, basis="", why="turn\0"))
    elements = [element for node in nodes for element in list_elements([node])]
    assert len(set(elements)) == len(nodes) == len(said) + 3


def test_what_moves_when_another_comes_in_and_what_chance_gives_is_not_in_the_digest() -> None:
    one = make_node(ONE)
    by_chance = {name: uuid.UUID(int=9) for name in ("id", "record", "task_id")}
    moved = replace(one, place=b"moved", position=7, source=b"file", index=9, **by_chance)
    assert [*list_elements([moved])] == [*list_elements([one])]


def test_the_order_of_messages_of_one_time_is_in_the_digest() -> None:
    one, other, later = make_node(ONE, 5), make_node(OTHER, 5), make_node(ONE, 6)
    elements = [*list_elements([one, other, later])]
    assert set(list_elements([other, one, later])).isdisjoint(elements[:2])
    assert [*list_elements([one, later, other])] == [elements[0], elements[2], elements[1]]
    assert [*list_elements([other, later], Moment(5, 1))] == elements[1:]
