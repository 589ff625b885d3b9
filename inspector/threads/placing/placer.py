"""Placing: which message each one answers, and the order in which they are shown. Pure functions of the set.

The timeline follows the order key; a dialect that counts turns orders by them within a run. A dialect names the ways
to a parent (`dialects.Reply`); here they are looked up. Nothing depends on the order of processing.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from dialects import get_dialect

from ..reads import Key, Reads
from ..uncertainty import UncertainError
from .cuts import Cut, Cuts
from .earlier import KEPT_FOR, Earlier, is_answer
from .links import Way
from .runs import Runs
from .several import say_several


@dataclass(slots=True)
class Node:
    """A message as placing sees it, and where it was placed. Small: a conversation's are all held at once.

    `rank` is its place by the order key. `key`, `correlation` and the keys of the ways are digests of ids, and `said`
    is one of its bytes (`Links`). `is_statement` is False of what nobody answers: text beside a dialect's own words.
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
    trace: str = ""
    said: bytes = b""
    is_statement: bool = True
    run: int = 1
    position: int = 0
    parent: uuid.UUID | None = None
    # The parent itself where it is in this conversation; where it is in another, what stands for it by content.
    above: Node | None = None
    parent_elsewhere: bytes = b""
    # The key of an id that is cited and not found here; a ghost where no single message elsewhere bears it.
    cited: bytes | None = None
    ghost: bytes | None = None
    basis: str = ""
    why: str = ""
    is_answered: bool = field(default=False)
    opens_run: bool = False

    @property
    def parent_at(self) -> int | None:
        """The position of its parent, where that is in this conversation."""
        return None if self.above is None else self.above.position

    @property
    def handles(self) -> tuple[bytes, ...]:
        """The ids beside its message's own by which an answer may name it."""
        return tuple(name for name in self.correlation if name != self.key)


class Citation(NamedTuple):
    """An id that is cited, as its key, and the trace of the message that cites it ("" where it has none)."""

    key: bytes
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What bears a cited id in other conversations: the one message that can be meant, else only how many do.

    `content` stands for that message whatever its id is. `count` is not exact above `MOST_BEARERS`.
    """

    id: uuid.UUID | None
    content: bytes = b""
    count: int = 1


AnyNode = TypeVar("AnyNode", bound=Node)
LookUp = Callable[[Iterable[Citation]], Mapping[Citation, Elsewhere]]


@dataclass(slots=True)
class Placed:
    """What is placed already, as far as it matters to messages that come after all of it; empty at the beginning.

    `borne` are the messages by the ids that the others cite or bear. `unmet` are ids that correlate and that nobody
    bore: who bears one of them now is what they meant, and `is_cut` whether some of them were left out. `borne_later`
    are as `borne`, where messages are placed for a while that others come after: none of those may be answered.
    `coming` are the ids of those messages that were not there when what is placed already was placed; None of all.
    """

    earlier: Earlier
    count: int = 0
    runs: dict[str, Runs] = field(default_factory=lambda: defaultdict(Runs))
    borne: Mapping[bytes, Sequence[Node]] = field(default_factory=dict)
    unmet: set[bytes] = field(default_factory=set)
    is_cut: bool = False
    borne_later: Mapping[bytes, Sequence[Node]] = field(default_factory=dict)
    coming: Set[uuid.UUID] | None = None

    def list_differences(self, other: Placed) -> set[Key]:
        """What messages that come after these would find here and there, of what came of the same after others."""
        keys = self.earlier.list_differences(other.earlier)
        for dialect in self.runs.keys() | other.runs.keys():
            keys |= self.runs.get(dialect, Runs()).list_differences(other.runs.get(dialect, Runs()), dialect)
        return keys | {("borne", name) for name in self.unmet ^ other.unmet}


def find_asked(nodes: Iterable[Node]) -> frozenset[str]:
    """Which of the questions that earlier messages are kept for (`KEPT_FOR`) these messages put."""
    return KEPT_FOR.intersection(way.whom for node in nodes for way in node.ways)


def find_cited(nodes: Sequence[Node], borne: Container[bytes] = ()) -> set[Citation]:
    """The ids that these messages cite and none of them bears, with the traces of those that cite them.

    Args:
        nodes: the messages.
        borne: more ids that are borne in their conversation.
    """
    cited = {
        Citation(way.key, node.trace)
        for node in nodes
        for way in node.ways
        if way.whom == "message-id" and way.key is not None
    }
    if not cited:
        return cited
    own = {node.key for node in nodes if node.key}
    return {citation for citation in cited if citation.key not in own and citation.key not in borne}


def place(
    nodes: Iterable[AnyNode], look_up: LookUp, placed: Placed | None = None, cuts: Cuts | None = None
) -> list[AnyNode]:
    """Order the nodes and give each its parent, its ghost, or neither.

    Args:
        nodes: messages of one conversation, in any order: every one, or those that come after all that are placed.
        look_up: finds messages of other conversations in the channel by their ids, those of the same trace first.
        placed: those before them; they are added to it.
        cuts: where to make cuts, and takes what is made there and what is read.

    Returns:
        the same nodes in the order of the timeline, each with position, run, parent or ghost, basis and why.

    Raises:
        UncertainError: where what is placed already does not tell where they belong, or would be placed otherwise.
    """
    given = list(nodes)
    if placed is None:
        placed = Placed(Earlier(find_asked(given)))
    first = placed.count
    by_rank = sorted(given, key=lambda node: node.rank)
    # What they were before is gone through again with the cuts.
    runs = deepcopy(placed.runs) if cuts is not None else placed.runs
    ordered = _order(by_rank, placed.runs)
    for position, node in enumerate(ordered, start=first):
        node.position = position
    placer = _Placer(ordered, look_up, placed)
    if cuts is None:
        placer.place_all(ordered)
    else:
        placer.cut(cuts, cuts.find_clean(ordered, by_rank, first))
        _cut_runs(by_rank, runs, cuts)
    _break_cycles(ordered, first)
    placed.count += len(ordered)
    return ordered


def _order(nodes: list[AnyNode], counters: dict[str, Runs]) -> list[AnyNode]:
    """Within the places that a run of a turn-counting dialect takes in the timeline, its turns are in order."""
    runs: dict[tuple[str, int], list[int]] = defaultdict(list)
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


def _cut_runs(nodes: Sequence[Node], counters: dict[str, Runs], cuts: Cuts) -> None:
    """Go through the runs again, and note at each cut what is known of them there.

    Args:
        nodes: by order key.
        counters: as they were before these.
        cuts: the cuts, which have been made.
    """
    for cut, reads, stretch in cuts.cut(nodes):
        if cut is not None:
            cut.placed["runs"] = {dialect: runs.write() for dialect, runs in counters.items()}
        for node in stretch:
            if node.turn is not None and get_dialect(node.dialect).orders_by_turn:
                counters[node.dialect].number(node, reads)


def _turn_key(node: Node) -> tuple[int, int]:
    return (node.turn or 0, node.rank)


class _Placer:
    """The look-ups of one conversation, filled as its messages are gone through in order."""

    def __init__(self, nodes: Sequence[Node], look_up: LookUp, placed: Placed) -> None:
        self._nodes = nodes
        self._placed = placed
        self._seen = placed.earlier
        self._by_id: dict[bytes, list[Node]] = defaultdict(list)
        self._by_id |= {key: list(bearers) for key, bearers in placed.borne.items()}
        # Statements by the ids that answers may name them with, those yet to come among them.
        self._later: dict[bytes, Node] = {}
        for node in nodes:
            if node.key:
                self._by_id[node.key].append(node)
            if not is_answer(node):
                for name in node.correlation:
                    self._later.setdefault(name, node)
        for key, bearers in placed.borne_later.items():
            self._by_id[key] = [*self._by_id.get(key, ()), *bearers]
        self._beyond = {node.id for bearers in placed.borne_later.values() for node in bearers}
        missing = find_cited(nodes, placed.borne.keys() | placed.borne_later.keys())
        self._elsewhere = look_up(missing) if missing else {}
        self._prove_apart()

    def _prove_apart(self) -> None:
        """Nobody who is placed already looked for what one of these bears: else its parent would be another now."""
        placed = self._placed
        if not placed.count and placed.coming is None:
            return
        if not find_asked(self._nodes) <= self._seen.asked:
            raise UncertainError
        coming = [node for node in self._nodes if placed.coming is None or node.id in placed.coming]
        names = {name for node in coming for name in (*node.correlation, *((node.key,) if node.key else ()))}
        if not names.isdisjoint(placed.unmet) or (names and placed.is_cut):
            raise UncertainError
        if any(node.key in placed.borne or node.key in placed.borne_later for node in coming):
            raise UncertainError
        if placed.coming is not None and any(node.key and len(self._by_id[node.key]) > 1 for node in coming):
            raise UncertainError
        for name, bearers in placed.borne.items():
            if not self._seen.knows(name):
                for bearer in bearers:
                    if not is_answer(bearer):
                        self._seen.add_bearer(bearer, (name,))

    def cut(self, cuts: Cuts, clean: Iterable[int]) -> None:
        """Place all of them, and make these cuts where they are clean."""
        self._seen.reads = cuts.reads
        at, furthest = 0, -1
        for end in (*clean, len(self._nodes)):
            stretch = self._nodes[at:end]
            self.place_all(stretch)
            ahead = (node.above.position for node in stretch if node.above is not None)
            furthest = max(furthest, max(ahead, default=-1))
            at, position = end, self._placed.count + end
            if end < len(self._nodes) and furthest < position and cuts.is_far(position):
                self._seen.reads = Reads(position)
                cuts.made.append(Cut(position, self._seen.reads, {"earlier": self._seen.write()}))

    def place_all(self, nodes: Iterable[Node]) -> None:
        """Give each of these its parent, in their order."""
        for node in nodes:
            for way in node.ways:
                if self._follow(node, way):
                    break
            if node.opens_run:
                said = (
                    f"turn {node.turn} was said before, in other bytes and before a later turn: run {node.run} begins"
                )
                node.why = f"{node.why}; {said}" if node.why else said
            self._seen.add(node)

    def _follow(self, node: Node, way: Way) -> bool:
        if way.whom == "message-id":
            return self._cite(node, way)
        found = self._find(node, way)
        sought = _find_sought(node) if way.basis == "turn" else None
        if sought is not None and (found is None or found.handles):
            # The turn is no way round what the wire says: a message that bears another id is not the one that is meant.
            node.basis, node.why, node.cited, node.ghost = sought.basis, sought.why, sought.key, sought.key
            return True
        if found is None or found is node:
            return False
        node.parent, node.above, node.basis, node.why = found.id, found, way.basis, way.why
        if way.basis != "adjacency":
            found.is_answered = True
        return True

    def _cite(self, node: Node, way: Way) -> bool:
        """Find who bears the id: in the conversation, else in the trace, else in the channel; several are nobody."""
        if not way.key:
            return False
        bearers = self._by_id.get(way.key, ())
        if way.key == node.key:
            node.why = "it names itself as the message it answers"
            return True
        if len(bearers) > 1:
            node.why = f"{way.why}, but {len(bearers)} messages of this conversation bear that id"
            return True
        node.basis, node.why = way.basis, way.why
        if bearers:
            self._prove_near(bearers[0])
            node.parent, node.above, bearers[0].is_answered = bearers[0].id, bearers[0], True
            return True
        node.cited = way.key
        elsewhere = self._elsewhere.get(Citation(way.key, node.trace))
        if elsewhere is None:
            node.ghost = node.cited
        elif elsewhere.id is None:
            node.ghost = node.cited
            node.why = say_several(way.why, elsewhere.count)
        else:
            node.parent, node.parent_elsewhere = elsewhere.id, elsewhere.content
            node.why = f"{way.why}; it is in another conversation"
        return True

    def _prove_near(self, bearer: Node) -> None:
        """It is not one of those that come after these, where nothing would know that it is answered."""
        if bearer.id in self._beyond:
            raise UncertainError

    def _find(self, node: Node, way: Way) -> Node | None:
        if way.whom == "correlation-id":
            if way.key is None:
                return None
            found = self._seen.find_correlated(node, way.key) or self._later.get(way.key)
            if found is None:
                for bearer in self._placed.borne_later.get(way.key, ()):
                    self._prove_near(bearer)
                self._placed.unmet.add(way.key)
                if self._seen.reads is not None:
                    self._seen.reads.note("sought", way.key)
            return found
        return self._seen.find(node, way.whom)


def _find_sought(node: Node) -> Way | None:
    """The way by a correlation id, where the message names one; it is tried before the turns."""
    return next((way for way in node.ways if way.whom == "correlation-id" and way.key is not None), None)


def _break_cycles(nodes: Sequence[Node], start_at: int) -> None:
    """Cut each circle of parents at its smallest order key, so that every tree is finite.

    One that is closed by a message which only follows is cut there: what a wire says is not given up for that.
    """
    # Only a parent that stands later can close a circle, and only an id that is named can lead to one.
    if not any(node.above is not None and node.above.position > node.position for node in nodes):
        return
    is_clear = bytearray(len(nodes))
    for start in range(len(nodes)):
        path: dict[int, None] = {}
        at: int | None = start
        # What stands before these messages was placed without them, and leads back to none.
        while at is not None and at >= 0 and not is_clear[at]:
            if at in path:
                walked = list(path)
                circle = (nodes[inner] for inner in walked[walked.index(at) :])
                first = min(circle, key=lambda node: (node.basis != "adjacency", node.rank))
                is_following = first.basis == "adjacency"
                first.parent, first.above, first.basis = None, None, ""
                first.why = "" if is_following else "its parents go round in a circle, which is cut here"
                break
            path[at] = None
            above = nodes[at].above
            at = None if above is None else above.position - start_at
        for walked_at in path:
            is_clear[walked_at] = 1
