"""Earlier messages of a conversation as an answer looks for them: by turn, by speaker, by what waits for an answer.

Every look-up takes the same time however many speak and however long the conversation is. Where a message says to
whom it speaks, the other party is whoever it speaks to; else anyone else, first of all who spoke to its sender.

What is known of earlier messages can be written down at the end of a conversation, and read again for what is appended
to it. Only the latest of each kind are written; a look-up that might have found an older one is uncertain then.

Each kind of entries is kept in the order in which they changed, so that the latest are at its end.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..reads import Key, Reads
from ..uncertainty import UncertainError
from .latest import Latest, LatestTurn, Waiting, drop_answered, list_differing, list_held, renew

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

    `reads` takes what is looked up and found before where it starts, None where nobody wants to know.
    """

    def __init__(self, asked: Set[str]) -> None:
        self.asked = asked
        self.reads: Reads | None = None
        self._asks_latest = _LATEST in asked
        self._asks_open = _OPEN in asked
        self._correlated: dict[bytes, Latest] = defaultdict(Latest)
        # Those of the ids that stand for a message beside its own: nothing else remembers who bears them.
        self._handles: dict[bytes, Latest] = {}
        # By receiver, run and task, and by dialect and run: the latest, and the latest of an earlier turn.
        self._to_me: dict[tuple[str, int, str | None], LatestTurn] = {}
        self._previous: dict[tuple[str, int], LatestTurn] = {}
        self._said = Latest()
        self._said_to: dict[str, Latest] = {}
        self._said_between: dict[tuple[str | None, str], Node] = {}
        # Statements that wait for an answer, of each dialect by itself.
        self._open: dict[str, Waiting] = defaultdict(Waiting)
        self._open_to: dict[tuple[str, str], Waiting] = defaultdict(Waiting)
        self._open_between: dict[tuple[str, str | None, str], list[Node]] = defaultdict(list)
        self._statements: list[Node] = []
        # Of which of these older entries were left out when they were written, and up to where.
        self._cut: dict[str, _Cut] = {}
        # From which position on there is which run, of whatever dialect.
        self._runs: list[tuple[int, int]] = []
        # The tasks that were there before, as far as they may be asked for: (run, id). None where all entries are here.
        self.is_known_task: Callable[[int, str], bool] = _is_any_task

    def add(self, node: Node) -> None:
        """Let a message be earlier than those that are asked for from here on; its place is known."""
        if not self._runs or node.run > self._runs[-1][1]:
            self._runs.append((node.position, node.run))
        for receiver in node.receivers:
            renew(self._to_me, (receiver, node.run, node.task), LatestTurn).add(node)
        renew(self._previous, (node.dialect, node.run), LatestTurn).add(node)
        receivers = node.receivers or (_ANYONE,)
        if self._asks_latest:
            self._said.add(node)
            for receiver in receivers:
                renew(self._said_to, receiver, Latest).add(node)
                self._said_between.pop((node.sender, receiver), None)
                self._said_between[node.sender, receiver] = node
        if is_answer(node):
            return
        self.add_bearer(node, node.correlation)
        for name in node.correlation:
            if name != node.key or name in self._handles:
                self._handles.pop(name, None)
                self._handles[name] = self._correlated[name]
                if self.reads is not None:
                    self.reads.note("borne", name)
        if self._asks_open and node.is_statement:
            self._wait(node)

    def _wait(self, node: Node) -> None:
        self._statements.append(node)
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
            self._note("to_me", found, (node.sender, node.run, node.task))
            is_left_out = found is None and "to_me" in self._cut
            if is_left_out and node.task is not None and not self.is_known_task(node.run, node.task):
                return None
            return self._prove("to_me", found, node.run)
        if whom == _LATEST:
            return self._find_latest(node)
        if whom == _OPEN:
            return self._find_unanswered(node)
        before = self._previous.get((node.dialect, node.run))
        found = before.before(node) if before else None
        self._note("previous", found, (node.dialect, node.run))
        return self._prove("previous", found, node.run)

    def find_correlated(self, node: Node, name: bytes) -> Node | None:
        """The latest statement of anyone else that bears an id, else its sender's own.

        Raises:
            UncertainError: where one that was not carried over may be meant.
        """
        bearing = self._correlated.get(name)
        found = bearing.of_other(node.sender) if bearing else None
        self._note("correlated", found, (name,))
        return self._prove("correlated", found) or (bearing.node if bearing else None)

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
        if pairs:
            told = _latest(map(self._said_between.get, pairs))
            self._note("said_between", told, *pairs)
            if told := self._prove("said_between", told):
                return told
        groups = (self._said_to.get(receiver) for receiver in (me, _ANYONE))
        found = _latest(group.of_other(me) for group in groups if group)
        self._note("said_to", found, (me,), (_ANYONE,))
        if found := self._prove("said_to", found):
            return found
        found = self._said.of_other(me)
        self._note("said", found, ())
        return found

    def _find_unanswered(self, node: Node) -> Node | None:
        me, dialect = node.sender, node.dialect
        if not me:
            return None
        pairs = [(dialect, *pair) for other in node.receivers if other != me for pair in _pairs(other, me)]
        if pairs:
            told = _latest(drop_answered(self._open_between.get(pair)) for pair in pairs)
            self._note("open_between", told, *pairs)
            if told := self._prove("open", told):
                return told
        groups = (self._open_to.get((dialect, receiver)) for receiver in (me, _ANYONE))
        found = _latest(group.of_other(me) for group in groups if group)
        self._note("open_to", found, (dialect, me), (dialect, _ANYONE))
        if found := self._prove("open", found):
            return found
        everyone = self._open.get(dialect)
        found = everyone.of_other(me) if everyone else None
        self._note("open", found, (dialect,))
        return found

    def _note(self, kind: str, found: Node | None, *keys: Key) -> None:
        """Note that these entries were asked for their latest message, and that it is this one."""
        if self.reads is not None:
            for key in keys:
                self.reads.note_found(None if found is None else found.position, kind, *key)

    # What is carried over the end of a conversation.

    def write(self) -> Written:
        """What is known, as JSON takes it: messages by the hexadecimal of their ids."""
        cut = dict(self._cut)

        def leave_out(kind: str, latest: Node) -> None:
            """Leave out a message and all before it."""
            run, position = cut.get(kind, _Cut(0, 0))
            cut[kind] = _Cut(max(run, self._find_run(latest.position)), max(position, latest.position))

        def take(kind: str, entries: dict[Any, Any]) -> list[Any]:
            rows = [(key, list_held(held)) for key, held in islice(reversed(entries.items()), MOST_CARRIED + 1)]
            if len(rows) > MOST_CARRIED:
                leave_out(kind, rows.pop()[1][0])
            return [[key, *(node.id.hex for node in nodes)] for key, nodes in rows]

        statements = self._take_unanswered(MOST_CARRIED + 1)
        if len(statements) > MOST_CARRIED:
            leave_out("open", statements.pop(0))
        return {
            "asked": sorted(self.asked),
            "correlated": [[name.hex(), *named] for name, *named in take("correlated", self._handles)],
            "to_me": take("to_me", self._to_me),
            "previous": take("previous", self._previous),
            "said": [node.id.hex for node in list_held(self._said)],
            "said_to": take("said_to", self._said_to),
            "said_between": take("said_between", self._said_between),
            "open": [node.id.hex for node in statements],
            "cut": cut,
        }

    def _find_run(self, position: int) -> int:
        """The greatest run up to a position, of whatever dialect."""
        at = bisect_right(self._runs, position, key=_position_of_run)
        return self._runs[at - 1][1] if at else 0

    def _take_unanswered(self, most: int) -> list[Node]:
        """The latest statements that wait for an answer, so many at most; what has been answered is forgotten."""
        found: list[Node] = []
        while self._statements and len(found) < most:
            node = self._statements.pop()
            if not node.is_answered:
                found.append(node)
        found.reverse()
        self._statements += found
        return found

    @classmethod
    def read(cls, written: Written, nodes: Mapping[uuid.UUID, Node], *, moved: int = 0) -> Earlier:
        """What `write` wrote.

        Args:
            written: that.
            nodes: the messages that it names (`list_named`), placed.
            moved: so many messages have come in before the last of these since, and all after them stand later by that.
        """
        held = cls(frozenset(written["asked"]))

        def of(names: Iterable[str]) -> list[Node]:
            return [nodes[uuid.UUID(hex=name)] for name in names]

        held._cut = {kind: _Cut(run, position + moved) for kind, (run, position) in written["cut"].items()}
        # The latest come first in what is written, and last in what is known.
        for name, *named in reversed(written["correlated"]):
            key = bytes.fromhex(name)
            held._handles[key] = held._correlated[key] = Latest(*of(named))
        for (receiver, run, task), *named in reversed(written["to_me"]):
            held._to_me[receiver, run, task] = LatestTurn(*of(named))
        for (dialect, run), *named in reversed(written["previous"]):
            held._previous[dialect, run] = LatestTurn(*of(named))
        held._said = Latest(*of(written["said"]))
        for receiver, *named in reversed(written["said_to"]):
            held._said_to[receiver] = Latest(*of(named))
        for (sender, receiver), *named in reversed(written["said_between"]):
            held._said_between[sender, receiver] = of(named)[0]
        for node in of(written["open"]):
            held._wait(node)
        for node in sorted(of(cls.list_named(written)), key=_position_of):
            if not held._runs or node.run > held._runs[-1][1]:
                held._runs.append((node.position, node.run))
        return held

    def list_differences(self, other: Earlier) -> set[Key]:
        """What one would find here and another one there, in what came of the same after different messages."""
        return {
            *list_differing("correlated", self._correlated, other._correlated),
            *list_differing("to_me", self._to_me, other._to_me),
            *list_differing("previous", self._previous, other._previous),
            *list_differing("said", {(): self._said}, {(): other._said}),
            *list_differing("said_to", self._said_to, other._said_to),
            *list_differing("said_between", self._said_between, other._said_between),
            *list_differing("open", self._open, other._open),
            *list_differing("open_to", self._open_to, other._open_to),
            *list_differing("open_between", self._open_between, other._open_between),
        }

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


def _position_of_run(pair: tuple[int, int]) -> int:
    return pair[0]


def _pairs(other: str, me: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (other, me), (other, _ANYONE)


def _latest(nodes: Iterable[Node | None]) -> Node | None:
    return max((node for node in nodes if node is not None), key=_position_of, default=None)
