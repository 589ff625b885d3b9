"""What every agent has asked for so far: what a cancellation can withdraw and a retry ask again, naming no request."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Reversible, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from ..placing.nodes import StoredNode
from ..reads import Key, Reads
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

Name = TypeVar("Name")
_Key = tuple[str, str | None, str]


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

    @property
    def names(self) -> tuple[uuid.UUID, bytes]:
        """What tells it from others: its message, and the key of its task."""
        return self.node.id, self.task.key

    def write(self) -> list[str]:
        """It as JSON takes it: the ids of the message and the task."""
        return [self.node.id.hex, self.task.id.hex]


def replace(entries: dict[Name, Asking], name: Name, asking: Asking) -> None:
    """Let this be an entry, the last of all."""
    entries.pop(name, None)
    entries[name] = asking


def note_latest(reads: Reads | None, kind: str, found: Asking | None, *keys: Key) -> None:
    """Note that these entries were asked for the latest of all, and that it is this one."""
    if reads is not None:
        for key in keys:
            reads.note_found(None if found is None else found.at, kind, *key)


def list_differing(kind: str, one: Mapping[Any, Asking], other: Mapping[Any, Asking]) -> Iterator[Key]:
    """The keys of those entries of a kind that are not the same in both."""
    for key in one.keys() | other.keys():
        if key not in one or key not in other or one[key].names != other[key].names:
            yield (kind, *key)


def take_latest(found: Iterable[Asking | None]) -> Asking | None:
    """The one that was asked for last."""
    return max((each for each in found if each is not None), key=lambda each: each.at, default=None)


class Asked:
    """The tasks before the message that is being assigned, by who asked for them.

    Whether one has ended is known as far as acts tell it (`Found.ending`), which is enough to say what a cancellation
    can mean.

    `reads` takes what is looked up and found before where it starts, None where nobody wants to know. Each kind of
    entries is kept in the order in which they changed.
    """

    def __init__(self) -> None:
        self.reads: Reads | None = None
        # By who asked, of whom (None: of anyone) and by which act ("": any): all that may still be withdrawn.
        self._standing: dict[_Key, list[Asking]] = defaultdict(list)
        # By who asked, of whom and by which act: the latest; and by an id that it bears.
        self._latest: dict[tuple[str, str, str], Asking] = {}
        self._named: dict[tuple[str, str, bytes], Asking] = {}
        # All that came in, with the key that it stands at: those that have ended are dropped now and then.
        self._added: list[tuple[_Key, Asking]] = []
        # A message that answers one whose clock ran ahead comes in after it: up to where some came in before others
        # that stand before them; and the latest that has come in.
        self._ahead = self._furthest = -1
        # Which of them were not carried over in full.
        self._cut: set[str] = set()

    def add(self, asking: Asking) -> None:
        """A message asks for a task, for the first time or again."""
        node = asking.node
        if node.position < self._furthest:
            self._ahead = self._furthest
        else:
            self._furthest = node.position
        if not node.sender:
            return
        act = node.performative or ""
        for name in (*(node.receivers or ("",)), None):
            self._stand((node.sender, name, ""), asking)
            self._stand((node.sender, name, act), asking)
            if name is not None:
                replace(self._latest, (node.sender, name, act), asking)
        for name_on_wire in node.handles:
            replace(self._named, (node.sender, act, name_on_wire), asking)

    def _stand(self, key: _Key, asking: Asking) -> None:
        self._standing[key].append(asking)
        self._added.append((key, asking))

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
        keys = [(node.sender or "", name, act) for name in names]
        found = take_latest(map(self._find_standing, keys))
        note_latest(self.reads, "standing", found, *keys)
        return self._prove("standing", found)

    def _find_standing(self, key: _Key) -> Asking | None:
        asked = self._standing.get(key, [])
        # What is asked again after its end comes in again.
        while asked and not asked[-1].stands:
            asked.pop()
        return asked[-1] if asked else None

    def find_repeated(self, node: StoredNode) -> Found | None:
        """What a retry asks again: what bears the same id, or where it has none, the latest of its kind."""
        sender, act = node.sender or "", node.performative or ""
        if node.handles:
            # The first that is there is meant, so that it matters of each whether it is.
            named = []
            for name in node.handles:
                asking = self._named.get((sender, act, name))
                note_latest(self.reads, "named", asking, (sender, act, name))
                named.append(asking)
            if None in named:
                self._prove("named", None)
            return next((asking.task for asking in named if asking is not None), None)
        keys = [(sender, name, act) for name in node.receivers or ("",)]
        latest = take_latest(map(self._latest.get, keys))
        note_latest(self.reads, "asked_latest", latest, *keys)
        return self._prove("latest", latest)

    def _prove(self, kind: str, found: Asking | None) -> Found | None:
        if found is None and kind in self._cut:
            raise UncertainError
        return found.task if found is not None else None

    # What is carried over the end of a conversation.

    def write(self) -> dict[str, Any]:
        """What is known, as JSON takes it: messages and tasks by the hexadecimal of their ids."""
        cut = set(self._cut)

        written: dict[str, Any] = {}
        for kind, rows in self.list_last().items():
            if len(rows) > MOST_CARRIED:
                cut.add(kind)
            written[kind] = [[*_write_key(key), *asking.write()] for key, asking in rows[-MOST_CARRIED:]]
        return {**written, "cut": sorted(cut)}

    def list_last(self) -> dict[str, Sequence[tuple[tuple[Any, ...], Asking]]]:
        """The entries of each kind that are carried, in order; and one more where there are more."""
        return {
            "standing": self._take_standing(),
            "latest": self.take_last(self._latest.items()),
            "named": self.take_last(self._named.items()),
        }

    def take_last(self, entries: Reversible[tuple[Name, Asking]]) -> list[tuple[Name, Asking]]:
        """Those of these entries that are carried, in order; and one more where there are more.

        Args:
            entries: in the order in which they changed.
        """
        rows = list(islice(reversed(entries), MOST_CARRIED + 1))
        return self.sort_last(rows if self.are_in_order(rows) else entries)

    def are_in_order(self, rows: Iterable[tuple[Any, Asking]]) -> bool:
        """Whether these, which changed last, are those that were asked for last."""
        return all(asking.at > self._ahead for _, asking in rows)

    @staticmethod
    def sort_last(rows: Iterable[tuple[Name, Asking]]) -> list[tuple[Name, Asking]]:
        """The last of these rows, in order."""
        return sorted(rows, key=_asked_at)[-MOST_CARRIED - 1 :]

    def _take_standing(self) -> list[tuple[_Key, Asking]]:
        """As `take_last`, of those that stand; what has ended is dropped on the way."""
        found: list[tuple[_Key, Asking]] = []
        while self._added and (len(found) <= MOST_CARRIED or found[-1][1].at <= self._ahead):
            row = self._added.pop()
            if row[1].stands:
                found.append(row)
        found.reverse()
        self._added += found
        return self.sort_last(found)

    def list_differences(self, other: Asked) -> set[Key]:
        """What one would find here and there, in what came of the same after different messages."""
        keys: set[Key] = {
            ("standing", *key)
            for key in self._standing.keys() | other._standing.keys()
            if self._list_standing(key) != other._list_standing(key)
        }
        keys |= set(list_differing("asked_latest", self._latest, other._latest))
        return keys | set(list_differing("named", self._named, other._named))

    def _list_standing(self, key: _Key) -> list[tuple[uuid.UUID, bytes]]:
        return [asking.names for asking in self._standing.get(key, ()) if asking.stands]

    @classmethod
    def read(
        cls, written: dict[str, Any], nodes: Mapping[uuid.UUID, StoredNode], tasks: Mapping[uuid.UUID, Found]
    ) -> Asked:
        """What `write` wrote, from the messages and tasks that it names (`list_named`)."""
        held = cls()
        held._cut = set(written["cut"])
        for sender, name, act, *asking in written["standing"]:
            held._stand((sender, name, act), read_asking(asking, nodes, tasks))
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


def _write_key(key: tuple[Any, ...]) -> list[Any]:
    return [part.hex() if isinstance(part, bytes) else part for part in key]


def _asked_at(row: tuple[Any, Asking]) -> int:
    return row[1].at


def read_asking(
    written: Sequence[str], nodes: Mapping[uuid.UUID, StoredNode], tasks: Mapping[uuid.UUID, Found]
) -> Asking:
    """What `Asking.write` wrote."""
    node, task = written
    found = tasks[uuid.UUID(hex=task)]
    return Asking(nodes[uuid.UUID(hex=node)], found, found.ends)
