"""Earlier messages of a conversation as an answer looks for them: by turn, by speaker, by what waits for an answer.

Every look-up takes the same time however many speak and however long the conversation is. Where a message says to
whom it speaks, the other party is whoever it speaks to; else anyone else, first of all who spoke to its sender.

What is known of earlier messages can be written down at the end of a conversation, and read again for what is appended
to it. Only the latest of each kind are written; a look-up that might have found an older one is uncertain then.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, Final

from ..uncertainty import UncertainError
from .latest import Latest, LatestTurn, Waiting, drop_answered

if TYPE_CHECKING:
    from .placer import Node

# What stands for nobody in particular among the receivers.
_ANYONE = ""
# Of each kind of look-up so many entries are carried over the end of a conversation.
MOST_CARRIED: Final = 400

Written = dict[str, Any]
Find = Callable[[str | None], Any]


def is_answer(node: Node) -> bool:
    """Whether it is a message that answers by its kind, and no statement: one with a way that is no mere sequence."""
    return any(way.basis == "turn" or way.basis == "correlation" for way in node.ways)


class Earlier:
    """The messages before the one that is being placed.

    Args:
        asked: which questions (`Reply.whom`) will be put; what answers no other is not kept.
    """

    def __init__(self, asked: Set[str]) -> None:
        self.asked = asked
        self._asks_latest = "latest-of-other" in asked
        self._asks_open = "latest-unanswered-of-other" in asked
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
        # Of which of these older entries were left out when they were written, and up to which run.
        self._cut: dict[str, int] = {}
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
            found = self._to_me.get((node.sender, node.run, node.task))
            if found is not None:
                return found.before(node)
            if self._is_cut("to_me", node.run) and (node.task is None or self.is_known_task(node.run, node.task)):
                raise UncertainError
            return None
        if whom == "latest-of-other":
            return self._find_latest(node)
        if whom == "latest-unanswered-of-other":
            return self._find_unanswered(node)
        before = self._previous.get((node.dialect, node.run))
        if before is None and self._is_cut("previous", node.run):
            raise UncertainError
        return before.before(node) if before else None

    def find_correlated(self, node: Node, name: bytes) -> Node | None:
        """The latest statement of anyone else that bears an id, else its sender's own."""
        found = self._correlated.get(name)
        if found is None and "correlated" in self._cut:
            raise UncertainError
        return (found.of_other(node.sender) or found.node) if found else None

    def _is_cut(self, name: str, run: int) -> bool:
        """Whether entries of this run, or a later one, were left out."""
        return name in self._cut and run <= self._cut[name]

    def _find_latest(self, node: Node) -> Node | None:
        me = node.sender
        if not me:
            return None
        pairs = [pair for other in node.receivers if other != me for pair in _pairs(other, me)]
        told = [self._said_between.get(pair) for pair in pairs]
        if None in told and "said_between" in self._cut:
            raise UncertainError
        groups = [self._said_to.get(receiver) for receiver in (me, _ANYONE)]
        found = _latest(told)
        if found is None and None in groups and "said_to" in self._cut:
            raise UncertainError
        return found or _latest(group.of_other(me) for group in groups if group) or self._said.of_other(me)

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
        if None in told and "open" in self._cut:
            raise UncertainError
        found = _latest(told)
        if found is None:
            groups = (self._open_to.get((dialect, receiver)) for receiver in (me, _ANYONE))
            found = _latest(group.of_other(me) for group in groups if group)
            if found is None and "open" in self._cut:
                raise UncertainError
        everyone = self._open.get(dialect)
        return found or (everyone.of_other(me) if everyone else None)

    # What is carried over the end of a conversation.

    def write(self) -> Written:
        """What is known, as JSON takes it: messages by the hexadecimal of their ids."""
        cut = dict(self._cut)

        def take(name: str, entries: Iterable[tuple[Any, Latest | LatestTurn | Node]]) -> list[Any]:
            rows = sorted(((_nodes_of(held), key) for key, held in entries), key=_position_of_first, reverse=True)
            if len(rows) > MOST_CARRIED:
                cut[name] = max(cut.get(name, 0), *(nodes[0].run for nodes, _ in rows[MOST_CARRIED:]))
            return [[key, *(node.id.hex for node in nodes)] for nodes, key in rows[:MOST_CARRIED]]

        waiting = {node.id: node for each in self._open.values() for node in each.list_unanswered()}
        statements = sorted(waiting.values(), key=_position_of)
        if len(statements) > MOST_CARRIED:
            cut["open"] = 0
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

        held._cut = dict(written["cut"])
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
