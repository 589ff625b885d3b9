"""Which task each message of a conversation belongs to, and which message asked for it. Pure functions of the nodes.

In this order: its task id (and run) says so; it asks for something, and so is a task itself; it answers, however far
above, a message that belongs to one; it answers what was not received. What no link of the wire says is inferred, and
says by which rule (`LINKS`).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..placing.nodes import StoredNode
from .asked import RETRIED, WITHDRAWN, Asked, Asking, take_latest
from .signs import ASKS

# The bases of a parent that was answered; what is adjacent only follows.
LINKED: Final = frozenset({"explicit", "correlation", "turn"})
# What only an answer says: where the message answered is missing, there was a task all the same.
_ANSWERS: Final = frozenset(
    {"acknowledge", "progress", "done", "failure", "not-understood", "accept", "reject", "commit"}
)
_ENDERS: Final = _ANSWERS | {"cancel", "unsubscribe"}
_STATES: Final = frozenset({"inform", "observe"})
_WORK: Final = frozenset({"request", "delegate"})

# How a message belongs to a task where the wire does not say so.
TURN: Final = "turn"
LATEST: Final = "latest"
NEXT_WORD: Final = "next-word"
TAKEN_BACK: Final = "taken-back"
RETRY: Final = "retry"
LINKS: Final[Mapping[str, str]] = {
    TURN: "it answers by its turn: the wire names no message",
    LATEST: "it names no request: taken as the answer to the latest thing asked of its sender by its receiver",
    NEXT_WORD: "it names no question: taken as the answer, for it is the next word of the one asked",
    TAKEN_BACK: "it names no request: taken to withdraw the latest thing that its sender asked of its receiver",
    RETRY: "it says that it is a retry and names no request: taken as the latest of its kind between the two",
}


@dataclass(slots=True)
class Found:
    """A task: what makes it this one, the place of the message that asked, and the number of the task it is part of."""

    key: bytes
    native_id: str = ""
    request: int | None = None
    asked_elsewhere: uuid.UUID | None = None
    within: int | None = None


class Membership:
    """The tasks of a conversation: `task_of` is the number of each message's, `link_of` how it belongs if inferred."""

    def __init__(self, nodes: Sequence[StoredNode]) -> None:
        self._nodes = nodes
        self.tasks: list[Found] = []
        self.task_of: list[int | None] = [None] * len(nodes)
        self.link_of: dict[int, str] = {}
        self._numbers: dict[bytes, int] = {}
        # What was asked is kept with the place at which it was asked last, so that the latest is the greatest.
        # By (who asked, who was asked): the latest task; and the latest question that still waits for a word.
        self._latest: dict[tuple[str, str], Asking] = {}
        self._questions: dict[tuple[str, str], int] = {}
        # Of each that was asked, "" for nobody by name: the latest task, and the latest that somebody else asked for.
        self._asked_of: dict[str, list[tuple[str, Asking]]] = {}
        self._question: int | None = None
        self._asked_before = Asked()
        self._find_requests()
        is_assigned = bytearray(len(nodes))
        for start in range(len(nodes)):
            # A parent whose clock ran ahead stands later; placing has cut every circle.
            waiting = [start]
            while waiting:
                at = waiting[-1]
                above = nodes[at].parent_at
                if above is not None and above > at and not is_assigned[above] and not is_assigned[at]:
                    waiting.append(above)
                    continue
                waiting.pop()
                if not is_assigned[at]:
                    is_assigned[at] = 1
                    self._assign(at, nodes[at])

    def _find_requests(self) -> None:
        """Who asked, for each task that has an id: the first to ask for work, else the first to ask for anything."""
        for asking in (_WORK, ASKS):
            for at, node in enumerate(self._nodes):
                if node.task is not None and node.performative in asking:
                    task = self.tasks[self._number_of_id(node.run, node.task)]
                    if task.request is None:
                        task.request = at

    def _number_of_id(self, run: int, native_id: str) -> int:
        return self._number(_key("id", str(run), native_id), native_id)

    def _number(self, key: bytes, native_id: str = "") -> int:
        number = self._numbers.setdefault(key, len(self.tasks))
        if number == len(self.tasks):
            self.tasks.append(Found(key=key, native_id=native_id))
        return number

    def _assign(self, at: int, node: StoredNode) -> None:
        linked = node.basis in LINKED
        above = self.task_of[node.parent_at] if linked and node.parent_at is not None else None
        is_asking = node.performative in ASKS
        if node.task is not None:
            number: int | None = self._number_of_id(node.run, node.task)
            self._place_within(number, at, node, above)
        elif is_asking:
            number = self._begin(at, node, above)
        else:
            number = self._find(at, node, above, is_linked=linked)
        self.task_of[at] = number
        self._remember(at, node, number)

    def _place_within(self, number: int | None, at: int, node: StoredNode, above: int | None) -> None:
        """What a task with an id is part of: the one that is named, else that in the course of which it is asked."""
        if number is None or self.tasks[number].within is not None:
            return
        within = None
        if node.work.within:
            within = self._number_of_id(node.run, node.work.within)
        elif self.tasks[number].request == at and above is not None and not self._asked(above, node):
            within = above
        if within != number:
            self.tasks[number].within = within

    def _asked(self, number: int, node: StoredNode) -> bool:
        """Whether the sender of a message is who asked for a task."""
        request = self.tasks[number].request
        return request is not None and bool(node.sender) and self._nodes[request].sender == node.sender

    def _begin(self, at: int, node: StoredNode, above: int | None) -> int:
        """A request without a task id: a task of its own, unless it asks again for what has failed."""
        if above is not None and self._asked(above, node):
            parent = self._nodes[node.parent_at] if node.parent_at is not None else None
            if parent is not None and (parent.performative in RETRIED or self._asked_before.has_failed(above)):
                if node.basis == TURN:
                    self.link_of[at] = TURN
                return above
            above = None
        if above is None and node.work.is_retry and not node.work.is_public:
            repeated = self._asked_before.find_repeated(node)
            if repeated is not None:
                if not node.handles:
                    self.link_of[at] = RETRY
                return repeated
        number = self._number(_key("request", node.id.hex))
        self.tasks[number].request = at
        self.tasks[number].within = above
        return number

    def _find(self, at: int, node: StoredNode, above: int | None, *, is_linked: bool) -> int | None:
        if above is not None:
            if node.basis != TURN:
                return above
            better = self._find_latest(node) if self._asked(above, node) and node.performative in _ANSWERS else None
            self.link_of[at] = TURN if better is None else LATEST
            return above if better is None else better
        if is_linked and node.parent_at is None and node.cited is not None and node.performative in _ENDERS:
            number = self._number(_key("cited", node.cited.hex()))
            if node.ghost is None:
                self.tasks[number].asked_elsewhere = node.parent
            return number
        if is_linked or node.performative is None:
            return None
        number_found = None
        if node.performative in WITHDRAWN:
            number_found, link = self._asked_before.find_withdrawn(node), TAKEN_BACK
        elif node.performative in _ANSWERS:
            number_found, link = self._find_latest(node), LATEST
        elif node.performative in _STATES:
            number_found, link = self._find_question(node), NEXT_WORD
            if number_found is None and (node.meaning or node.work.has_progress or node.work.has_result):
                number_found, link = self._find_latest(node), LATEST
        if number_found is not None:
            self.link_of[at] = link
        return number_found

    def _find_latest(self, node: StoredNode) -> int | None:
        """The latest thing that one of the receivers asked of the sender, or anyone else where it names no receiver."""
        if not node.sender:
            return None
        found = [self._latest.get((name, asked)) for name in node.receivers for asked in (node.sender, "")]
        if not node.receivers:
            asked_of = [*self._asked_of.get(node.sender, ()), *self._asked_of.get("", ())]
            found = [asked for sender, asked in asked_of if sender != node.sender]
        return take_latest(found)

    def _find_question(self, node: StoredNode) -> int | None:
        """The question that waits for the sender's next word; of nobody by name where the wire names no receivers."""
        if not node.sender:
            return None
        for name in node.receivers:
            for asked in (node.sender, ""):
                if (name, asked) in self._questions:
                    return self._questions[name, asked]
        if node.receivers or self._question is None:
            return None
        request = self.tasks[self._question].request
        asking = self._nodes[request] if request is not None else None
        if asking is None or not asking.sender or asking.sender == node.sender:
            return None
        return self._question if not asking.receivers or node.sender in asking.receivers else None

    def _remember(self, at: int, node: StoredNode, number: int | None) -> None:
        """Keep what was asked of whom; and a question has had its next word once the one asked says anything."""
        sender = node.sender or ""
        for name in node.receivers:
            self._questions.pop((name, sender), None)
            self._questions.pop((name, ""), None)
        waiting = self.tasks[self._question].request if self._question is not None else None
        if waiting is not None and self._nodes[waiting].sender != node.sender:
            self._question = None
        if number is None:
            return
        request = self.tasks[number].request
        is_own, asked_by = self._asked(number, node), self._nodes[request].performative if request is not None else None
        self._asked_before.note_end(node, number, is_own=is_own, asked_by=asked_by or "")
        if node.performative not in ASKS or not (request == at or is_own):
            return
        asking = Asking(at, number)
        self._asked_before.add(node, asking)
        for name in node.receivers or ("",):
            self._latest[sender, name] = asking
            if sender:
                of_another = [pair for pair in self._asked_of.get(name, ()) if pair[0] != sender][-1:]
                self._asked_of[name] = [*of_another, (sender, asking)]
        if request == at and node.performative == "query":
            self._questions[sender, node.receivers[0] if len(node.receivers) == 1 else ""] = number
            self._question = number


def _key(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
