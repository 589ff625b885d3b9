"""Earlier messages of a conversation as an answer looks for them: by turn, by speaker, by what waits for an answer.

Every look-up takes the same time however many speak and however long the conversation is. Where a message says to
whom it speaks, the other party is whoever it speaks to; else anyone else, first of all who spoke to its sender.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from dialects import get_dialect

if TYPE_CHECKING:
    from .placer import Node

# What stands for nobody in particular among the receivers.
_ANYONE = ""


def is_answer(node: Node) -> bool:
    """Whether it is a message that answers by its kind, and no statement: one with a way that is no mere sequence."""
    return any(way.basis == "turn" or way.basis == "correlation" for way in node.ways)


class Earlier:
    """The messages before the one that is being placed.

    Args:
        asked: which questions (`Reply.whom`) will be put; what answers no other is not kept.
    """

    def __init__(self, asked: Set[str]) -> None:
        self._asks_latest = "latest-of-other" in asked
        self._asks_open = "latest-unanswered-of-other" in asked
        self._correlated: dict[bytes, _Latest] = defaultdict(_Latest)
        # By receiver, run and task, and by dialect and run: the latest, and the latest of an earlier turn.
        self._to_me: dict[tuple[str, int, str | None], _LatestTurn] = defaultdict(_LatestTurn)
        self._previous: dict[tuple[str, int], _LatestTurn] = defaultdict(_LatestTurn)
        self._said = _Latest()
        self._said_to: dict[str, _Latest] = defaultdict(_Latest)
        self._said_between: dict[tuple[str | None, str], Node] = {}
        # Statements that wait for an answer, of each dialect by itself.
        self._open: dict[str, _Waiting] = defaultdict(_Waiting)
        self._open_to: dict[tuple[str, str], _Waiting] = defaultdict(_Waiting)
        self._open_between: dict[tuple[str, str | None, str], list[Node]] = defaultdict(list)

    def add(self, node: Node) -> None:
        """Let a message be earlier than those that are asked for from here on; its place is known."""
        for receiver in node.receivers:
            self._to_me[receiver, node.run, node.task].add(node)
        self._previous[node.dialect, node.run].add(node)
        receivers = node.receivers or (_ANYONE,)
        if self._asks_latest:
            self._said.add(node)
            for receiver in receivers:
                self._said_to[receiver].add(node)
                self._said_between[node.sender, receiver] = node
        if is_answer(node):
            return
        for name in node.correlation:
            self._correlated[name].add(node)
        if self._asks_open and node.is_statement:
            self._open[node.dialect].add(node)
            for receiver in receivers:
                self._open_to[node.dialect, receiver].add(node)
                self._open_between[node.dialect, node.sender, receiver].append(node)

    def find(self, node: Node, whom: str) -> Node | None:
        """The earlier message that a dialect's `Reply.whom` means, other than by an id."""
        if whom == "latest-to-me":
            found = self._to_me.get((node.sender, node.run, node.task)) if node.sender else None
            return found.before(node) if found else None
        if whom == "latest-of-other":
            return self._find_latest(node)
        if whom == "latest-unanswered-of-other":
            return self._find_unanswered(node)
        found = self._previous.get((node.dialect, node.run))
        return found.before(node) if found else None

    def find_correlated(self, node: Node, name: bytes) -> Node | None:
        """The latest statement of anyone else that bears an id, else its sender's own."""
        found = self._correlated.get(name)
        return (found.of_other(node.sender) or found.node) if found else None

    def _find_latest(self, node: Node) -> Node | None:
        me = node.sender
        if not me:
            return None
        told = (self._said_between.get(pair) for other in node.receivers if other != me for pair in _pairs(other, me))
        groups = (self._said_to.get(receiver) for receiver in (me, _ANYONE))
        return _latest(told) or _latest(group.of_other(me) for group in groups if group) or self._said.of_other(me)

    def _find_unanswered(self, node: Node) -> Node | None:
        me, dialect = node.sender, node.dialect
        if not me:
            return None
        told = (
            _drop_answered(self._open_between.get((dialect, *pair)))
            for other in node.receivers
            if other != me
            for pair in _pairs(other, me)
        )
        groups = (self._open_to.get((dialect, receiver)) for receiver in (me, _ANYONE))
        everyone = self._open.get(dialect)
        return (
            _latest(told)
            or _latest(group.of_other(me) for group in groups if group)
            or (everyone.of_other(me) if everyone else None)
        )


def _pairs(other: str, me: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (other, me), (other, _ANYONE)


def _latest(nodes: Iterable[Node | None]) -> Node | None:
    return max((node for node in nodes if node is not None), key=lambda node: node.position, default=None)


def _drop_answered(nodes: list[Node] | None) -> Node | None:
    """The latest that nothing answers; what has been answered stays so, and is forgotten."""
    while nodes and nodes[-1].is_answered:
        nodes.pop()
    return nodes[-1] if nodes else None


class _Latest:
    """The latest message, and the latest of anyone but its sender."""

    __slots__ = ("_other", "node")

    def __init__(self) -> None:
        self.node: Node | None = None
        self._other: Node | None = None

    def add(self, node: Node) -> None:
        if self.node is not None and self.node.sender != node.sender:
            self._other = self.node
        self.node = node

    def of_other(self, sender: str | None) -> Node | None:
        if self.node is None or self.node.sender != sender:
            return self.node
        return self._other


class _LatestTurn:
    """The latest message, and the latest of a turn before its."""

    __slots__ = ("_before", "_node")

    def __init__(self) -> None:
        self._node: Node | None = None
        self._before: Node | None = None

    def add(self, node: Node) -> None:
        if self._node is None or _turn_of(self._node) is None or _turn_of(self._node) != _turn_of(node):
            self._before = self._node
        self._node = node

    def before(self, node: Node) -> Node | None:
        """The latest before a message; where turns are counted, of an earlier turn than its own."""
        turn = _turn_of(node)
        return self._before if self._node and turn is not None and _turn_of(self._node) == turn else self._node


def _turn_of(node: Node) -> int | None:
    return node.turn if node.turn is not None and get_dialect(node.dialect).orders_by_turn else None


class _Waiting:
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

    def of_other(self, sender: str | None) -> Node | None:
        best: Node | None = None
        own: set[int] = set()
        while self._heap and best is None:
            candidate = self._at[self._heap[0]]
            waiting = self._of[candidate.sender]
            if candidate.is_answered:
                heappop(self._heap)
                latest = _drop_answered(waiting)
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
