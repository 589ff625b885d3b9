"""Placing: which message each one answers, and the order in which they are shown. Pure functions of the set.

The timeline follows the order key; a dialect that counts turns orders by them within a run. A dialect names the ways
to a parent (`dialects.Reply`); here they are looked up. Nothing depends on the order of processing.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush

from dialects import Message, Reply, get_dialect

from .keys import key_of_id

SortKey = tuple[datetime, bytes, int, int, bytes]


@dataclass(slots=True)
class Node:
    """A message as placing sees it, and where it was placed."""

    id: uuid.UUID
    record: uuid.UUID
    part: int
    sort_key: SortKey
    dialect: str
    sender: str | None
    receivers: tuple[str, ...]
    native_id: str | None
    correlation: tuple[str, ...]
    task: str | None
    turn: int | None
    replies: Sequence[Reply]
    run: int = 1
    position: int = 0
    parent: uuid.UUID | None = None
    # The key of an id that is cited and not found here; a ghost where no single message elsewhere bears it.
    cited: bytes | None = None
    ghost: bytes | None = None
    basis: str = ""
    why: str = ""
    is_answered: bool = field(default=False)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A message of another conversation that a citation may mean."""

    id: uuid.UUID
    trace: str


LookUp = Callable[[Iterable[bytes]], Mapping[bytes, Sequence[Elsewhere]]]


def make_node(*, message_id: uuid.UUID, record: uuid.UUID, sort_key: SortKey, dialect: str, message: Message) -> Node:
    """The node of a message as read (its envelope applied)."""
    said = (message.correlation_id, message.object_id, message.message_id)
    return Node(
        id=message_id,
        record=record,
        part=message.part,
        sort_key=sort_key,
        dialect=dialect,
        sender=message.sender,
        receivers=message.receivers,
        native_id=message.message_id,
        correlation=tuple(name for name in said if name),
        task=message.task_id,
        turn=message.turn,
        replies=get_dialect(dialect).replies(message),
    )


def place(nodes: Iterable[Node], look_up: LookUp) -> list[Node]:
    """Order the nodes and give each its parent, its ghost, or neither.

    Args:
        nodes: every message of one conversation, in any order.
        look_up: finds messages of other conversations in the channel by the keys of their ids.

    Returns:
        the same nodes in the order of the timeline, each with position, run, parent or ghost, basis and why.
    """
    ordered = _order(sorted(nodes, key=lambda node: node.sort_key))
    for position, node in enumerate(ordered):
        node.position = position
    _Placer(ordered, look_up).place_all()
    _break_cycles(ordered)
    return ordered


def _order(nodes: list[Node]) -> list[Node]:
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


def _turn_key(node: Node) -> tuple[int, SortKey]:
    return (node.turn or 0, node.sort_key)


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

    def __init__(self, nodes: list[Node], look_up: LookUp) -> None:
        self._nodes = nodes
        self._by_id: dict[str, Node] = {}
        self._by_correlation: dict[str, Node] = {}
        self._to_me: dict[tuple[str, int, str | None], Node] = {}
        # The latest message, and the latest of anyone else: no look-up depends on how many speak.
        self._latest: Node | None = None
        self._latest_of_other: Node | None = None
        # Of each sender what waits for an answer, and the positions (negative) of the latest of each as a heap.
        self._open: dict[str | None, list[Node]] = defaultdict(list)
        self._waiting: list[int] = []
        self._previous: dict[tuple[str, int], Node] = {}
        for node in nodes:
            if node.native_id:
                self._by_id.setdefault(node.native_id, node)
        cited = {reply.value for node in nodes for reply in node.replies if reply.whom == "message-id" and reply.value}
        missing = {key_of_id(name) for name in cited if name not in self._by_id}
        self._elsewhere = look_up(missing) if missing else {}

    def place_all(self) -> None:
        for node in self._nodes:
            for reply in node.replies:
                if self._follow(node, reply):
                    break
            self._remember(node)

    def _follow(self, node: Node, reply: Reply) -> bool:
        if reply.whom == "message-id":
            return self._cite(node, reply)
        found = self._find(node, reply)
        if found is None or found is node:
            return False
        node.parent, node.basis, node.why = found.id, reply.basis, reply.why
        if reply.basis != "adjacency":
            found.is_answered = True
        return True

    def _cite(self, node: Node, reply: Reply) -> bool:
        if not reply.value:
            return False
        node.basis, node.why = reply.basis, reply.why
        found = self._by_id.get(reply.value)
        if found is node:
            node.basis, node.why = "", "it names itself as the message it answers"
            return True
        if found is not None:
            node.parent, found.is_answered = found.id, True
            return True
        node.cited = key_of_id(reply.value)
        matches = self._elsewhere.get(node.cited, ())
        if len(matches) == 1:
            node.parent = matches[0].id
            node.why = f"{reply.why}; it is in another conversation"
            return True
        node.ghost = node.cited
        node.why = f"{reply.why}; {len(matches)} messages bear that id" if matches else reply.why
        return True

    def _find(self, node: Node, reply: Reply) -> Node | None:
        if reply.whom == "correlation-id":
            return self._by_correlation.get(reply.value or "")
        if reply.whom == "latest-to-me":
            return self._to_me.get((node.sender or "", node.run, node.task)) if node.sender else None
        if reply.whom == "latest-of-other":
            if not node.sender or self._latest is None:
                return None
            return self._latest if self._latest.sender != node.sender else self._latest_of_other
        if reply.whom == "latest-unanswered-of-other":
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
        if not node.replies:
            self._open[node.sender].append(node)
            self._let_wait(self._open[node.sender])
        self._previous[node.dialect, node.run] = node


def _break_cycles(nodes: list[Node]) -> None:
    """Cut each circle of parents at its smallest order key, so that every tree is finite."""
    by_id = {node.id: node for node in nodes}
    is_clear: set[uuid.UUID] = set()
    for start in nodes:
        path: dict[uuid.UUID, None] = {}
        node: Node | None = start
        while node is not None and node.id not in is_clear:
            if node.id in path:
                ids = list(path)
                circle = [by_id[inner] for inner in ids[ids.index(node.id) :]]
                first = min(circle, key=lambda inner: inner.sort_key)
                first.parent, first.basis = None, ""
                first.why = "its parents go round in a circle, which is cut here"
                break
            path[node.id] = None
            node = by_id.get(node.parent) if node.parent else None
        is_clear.update(path)
