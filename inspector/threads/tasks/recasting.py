"""Tasks gone through again from all their messages: what makes each, what it is part of, and how it is played.

The messages are known to belong to them. What else `Membership` decides of a task is decided here as it does: who
asked, what it is part of, and how it stands by its acts.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Final

from ..models import Task
from ..placing.nodes import StoredNode
from ..uncertainty import UncertainError
from .asked import Asked
from .found import Found, key_of_id, make_key, make_task_id
from .lifecycle import ENDED, NOT_BEGUN, State
from .memberships import LINKED, find_links
from .plays import Play, Playing
from .reloading import Reloaded
from .signs import ASKS
from .standing import asked_for

_WORK: Final = frozenset({"request", "delegate"})
# Stands for how a message belongs to its task where nothing that is stored says it.
_UNKNOWN: Final = "unknown"

Stand = tuple[int, bytes]


class Cast:
    """The tasks that are played again, with a window as it was or as it is.

    A task that none of them is, but that one of them is part of, is a stub: of it no more is known than whether that
    one was dropped, because it had ended.

    Args:
        stored: the tasks as they are stored, and their messages outside of the window.
        window: the messages of the window, placed and assigned; none of them is changed.
        links: how the messages outside belong to their tasks, by their ids, as far as it is known; found out more.
    """

    def __init__(self, stored: Reloaded, window: Sequence[StoredNode], links: dict[uuid.UUID, str]) -> None:
        self._stored = stored
        self._window = {node.id: node for node in window}
        self._links = links
        self.founds: dict[bytes, Found] = {}
        self._by_id: dict[uuid.UUID, Found] = {}
        # What each of them is part of where that is none of them, by its key.
        self.stubs: dict[bytes, Found] = {}
        self._outside = [copy(node) for node in stored.outside]
        self.nodes: list[StoredNode] = []
        self._gather(window)
        # What answers them in the window may belong to any task.
        self._everything = self._window | {node.id: node for node in self.nodes}
        self._done: set[uuid.UUID] = set()
        # Where messages stand: before the window (0), in it (1) or after it (2), and where there.
        self.stands: dict[uuid.UUID, Stand] = {
            node.id: (0 if node.place < stored.span.first else 2, node.place) for node in stored.outside
        }
        self.stands |= {node.id: (1, rank.to_bytes(4)) for rank, node in enumerate(window)}
        self._find_requests()
        self._prove_alike()
        self._find_links()
        for node in self._in_order_of_assigning():
            self._assign(node)
        self.plays = self._play()

    def list_messages(self, key: bytes) -> list[StoredNode]:
        """The messages of one of the tasks, in the order of the timeline."""
        task = self.founds[key]
        return [node for node in self.nodes if node.of_task is task]

    def list_ends(self, key: bytes) -> list[tuple[Stand, bool]]:
        """From where on one of the tasks has ended, and from where on it has not."""
        play = self.plays.get(key)
        return [(self.stands[step.message_id], step.state in ENDED) for step in play.steps] if play is not None else []

    def _gather(self, window: Sequence[StoredNode]) -> None:
        """The messages of the tasks, each in the order of the timeline, with tasks of their own."""
        outside, span = self._outside, self._stored.span
        own = [copy(node) for node in window if node.of_task is not None and node.of_task.key in self._stored.keys]
        self.nodes = [
            *(node for node in outside if node.place < span.first),
            *own,
            *(node for node in outside if node.place > span.last),
        ]
        keys = {row.pk: key for key, row in self._stored.rows.items()}
        for key in self._stored.keys:
            row = self._stored.rows.get(key)
            self._add(Found(key, self._make_id(key), row.native_id if row is not None else ""))
        for node in own:
            if node.of_task is not None:
                task = self.founds[node.of_task.key]
                task.native_id, node.of_task = node.of_task.native_id, task
        by_id = self._window | {node.id: node for node in self.nodes}
        for node in outside:
            node.of_task = self.founds[keys[node.task_id]] if node.task_id is not None else None
            node.above = None
            if node.parent is not None:
                node.above = by_id.get(node.parent) or self._stored.parents.get(node.parent)

    def _make_id(self, key: bytes) -> uuid.UUID:
        return make_task_id(self._stored.conversation_id, key)

    def _add(self, task: Found) -> None:
        self.founds[task.key] = self._by_id[task.id] = task

    def _find_requests(self) -> None:
        """Who asked: for a task with an id the first to ask for work, else the first to ask; else its own request."""
        for asking in (_WORK, ASKS):
            for node in self.nodes:
                task = node.of_task
                if task is None or task.request is not None or node.performative not in asking:
                    continue
                if node.task is not None or task.key == make_key("request", node.id.hex):
                    task.request, task.requester, task.act = node.id, node.sender or "", node.performative or ""

    def _prove_alike(self) -> None:
        """What the messages of the window were assigned by is what going through all messages comes to."""
        for node in self._window.values():
            given = node.of_task
            task = self.founds.get(given.key) if given is not None else None
            if task is None or given is None:
                continue
            if (task.request, task.requester, task.act) != (given.request, given.requester, given.act):
                raise UncertainError

    def _find_links(self) -> None:
        for node in self._outside:
            if node.id not in self._links and node.of_task is not None:
                above = self._find_above(node)
                found = find_links(node, node.of_task, above.id if above is not None else None)
                self._links[node.id] = found.pop() if len(found) == 1 else _UNKNOWN
            node.link = self._links.get(node.id, "")

    def _find_above(self, node: StoredNode) -> Found | None:
        """The task of the message that one answers: the one that is played again, where it is one of those."""
        above = node.above
        if above is None or node.basis not in LINKED:
            return None
        task = above.of_task
        if task is not None:
            return self.founds.get(task.key, task)
        if above.task_id is None or above.id in self._window:
            return None
        if above.task_id in self._by_id:
            return self._by_id[above.task_id]
        row = self._stored.around.get(above.task_id)
        return _make_found(row) if row is not None else Found(b"", above.task_id)

    def _in_order_of_assigning(self) -> Iterator[StoredNode]:
        """The messages in order, but what stands later than one that answers it before that one: see `Membership`."""
        own = {node.id: node for node in self.nodes}
        everything = self._everything
        done = self._done
        for start in sorted(everything, key=self.stands.__getitem__):
            waiting = [start]
            while waiting:
                pk = waiting[-1]
                above = everything[pk].above
                is_later = above is not None and self.stands.get(above.id, (0, b"")) > self.stands[pk]
                if above is not None and is_later and not {above.id, pk} & done:
                    waiting.append(above.id)
                    continue
                waiting.pop()
                if pk in own and pk not in done:
                    yield own[pk]
                done.add(pk)

    def _assign(self, node: StoredNode) -> None:
        task = node.of_task
        if task is None:
            return
        is_request = task.request == node.id
        if task.within is None and task.key not in self.stubs and (is_request or node.task is not None):
            self._place_within(task, node, is_request=is_request)
        if node.cited is not None and node.parent is not None and task.key == make_key("cited", node.cited.hex()):
            task.asked_elsewhere = node.parent
        Asked().note_end(node, task, is_own=asked_for(task, node))

    def _is_above_known(self, node: StoredNode) -> bool:
        """Whether what a message answers has its task by now: not where that comes between it and what answers it."""
        return node.above is None or node.above.id not in self._everything or node.above.id in self._done

    def _place_within(self, task: Found, node: StoredNode, *, is_request: bool) -> None:
        if node.task is not None and node.work.within:
            key = key_of_id(node.run, node.work.within)
            within = self.founds.get(key) or Found(key, self._make_id(key), node.work.within)
            within.native_id = node.work.within
        else:
            above = self._find_above(node) if is_request and self._is_above_known(node) else None
            if above is None or asked_for(above, node):
                return
            within = above
        if within is task:
            return
        if within.key in self.founds:
            task.within = within
        elif within.key:
            task.within = self.stubs[task.key] = Found(within.key, within.id, within.native_id)
        else:
            raise UncertainError

    def _play(self) -> dict[bytes, Play]:
        stubs = {}
        for key, stub in self.stubs.items():
            row = self._stored.rows.get(key)
            is_dropped = row is not None and row.within_key is None
            is_stored = self._stored.find_around(stub.key) is not None
            stubs[stub] = Play(stub, state=State.DONE if is_dropped else NOT_BEGUN, message_count=int(is_stored))
        playing = Playing(stubs)
        playing.play(self.nodes)
        plays = {task.key: play for task, play in playing.plays.items() if play.task.key in self.founds}
        if any(step.link == _UNKNOWN for play in plays.values() for step in play.steps):
            raise UncertainError
        return plays


def _make_found(row: Task) -> Found:
    is_asked = bool(row.act)
    return Found(bytes(row.key), row.pk, row.native_id, row.request if is_asked else None, row.requester, row.act)


def list_windowed(window: Mapping[uuid.UUID, StoredNode]) -> dict[bytes, Found]:
    """The tasks that the messages of a window belong to and those that these are part of, by key."""
    found: dict[bytes, Found] = {}
    for node in window.values():
        task = node.of_task
        while task is not None and task.key not in found:
            found[task.key] = task
            task = task.within
    return found
