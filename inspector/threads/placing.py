"""Placing: which message each one answers, and the order in which they are shown. Pure functions of the set.

The timeline follows the order key; a dialect that counts turns orders by them within a run. A dialect names the ways
to a parent (`dialects.Reply`); here they are looked up. Nothing depends on the order of processing.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeVar

from dialects import get_dialect

from .links import Way


@dataclass(slots=True)
class Node:
    """A message as placing sees it, and where it was placed. Small: a conversation's are all held at once.

    `rank` is its place by the order key. `key`, `correlation` and the keys of the ways are digests of ids (`Links`).
    """

    id: uuid.UUID
    record: uuid.UUID
    part: int
    rank: int
    dialect: str
    sender: str | None
    receivers: tuple[str, ...]
    key: bytes | None
    correlation: tuple[bytes, ...]
    task: str | None
    turn: int | None
    ways: Sequence[Way]
    run: int = 1
    position: int = 0
    parent: uuid.UUID | None = None
    # The parent's position where it is in this conversation; where it is in another, what stands for it by content.
    parent_at: int | None = None
    parent_elsewhere: bytes = b""
    # The key of an id that is cited and not found here; a ghost where no single message elsewhere bears it.
    cited: bytes | None = None
    ghost: bytes | None = None
    basis: str = ""
    why: str = ""
    is_answered: bool = field(default=False)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A message of another conversation that a citation may mean; `content` stands for it whatever its id is."""

    id: uuid.UUID
    content: bytes = b""


AnyNode = TypeVar("AnyNode", bound=Node)
LookUp = Callable[[Iterable[bytes]], Mapping[bytes, Sequence[Elsewhere]]]


def find_cited(nodes: Sequence[Node]) -> set[bytes]:
    """The keys of the ids that these messages cite and none of them bears."""
    cited = {way.key for node in nodes for way in node.ways if way.whom == "message-id" and way.key}
    return cited - {node.key for node in nodes if node.key} if cited else cited


def place(nodes: Iterable[AnyNode], look_up: LookUp) -> list[AnyNode]:
    """Order the nodes and give each its parent, its ghost, or neither.

    Args:
        nodes: every message of one conversation, in any order.
        look_up: finds messages of other conversations in the channel by the keys of their ids.

    Returns:
        the same nodes in the order of the timeline, each with position, run, parent or ghost, basis and why.
    """
    ordered = _order(sorted(nodes, key=lambda node: node.rank))
    for position, node in enumerate(ordered):
        node.position = position
    _Placer(ordered, look_up).place_all()
    _break_cycles(ordered)
    return ordered


def _order(nodes: list[AnyNode]) -> list[AnyNode]:
    """Within the places that a run of a turn-counting dialect takes in the timeline, its turns are in order."""
    runs: dict[tuple[str, int], list[int]] = defaultdict(list)
    counters: dict[str, _Runs] = defaultdict(_Runs)
    for place_in_timeline, node in enumerate(nodes):
        if node.turn is not None and get_dialect(node.dialect).orders_by_turn:
            node.run = counters[node.dialect].number(node)
            runs[node.dialect, node.run].append(place_in_timeline)
    ordered = list(nodes)
    for places in runs.values():
        by_turn = sorted((nodes[place_in_timeline] for place_in_timeline in places), key=_turn_key)
        for place_in_timeline, node in zip(places, by_turn, strict=True):
            ordered[place_in_timeline] = node
    return ordered


def _turn_key(node: Node) -> tuple[int, int]:
    return (node.turn or 0, node.rank)


class _Runs:
    """Counts the runs of a conversation id that starts over: a turn said again after a later turn opens a new one."""

    def __init__(self) -> None:
        self._run = 1
        self._seen: set[tuple[str | None, int | None]] = set()
        self._latest = -1

    def number(self, node: Node) -> int:
        said = (node.sender, node.turn)
        if said in self._seen and (node.turn or 0) < self._latest:
            self._run, self._seen, self._latest = self._run + 1, set(), -1
        self._seen.add(said)
        self._latest = max(self._latest, node.turn or 0)
        return self._run


class _Placer:
    """The look-ups of one conversation, filled as its messages are gone through in order."""

    def __init__(self, nodes: Sequence[Node], look_up: LookUp) -> None:
        self._nodes = nodes
        self._by_id: dict[bytes, Node] = {}
        self._by_correlation: dict[bytes, Node] = {}
        self._to_me: dict[tuple[str, int, str | None], Node] = {}
        # The latest message, and the latest of anyone else: no look-up depends on how many speak.
        self._latest: Node | None = None
        self._latest_of_other: Node | None = None
        # Of each sender what waits for an answer, and the positions (negative) of the latest of each as a heap.
        self._open: dict[str | None, list[Node]] = defaultdict(list)
        self._waiting: list[int] = []
        self._previous: dict[tuple[str, int], Node] = {}
        for node in nodes:
            if node.key:
                self._by_id.setdefault(node.key, node)
        missing = find_cited(nodes)
        self._elsewhere = look_up(missing) if missing else {}

    def place_all(self) -> None:
        for node in self._nodes:
            for way in node.ways:
                if self._follow(node, way):
                    break
            self._remember(node)

    def _follow(self, node: Node, way: Way) -> bool:
        if way.whom == "message-id":
            return self._cite(node, way)
        found = self._find(node, way)
        if found is None or found is node:
            return False
        node.parent, node.parent_at, node.basis, node.why = found.id, found.position, way.basis, way.why
        if way.basis != "adjacency":
            found.is_answered = True
        return True

    def _cite(self, node: Node, way: Way) -> bool:
        if not way.key:
            return False
        node.basis, node.why = way.basis, way.why
        found = self._by_id.get(way.key)
        if found is node:
            node.basis, node.why = "", "it names itself as the message it answers"
            return True
        if found is not None:
            node.parent, node.parent_at, found.is_answered = found.id, found.position, True
            return True
        node.cited = way.key
        matches = self._elsewhere.get(node.cited, ())
        if len(matches) == 1:
            node.parent, node.parent_elsewhere = matches[0].id, matches[0].content
            node.why = f"{way.why}; it is in another conversation"
            return True
        node.ghost = node.cited
        node.why = f"{way.why}; {len(matches)} messages bear that id" if matches else way.why
        return True

    def _find(self, node: Node, way: Way) -> Node | None:
        if way.whom == "correlation-id":
            return self._by_correlation.get(way.key) if way.key else None
        if way.whom == "latest-to-me":
            return self._to_me.get((node.sender or "", node.run, node.task)) if node.sender else None
        if way.whom == "latest-of-other":
            if not node.sender or self._latest is None:
                return None
            return self._latest if self._latest.sender != node.sender else self._latest_of_other
        if way.whom == "latest-unanswered-of-other":
            return self._find_unanswered(node)
        return self._previous.get((node.dialect, node.run))

    def _find_unanswered(self, node: Node) -> Node | None:
        if not node.sender:
            return None
        best: Node | None = None
        own: set[int] = set()
        while self._waiting and best is None:
            candidate = self._nodes[-self._waiting[0]]
            waiting = self._open[candidate.sender]
            if candidate.is_answered:
                heappop(self._waiting)
                self._let_wait(waiting)
            elif candidate is not waiting[-1]:
                # It comes again when what the same sender said after it is answered.
                heappop(self._waiting)
            elif candidate.sender == node.sender:
                own.add(heappop(self._waiting))
            else:
                best = candidate
        for entry in own:
            heappush(self._waiting, entry)
        return best

    def _let_wait(self, waiting: list[Node]) -> None:
        """Enter the latest of a sender's that is not answered into the heap."""
        while waiting and waiting[-1].is_answered:
            waiting.pop()
        if waiting:
            heappush(self._waiting, -waiting[-1].position)

    def _remember(self, node: Node) -> None:
        for name in node.correlation:
            self._by_correlation.setdefault(name, node)
        for receiver in node.receivers:
            self._to_me[receiver, node.run, node.task] = node
        if self._latest is not None and self._latest.sender != node.sender:
            self._latest_of_other = self._latest
        self._latest = node
        if not node.ways:
            self._open[node.sender].append(node)
            self._let_wait(self._open[node.sender])
        self._previous[node.dialect, node.run] = node


def _break_cycles(nodes: Sequence[Node]) -> None:
    """Cut each circle of parents at its smallest order key, so that every tree is finite."""
    # Only a parent that stands later can close a circle, and only an id that is named can lead to one.
    if not any(node.parent_at is not None and node.parent_at > node.position for node in nodes):
        return
    is_clear = bytearray(len(nodes))
    for start in range(len(nodes)):
        path: dict[int, None] = {}
        at: int | None = start
        while at is not None and not is_clear[at]:
            if at in path:
                walked = list(path)
                first = min((nodes[inner] for inner in walked[walked.index(at) :]), key=lambda node: node.rank)
                first.parent, first.parent_at, first.basis = None, None, ""
                first.why = "its parents go round in a circle, which is cut here"
                break
            path[at] = None
            at = nodes[at].parent_at
        for walked_at in path:
            is_clear[walked_at] = 1
