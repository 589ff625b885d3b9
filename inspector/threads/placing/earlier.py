"""Earlier messages of a conversation as an answer looks for them: by turn, by speaker, by what waits for an answer.

Every look-up takes the same time however many speak and however long the conversation is. Where a message says to
whom it speaks, the other party is whoever it speaks to; else anyone else, first of all who spoke to its sender.

What is known of earlier messages can be written down at the end of a conversation, and read again for what is appended
to it. Only the latest of each kind are written; a look-up that might have found an older one is uncertain then.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..uncertainty import UncertainError
from .latest import Latest, LatestTurn, Waiting, drop_answered

if TYPE_CHECKING:
    from .placer import Node

# What stands for nobody in particular among the receivers.
_ANYONE = ""
# For these questions (`Reply.whom`) messages are kept only where they are put; for all others they always are.
_LATEST, _OPEN = "latest-of-other", "latest-unanswered-of-other"
KEPT_FOR: Final = frozenset({_LATEST, _OPEN})
# Of each kind of look-up so many entries are carried over the end of a conversation.
MOST_CARRIED: Final = 400

Written = dict[str, Any]


class _Cut(NamedTuple):
    """Up to which run and which position entries of a kind were left out: each of them named no later message."""

    run: int
    position: int


def is_answer(node: Node) -> bool:
    """Whether it is a message that answers by its kind, and no statement: one with a way that is no mere sequence."""
    return any(way.basis == "turn" or way.basis == "correlation" for way in node.ways)


class Earlier:
    """The messages before the one that is being placed.

    Args:
        asked: which of the questions in `KEPT_FOR` will be put; what answers no other is not kept.
    """

    def __init__(self, asked: Set[str]) -> None:
        self.asked = asked
        self._asks_latest = _LATEST in asked
        self._asks_open = _OPEN in asked
        self._correlated: dict[bytes, Latest] = defaultdict(Latest)
        # Those of the ids that stand for a message beside its own: nothing else remembers who bears them.
        self._handles: set[bytes] = set()
        # By receiver, run and task, and by dialect and run: the latest, and the latest of an earlier turn.
        self._to_me: dict[tuple[str, int, str | None], LatestTurn] = defaultdict(LatestTurn)
        self._previous: dict[tuple[str, int], LatestTurn] = defaultdict(LatestTurn)
        self._said = Latest()
        self._said_to: dict[str, Latest] = defaultdict(Latest)
        self._said_between: dict[tuple[str | None, str], Node] = {}
        # Statements that wait for an answer, of each dialect by itself.
        self._open: dict[str, Waiting] = defaultdict(Waiting)
        self._open_to: dict[tuple[str, str], Waiting] = defaultdict(Waiting)
        self._open_between: dict[tuple[str, str | None, str], list[Node]] = defaultdict(list)
        # Of which of these older entries were left out when they were written, and up to where.
        self._cut: dict[str, _Cut] = {}
        # The tasks that were there before, as far as they may be asked for: (run, id). None where all entries are here.
        self.is_known_task: Callable[[int, str], bool] = _is_any_task

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
        self.add_bearer(node, node.correlation)
        self._handles.update(node.handles)
        if self._asks_open and node.is_statement:
            self._wait(node)

    def _wait(self, node: Node) -> None:
        self._open[node.dialect].add(node)
        for receiver in node.receivers or (_ANYONE,):
            self._open_to[node.dialect, receiver].add(node)
            self._open_between[node.dialect, node.sender, receiver].append(node)

    def add_bearer(self, node: Node, names: Iterable[bytes]) -> None:
        """Let a statement be found by these of its ids; those that were carried over are known already."""
        for name in names:
            self._correlated[name].add(node)

    def knows(self, name: bytes) -> bool:
        """Whether it is known who bears an id: a handle that was carried over."""
        return name in self._correlated

    def find(self, node: Node, whom: str) -> Node | None:
        """The earlier message that a dialect's `Reply.whom` means, other than by an id.

        Raises:
            UncertainError: where one that was not carried over may be meant.
        """
        if whom == "latest-to-me":
            if not node.sender:
                return None
            to_me = self._to_me.get((node.sender, node.run, node.task))
            found = to_me.before(node) if to_me else None
            is_left_out = found is None and "to_me" in self._cut
            if is_left_out and node.task is not None and not self.is_known_task(node.run, node.task):
                return None
            return self._prove("to_me", found, node.run)
        if whom == _LATEST:
            return self._find_latest(node)
        if whom == _OPEN:
            return self._find_unanswered(node)
        before = self._previous.get((node.dialect, node.run))
        return self._prove("previous", before.before(node) if before else None, node.run)

    def find_correlated(self, node: Node, name: bytes) -> Node | None:
        """The latest statement of anyone else that bears an id, else its sender's own.

        Raises:
            UncertainError: where one that was not carried over may be meant.
        """
        bearing = self._correlated.get(name)
        found = self._prove("correlated", bearing.of_other(node.sender) if bearing else None)
        return found or (bearing.node if bearing else None)

    def _prove(self, kind: str, found: Node | None, run: int = 0) -> Node | None:
        """What was found among the entries of a kind, unless it may be one that was left out: none of those is later.

        Args:
            kind: of entries.
            found: the latest message of those that are here, None where there is none.
            run: that which is asked for, of a kind that keeps them apart.
        """
        cut = self._cut.get(kind)
        if cut is not None and run <= cut.run and (found is None or found.position <= cut.position):
            raise UncertainError
        return found

    def _find_latest(self, node: Node) -> Node | None:
        me = node.sender
        if not me:
            return None
        pairs = [pair for other in node.receivers if other != me for pair in _pairs(other, me)]
        if pairs and (told := self._prove("said_between", _latest(map(self._said_between.get, pairs)))):
            return told
        groups = (self._said_to.get(receiver) for receiver in (me, _ANYONE))
        found = self._prove("said_to", _latest(group.of_other(me) for group in groups if group))
        return found or self._said.of_other(me)

    def _find_unanswered(self, node: Node) -> Node | None:
        me, dialect = node.sender, node.dialect
        if not me:
            return None
        told = [
            drop_answered(self._open_between.get((dialect, *pair)))
            for other in node.receivers
            if other != me
            for pair in _pairs(other, me)
        ]
        if told and (latest := self._prove("open", _latest(told))):
            return latest
        groups = (self._open_to.get((dialect, receiver)) for receiver in (me, _ANYONE))
        found = self._prove("open", _latest(group.of_other(me) for group in groups if group))
        everyone = self._open.get(dialect)
        return found or (everyone.of_other(me) if everyone else None)

    # What is carried over the end of a conversation.

    def write(self) -> Written:
        """What is known, as JSON takes it: messages by the hexadecimal of their ids."""
        cut = dict(self._cut)

        def leave_out(kind: str, nodes: Sequence[Node]) -> None:
            for node in nodes:
                run, position = cut.get(kind, _Cut(0, 0))
                cut[kind] = _Cut(max(run, node.run), max(position, node.position))

        def take(kind: str, entries: Iterable[tuple[Any, Latest | LatestTurn | Node]]) -> list[Any]:
            rows = sorted(((_nodes_of(held), key) for key, held in entries), key=_position_of_first, reverse=True)
            leave_out(kind, [nodes[0] for nodes, _ in rows[MOST_CARRIED:]])
            return [[key, *(node.id.hex for node in nodes)] for nodes, key in rows[:MOST_CARRIED]]

        waiting = {node.id: node for each in self._open.values() for node in each.list_unanswered()}
        statements = sorted(waiting.values(), key=_position_of)
        leave_out("open", statements[:-MOST_CARRIED])
        return {
            "asked": sorted(self.asked),
            "correlated": take("correlated", ((name.hex(), self._correlated[name]) for name in self._handles)),
            "to_me": take("to_me", self._to_me.items()),
            "previous": take("previous", self._previous.items()),
            "said": [node.id.hex for node in _nodes_of(self._said)],
            "said_to": take("said_to", self._said_to.items()),
            "said_between": take("said_between", self._said_between.items()),
            "open": [node.id.hex for node in statements[-MOST_CARRIED:]],
            "cut": cut,
        }

    @classmethod
    def read(cls, written: Written, nodes: Mapping[uuid.UUID, Node]) -> Earlier:
        """What `write` wrote.

        Args:
            written: that.
            nodes: the messages that it names (`list_named`), placed.
        """
        held = cls(frozenset(written["asked"]))

        def of(names: Iterable[str]) -> list[Node]:
            return [nodes[uuid.UUID(hex=name)] for name in names]

        held._cut = {kind: _Cut(*up_to) for kind, up_to in written["cut"].items()}
        for name, *named in written["correlated"]:
            key = bytes.fromhex(name)
            held._handles.add(key)
            held._correlated[key] = Latest(*of(named))
        for (receiver, run, task), *named in written["to_me"]:
            held._to_me[receiver, run, task] = LatestTurn(*of(named))
        for (dialect, run), *named in written["previous"]:
            held._previous[dialect, run] = LatestTurn(*of(named))
        held._said = Latest(*of(written["said"]))
        for receiver, *named in written["said_to"]:
            held._said_to[receiver] = Latest(*of(named))
        for (sender, receiver), *named in written["said_between"]:
            held._said_between[sender, receiver] = of(named)[0]
        for node in of(written["open"]):
            held._wait(node)
        return held

    @staticmethod
    def list_named(written: Written) -> set[str]:
        """The ids, in hexadecimal, of the messages that something written names."""
        kinds = ("correlated", "to_me", "previous", "said_to", "said_between")
        named = {name for kind in kinds for _, *names in written[kind] for name in names}
        return {*named, *written["said"], *written["open"]}


def _is_any_task(run: int, task: str) -> bool:
    return True


def _position_of(node: Node) -> int:
    return node.position


def _position_of_first(row: tuple[list[Node], Any]) -> int:
    return row[0][0].position


def _nodes_of(held: Latest | LatestTurn | Node) -> list[Node]:
    """The messages that an entry holds, the latest first."""
    if isinstance(held, (Latest, LatestTurn)):
        return [node for node in (held.node, held.other) if node is not None]
    return [held]


def _pairs(other: str, me: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (other, me), (other, _ANYONE)


def _latest(nodes: Iterable[Node | None]) -> Node | None:
    return max((node for node in nodes if node is not None), key=_position_of, default=None)
