"""The latest of earlier messages: of anyone else, of an earlier turn, and of those that wait for an answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, TypeVar

from dialects import get_dialect

from ..reads import Key

if TYPE_CHECKING:
    from .placer import Node

Name = TypeVar("Name")
Entry = TypeVar("Entry")


def drop_answered(nodes: list[Node] | None) -> Node | None:
    """The latest that nothing answers; what has been answered stays so, and is forgotten."""
    while nodes and nodes[-1].is_answered:
        nodes.pop()
    return nodes[-1] if nodes else None


class Latest:
    """The latest message, and the latest of anyone but its sender."""

    __slots__ = ("node", "other")

    def __init__(self, node: Node | None = None, other: Node | None = None) -> None:
        self.node = node
        self.other = other

    def add(self, node: Node) -> None:
        if self.node is not None and self.node.sender != node.sender:
            self.other = self.node
        self.node = node

    def of_other(self, sender: str | None) -> Node | None:
        if self.node is None or self.node.sender != sender:
            return self.node
        return self.other


class LatestTurn:
    """The latest message, and the latest of a turn before its (`other`)."""

    __slots__ = ("node", "other")

    def __init__(self, node: Node | None = None, other: Node | None = None) -> None:
        self.node = node
        self.other = other

    def add(self, node: Node) -> None:
        if self.node is None or _turn_of(self.node) is None or _turn_of(self.node) != _turn_of(node):
            self.other = self.node
        self.node = node

    def before(self, node: Node) -> Node | None:
        """The latest before a message; where turns are counted, of an earlier turn than its own."""
        turn = _turn_of(node)
        return self.other if self.node and turn is not None and _turn_of(self.node) == turn else self.node


def _turn_of(node: Node) -> int | None:
    return node.turn if node.turn is not None and get_dialect(node.dialect).orders_by_turn else None


class Waiting:
    """Statements that wait for an answer: the latest of anyone else is found without going through them all."""

    __slots__ = ("_at", "_heap", "_of")

    def __init__(self) -> None:
        # Of each sender all that wait, and of all senders the positions (negative) of the latest as a heap.
        self._of: dict[str | None, list[Node]] = defaultdict(list)
        self._at: dict[int, Node] = {}
        self._heap: list[int] = []

    def add(self, node: Node) -> None:
        self._of[node.sender].append(node)
        self._at[-node.position] = node
        heappush(self._heap, -node.position)

    def list_all(self) -> list[Node]:
        """Those that were not forgotten yet, some of which may have been answered; in no order."""
        return [node for waiting in self._of.values() for node in waiting]

    def of_other(self, sender: str | None) -> Node | None:
        best: Node | None = None
        own: set[int] = set()
        while self._heap and best is None:
            candidate = self._at[self._heap[0]]
            waiting = self._of[candidate.sender]
            if candidate.is_answered:
                heappop(self._heap)
                latest = drop_answered(waiting)
                if latest is not None:
                    heappush(self._heap, -latest.position)
            elif candidate is not waiting[-1]:
                # It comes again when what the same sender said after it is answered.
                heappop(self._heap)
            elif candidate.sender == sender:
                own.add(heappop(self._heap))
            else:
                best = candidate
        for entry in own:
            heappush(self._heap, entry)
        return best


def renew(entries: dict[Name, Entry], name: Name, make: Callable[[], Entry]) -> Entry:
    """An entry that is about to change, as the last of all; a new one where there is none."""
    entry = entries.pop(name, None) or make()
    entries[name] = entry
    return entry


def list_held(entry: Latest | LatestTurn | Waiting | list[Node] | Node) -> list[Node]:
    """The messages that an entry of a look-up holds, of `Latest` and `LatestTurn` the latest first."""
    if isinstance(entry, (Latest, LatestTurn)):
        return [node for node in (entry.node, entry.other) if node is not None]
    if isinstance(entry, Waiting):
        return entry.list_all()
    return entry if isinstance(entry, list) else [entry]


def list_differing(kind: str, one: Mapping[Any, Any], other: Mapping[Any, Any]) -> Iterator[Key]:
    """The keys of those entries of a kind that are not the same in both: of those that wait, who still does."""
    is_waiting = kind.startswith("open")
    for name in one.keys() | other.keys():
        held, others = (list_held(entries[name]) if name in entries else [] for entries in (one, other))
        if is_waiting:
            is_same = {node.id for node in held if not node.is_answered} == {
                node.id for node in others if not node.is_answered
            }
        else:
            is_same = [node.id for node in held] == [node.id for node in others]
        if not is_same:
            yield (kind, *name) if isinstance(name, tuple) else (kind, name)
