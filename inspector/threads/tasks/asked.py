"""What every agent has asked for so far: what a cancellation can withdraw and a retry ask again, naming no request."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..placing.nodes import StoredNode
from ..uncertainty import UncertainError
from .found import Found
from .signs import ASKS

# After these a request of the same agent is the same task, asked again.
RETRIED: Final = frozenset({"failure", "not-understood", "reject"})
# What takes back something that its own sender asked for: of which act, "" for any.
WITHDRAWN: Final[Mapping[str, str]] = {"cancel": "", "unsubscribe": "subscribe"}
_ENDS: Final = frozenset({"done", *WITHDRAWN})
_STATES: Final = frozenset({"inform", "observe"})
# Of each kind of look-up so many entries are carried over the end of a conversation.
MOST_CARRIED: Final = 400


class Asking(NamedTuple):
    """That a task was asked for, by a message, and how often it had ended before: it is over when it ends once more."""

    node: StoredNode
    task: Found
    ends: int

    @property
    def at(self) -> int:
        """Where it was asked for in the timeline: of several the latest is the greatest."""
        return self.node.position

    @property
    def stands(self) -> bool:
        """Whether what was asked for has not ended since."""
        return not self.task.has_ended and self.task.ends == self.ends

    def write(self) -> list[str]:
        """It as JSON takes it: the ids of the message and the task."""
        return [self.node.id.hex, self.task.id.hex]


def take_latest(found: Iterable[Asking | None]) -> Found | None:
    """The task that was asked for last."""
    latest = max((each for each in found if each is not None), key=lambda each: each.at, default=None)
    return latest.task if latest is not None else None


class Asked:
    """The tasks before the message that is being assigned, by who asked for them.

    Whether one has ended is known as far as acts tell it (`Found.ending`), which is enough to say what a cancellation
    can mean.
    """

    def __init__(self) -> None:
        # By who asked, of whom (None: of anyone) and by which act ("": any): all that may still be withdrawn.
        self._standing: dict[tuple[str, str | None, str], list[Asking]] = defaultdict(list)
        # By who asked, of whom and by which act: the latest; and by an id that it bears.
        self._latest: dict[tuple[str, str, str], Asking] = {}
        self._named: dict[tuple[str, str, bytes], Asking] = {}
        # Which of them were not carried over in full.
        self._cut: set[str] = set()

    def add(self, asking: Asking) -> None:
        """A message asks for a task, for the first time or again."""
        node = asking.node
        if not node.sender:
            return
        act = node.performative or ""
        for name in (*(node.receivers or ("",)), None):
            self._standing[node.sender, name, ""].append(asking)
            self._standing[node.sender, name, act].append(asking)
            if name is not None:
                self._latest[node.sender, name, act] = asking
        for name_on_wire in node.handles:
            self._named[node.sender, act, name_on_wire] = asking

    def note_end(self, node: StoredNode, task: Found, *, is_own: bool) -> None:
        """A message belongs to a task, which it may end, or begin again.

        Args:
            node: the message.
            task: the task.
            is_own: whether the one who asked for the task sent it.
        """
        act = node.performative or ""
        if act in ASKS and is_own:
            task.go_on()
        elif act in RETRIED and not is_own:
            task.fail(is_end=not node.is_retryable)
        elif act in _ENDS or (act in _STATES and task.act == "query" and not is_own):
            task.end()

    def find_withdrawn(self, node: StoredNode) -> Found | None:
        """The latest thing its sender asked of a receiver, or of anyone where it names none, that has not ended."""
        act = WITHDRAWN[node.performative or ""]
        names: tuple[str | None, ...] = (*node.receivers, "") if node.receivers else (None,)
        found = take_latest(self._find_standing((node.sender or "", name, act)) for name in names)
        return self._prove("standing", found)

    def _find_standing(self, key: tuple[str, str | None, str]) -> Asking | None:
        asked = self._standing.get(key, [])
        # What is asked again after its end comes in again.
        while asked and not asked[-1].stands:
            asked.pop()
        return asked[-1] if asked else None

    def find_repeated(self, node: StoredNode) -> Found | None:
        """What a retry asks again: what bears the same id, or where it has none, the latest of its kind."""
        sender, act = node.sender or "", node.performative or ""
        if node.handles:
            named = [self._named.get((sender, act, name)) for name in node.handles]
            if None in named:
                self._prove("named", None)
            return next((asking.task for asking in named if asking is not None), None)
        asked = (self._latest.get((sender, name, act)) for name in node.receivers or ("",))
        return self._prove("latest", take_latest(asked))

    def _prove(self, kind: str, found: Found | None) -> Found | None:
        if found is None and kind in self._cut:
            raise UncertainError
        return found

    # What is carried over the end of a conversation.

    def write(self) -> dict[str, Any]:
        """What is known, as JSON takes it: messages and tasks by the hexadecimal of their ids."""
        cut = set(self._cut)

        def take(kind: str, entries: Iterable[tuple[Iterable[Any], Asking]]) -> list[Any]:
            rows = sorted(entries, key=lambda entry: entry[1].at)
            if len(rows) > MOST_CARRIED:
                cut.add(kind)
            return [[*key, *asking.write()] for key, asking in rows[-MOST_CARRIED:]]

        standing = ((key, each) for key, asked in self._standing.items() for each in asked if each.stands)
        return {
            "standing": take("standing", standing),
            "latest": take("latest", self._latest.items()),
            "named": take("named", (((*key, name.hex()), held) for (*key, name), held in self._named.items())),
            "cut": sorted(cut),
        }

    @classmethod
    def read(
        cls, written: dict[str, Any], nodes: Mapping[uuid.UUID, StoredNode], tasks: Mapping[uuid.UUID, Found]
    ) -> Asked:
        """What `write` wrote, from the messages and tasks that it names (`list_named`)."""
        held = cls()
        held._cut = set(written["cut"])
        for sender, name, act, *asking in written["standing"]:
            held._standing[sender, name, act].append(read_asking(asking, nodes, tasks))
        for sender, name, act, *asking in written["latest"]:
            held._latest[sender, name, act] = read_asking(asking, nodes, tasks)
        for sender, act, handle, *asking in written["named"]:
            held._named[sender, act, bytes.fromhex(handle)] = read_asking(asking, nodes, tasks)
        return held

    @staticmethod
    def list_named(written: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """The ids of each message and task that something written names."""
        for kind in ("standing", "latest", "named"):
            yield from ((row[-2], row[-1]) for row in written[kind])


def read_asking(
    written: Sequence[str], nodes: Mapping[uuid.UUID, StoredNode], tasks: Mapping[uuid.UUID, Found]
) -> Asking:
    """What `Asking.write` wrote."""
    node, task = written
    found = tasks[uuid.UUID(hex=task)]
    return Asking(nodes[uuid.UUID(hex=node)], found, found.ends)
