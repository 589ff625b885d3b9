"""Which task each message of a conversation belongs to, and which message asked for it. Pure functions of the nodes.

In this order: its task id (and run) says so; it asks for something, and so is a task itself; it answers, however far
above, a message that belongs to one; it answers what was not received. What no link of the wire says is inferred, and
says by which rule (`LINKS`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..placing.cuts import Cuts
from ..placing.nodes import StoredNode
from ..reads import Key, Reads
from ..uncertainty import UncertainError
from .asked import RETRIED, WITHDRAWN
from .found import Found, key_of_id, make_key, make_task_id
from .signs import ASKS
from .standing import Standing, asked_for

# The bases of a parent that was answered; what is adjacent only follows.
LINKED: Final = frozenset({"explicit", "correlation", "turn"})
# What only an answer says: where the message answered is missing, there was a task all the same.
ANSWERS: Final = frozenset(
    {"acknowledge", "progress", "done", "failure", "not-understood", "accept", "reject", "commit"}
)
ENDERS: Final = ANSWERS | {"cancel", "unsubscribe"}
STATES: Final = frozenset({"inform", "observe"})
WORK: Final = frozenset({"request", "delegate"})

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


class Membership:
    """The tasks of a conversation: `task` of each node is the one that it belongs to, `link` how if that is inferred.

    Args:
        conversation_id: the conversation.
        asked: what was asked for in it before the first of the nodes that come now.
        known: the tasks that were there before, as far as those nodes may belong to them, by key.
    """

    def __init__(
        self,
        conversation_id: uuid.UUID,
        *,
        asked: Standing | None = None,
        known: Mapping[bytes, Found] | None = None,
    ) -> None:
        self._conversation_id = conversation_id
        self.tasks: dict[bytes, Found] = dict(known or {})
        self.standing = asked or Standing()
        # What is noted of the tasks that were there before: see `Cuts`.
        self._reads: Reads | None = None

    def assign(self, nodes: Sequence[StoredNode], cuts: Cuts | None = None) -> None:
        """Give each of these placed nodes its task; they come after those that were assigned before.

        Args:
            nodes: the nodes.
            cuts: those that were made when they were placed; they take what is known there, and what is read.

        Raises:
            UncertainError: where what comes now changes what was assigned before.
        """
        self._find_requests(nodes)
        if cuts is None:
            self._assign_all(nodes)
            return
        for cut, reads, stretch in cuts.cut(nodes):
            self._reads = reads
            self.standing.take_reads(reads)
            if cut is not None:
                cut.assigned = self.standing.write()
            self._assign_all(stretch)

    def _assign_all(self, nodes: Sequence[StoredNode]) -> None:
        for start in nodes:
            # A parent whose clock ran ahead stands later; placing has cut every circle.
            waiting = [start]
            while waiting:
                node = waiting[-1]
                above = node.above
                if above and above.position > node.position and not (above.is_assigned or node.is_assigned):
                    waiting.append(above)
                    continue
                waiting.pop()
                if not node.is_assigned:
                    node.is_assigned = True
                    self._assign(node)

    def list_differences(self, other: Membership) -> set[Key]:
        """What messages that come after these would find here and there, in what came of the same after others.

        To tell how nodes differ of those gone through themselves is for `list_moved`.
        """
        keys = self.standing.list_differences(other.standing)
        for key in self.tasks.keys() | other.tasks.keys():
            one, two = self.tasks.get(key), other.tasks.get(key)
            if one is None or two is None or one.said != two.said:
                keys.add(("task", key))
        return keys

    def _find_requests(self, nodes: Sequence[StoredNode]) -> None:
        """Who asked, for each task that has an id: the first to ask for work, else the first to ask for anything."""
        for asking in (WORK, ASKS):
            for node in nodes:
                if node.task is None or node.performative not in asking:
                    continue
                task = self._find_by_id(node.run, node.task)
                if task.is_stored and (task.request is None or (asking is WORK and task.act not in WORK)):
                    # What was placed before was said of a task that nobody had asked for, or somebody else.
                    raise UncertainError
                if task.request is None:
                    _name_request(task, node)

    def _find_by_id(self, run: int, native_id: str) -> Found:
        return self._find_task(key_of_id(run, native_id), native_id)

    def _find_task(self, key: bytes, native_id: str = "") -> Found:
        task = self.tasks.get(key)
        if task is None:
            task = Found(key, make_task_id(self._conversation_id, key), native_id)
            self.tasks[key] = task
        return task

    def _touch(self, task: Found | None) -> None:
        """Note that it matters how a task stands: call it before that is looked at or changed."""
        if self._reads is not None and task is not None:
            self._reads.note("task", task.key)

    def _assign(self, node: StoredNode) -> None:
        linked = node.basis in LINKED
        above = node.above.of_task if linked and node.above is not None else None
        if self._reads is not None and linked and node.above is not None:
            self._reads.note_found(node.above.position, "above", node.above.id.hex)
            self._touch(above)
        is_asking = node.performative in ASKS
        if node.task is not None:
            task: Found | None = self._find_by_id(node.run, node.task)
            self._touch(task)
            self._place_within(task, node, above)
        elif is_asking:
            task = self._begin(node, above)
        else:
            task = self._find(node, above, is_linked=linked)
        if task is not None and task.is_awaited:
            # What is part of it was played before anything was known of it.
            raise UncertainError
        self._touch(task)
        node.of_task = task
        node.task_id = task.id if task is not None else None
        self.standing.remember(node, task)

    def _place_within(self, task: Found | None, node: StoredNode, above: Found | None) -> None:
        """What a task with an id is part of: the one that is named, else that in the course of which it is asked."""
        if task is None or task.within is not None:
            return
        within = None
        if node.work.within:
            within = self._find_by_id(node.run, node.work.within)
        elif task.request == node.id and above is not None and not asked_for(above, node):
            within = above
        if within is not None and within is not task:
            if task.is_stored:
                raise UncertainError
            task.within = within

    def _begin(self, node: StoredNode, above: Found | None) -> Found:
        """A request without a task id: a task of its own, unless it asks again for what has failed."""
        if above is not None and asked_for(above, node):
            parent = node.above
            if parent is not None and (parent.performative in RETRIED or above.has_failed):
                if node.basis == TURN:
                    node.link = TURN
                return above
            above = None
        if above is None and node.work.is_retry and not node.work.is_public:
            repeated = self.standing.asked.find_repeated(node)
            if repeated is not None:
                if not node.handles:
                    node.link = RETRY
                return repeated
        task = self._find_task(make_key("request", node.id.hex))
        _name_request(task, node)
        task.within = above
        return task

    def _find(self, node: StoredNode, above: Found | None, *, is_linked: bool) -> Found | None:
        if above is not None:
            if node.basis != TURN:
                return above
            is_answer = asked_for(above, node) and node.performative in ANSWERS
            better = self.standing.find_latest(node) if is_answer else None
            node.link = TURN if better is None else LATEST
            return above if better is None else better
        if is_linked and node.above is None and node.cited is not None and node.performative in ENDERS:
            task = self._find_task(make_key("cited", node.cited.hex()))
            if node.ghost is None:
                task.asked_elsewhere = node.parent
            return task
        if is_linked or node.performative is None:
            return None
        found = None
        if node.performative in WITHDRAWN:
            found, link = self.standing.asked.find_withdrawn(node), TAKEN_BACK
        elif node.performative in ANSWERS:
            found, link = self.standing.find_latest(node), LATEST
        elif node.performative in STATES:
            found, link = self.standing.find_question(node), NEXT_WORD
            if found is None and (node.meaning or node.work.has_progress or node.work.has_result):
                found, link = self.standing.find_latest(node), LATEST
        if found is not None:
            node.link = link
        return found


def list_moved(one: Iterable[StoredNode], other: Iterable[StoredNode]) -> set[Key]:
    """Which nodes those that answer them find in other tasks, where nodes were assigned with different ones among them.

    Args:
        one: nodes, assigned.
        other: the same messages but for some.
    """
    found, others = ({node.id: _say_task(node) for node in nodes} for nodes in (one, other))
    return {("above", pk.hex) for pk in found.keys() | others.keys() if found.get(pk) != others.get(pk)}


def _say_task(node: StoredNode) -> tuple[bytes | None, str | None]:
    return node.of_task.key if node.of_task is not None else None, node.performative


def _name_request(task: Found, node: StoredNode) -> None:
    task.request, task.requester, task.act = node.id, node.sender or "", node.performative or ""


def find_links(node: StoredNode, task: Found, above: uuid.UUID | None) -> set[str]:
    """How a placed message may belong to the task that it was assigned to; of several only the fold knows which.

    Args:
        node: the message.
        task: its task.
        above: the id of the task of the message that it answers, where that is in the conversation and has one.
    """
    if node.task is not None or node.id == task.request:
        return {""}
    linked, work = node.basis in LINKED, node.work
    if node.performative in ASKS:
        links = {TURN if node.basis == TURN else ""} if linked and above == task.id else set()
        return links | ({"" if node.handles else RETRY} if work.is_retry and not work.is_public else set())
    if linked and (node.basis != TURN or above is None):
        return {""}
    if linked:
        is_better = node.performative in ANSWERS and (above != task.id or asked_for(task, node))
        return ({TURN} if above == task.id else set()) | ({LATEST} if is_better else set())
    if node.performative in WITHDRAWN:
        return {TAKEN_BACK}
    if node.performative not in STATES:
        return {LATEST}
    says_more = node.meaning or work.has_progress or work.has_result
    return ({NEXT_WORD} if task.act == "query" else set()) | ({LATEST} if says_more else set())
