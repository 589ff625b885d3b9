"""What every agent has asked for so far: what a cancellation can withdraw and a retry ask again, naming no request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ..placing.nodes import StoredNode
from .signs import ASKS

# After these a request of the same agent is the same task, asked again.
RETRIED: Final = frozenset({"failure", "not-understood", "reject"})
# What takes back something that its own sender asked for: of which act, "" for any.
WITHDRAWN: Final[Mapping[str, str]] = {"cancel": "", "unsubscribe": "subscribe"}
_ENDS: Final = frozenset({"done", *WITHDRAWN})
_STATES: Final = frozenset({"inform", "observe"})


class Asking(NamedTuple):
    """That a task was asked for, at a place of the timeline: of several the latest is the greatest."""

    at: int
    task: int


def take_latest(found: Iterable[Asking | None]) -> int | None:
    """The task that was asked for last."""
    latest = max((each for each in found if each is not None), default=None)
    return latest.task if latest is not None else None


class Asked:
    """The tasks before the message that is being assigned, by who asked for them.

    Whether one has ended is known as far as acts tell it, which is enough to say what a cancellation can mean.
    """

    def __init__(self) -> None:
        # By who asked, of whom (None: of anyone) and by which act ("": any): all that may still be withdrawn.
        self._standing: dict[tuple[str, str | None, str], list[Asking]] = defaultdict(list)
        # By who asked, of whom and by which act: the latest; and by an id that it bears.
        self._latest: dict[tuple[str, str, str], Asking] = {}
        self._named: dict[tuple[str, str, bytes], int] = {}
        self._ended: set[int] = set()
        self._failed: set[int] = set()

    def add(self, node: StoredNode, asking: Asking) -> None:
        """A message asks for a task, for the first time or again."""
        if not node.sender:
            return
        act = node.performative or ""
        for name in (*(node.receivers or ("",)), None):
            self._standing[node.sender, name, ""].append(asking)
            self._standing[node.sender, name, act].append(asking)
            if name is not None:
                self._latest[node.sender, name, act] = asking
        for name_on_wire in node.handles:
            self._named[node.sender, act, name_on_wire] = asking.task

    def note_end(self, node: StoredNode, task: int, *, is_own: bool, asked_by: str) -> None:
        """A message belongs to a task, which it may end, or begin again.

        Args:
            node: the message.
            task: the number of the task.
            is_own: whether the one who asked for the task sent it.
            asked_by: the act that the task was asked for by, "" where that is not known.
        """
        act = node.performative or ""
        if act in ASKS and is_own:
            self._ended.discard(task)
            self._failed.discard(task)
        elif act in RETRIED and not is_own:
            self._failed.add(task)
            if not node.is_retryable:
                self._ended.add(task)
        elif act in _ENDS or (act in _STATES and asked_by == "query" and not is_own):
            self._ended.add(task)
            self._failed.discard(task)

    def has_failed(self, task: int) -> bool:
        """Whether the latest end of a task was a failure."""
        return task in self._failed

    def find_withdrawn(self, node: StoredNode) -> int | None:
        """The latest thing its sender asked of a receiver, or of anyone where it names none, that has not ended."""
        act = WITHDRAWN[node.performative or ""]
        names: tuple[str | None, ...] = (*node.receivers, "") if node.receivers else (None,)
        return take_latest(self._find_standing((node.sender or "", name, act)) for name in names)

    def _find_standing(self, key: tuple[str, str | None, str]) -> Asking | None:
        asked = self._standing.get(key, [])
        # What is asked again after its end comes in again.
        while asked and asked[-1].task in self._ended:
            asked.pop()
        return asked[-1] if asked else None

    def find_repeated(self, node: StoredNode) -> int | None:
        """What a retry asks again: what bears the same id, or where it has none, the latest of its kind."""
        sender, act = node.sender or "", node.performative or ""
        if node.handles:
            named = (self._named.get((sender, act, name)) for name in node.handles)
            return next((number for number in named if number is not None), None)
        return take_latest(self._latest.get((sender, name, act)) for name in node.receivers or ("",))
