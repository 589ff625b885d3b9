"""Rounds: work that was handed on and comes back to who had handed it on. In time that grows with the tasks alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ..findings.scene import SeenTask


def find_rounds(tasks: Sequence[SeenTask]) -> Iterator[tuple[SeenTask, SeenTask]]:
    """Each task that hands work back, and the nearest above it by which that agent had handed it on; in their order."""
    walk = _Walk(tasks)
    walk.go_through()
    for task in tasks:
        before = walk.found.get(bytes(task.key))
        if before is not None:
            yield task, before


class _Walk:
    """The tasks gone through from the top, while it is kept who handed on what is above."""

    def __init__(self, tasks: Sequence[SeenTask]) -> None:
        self.found: dict[bytes, SeenTask] = {}
        self._tasks = {bytes(task.key): task for task in tasks}
        self._below: dict[bytes, list[SeenTask]] = defaultdict(list)
        self._handed: dict[str, list[SeenTask]] = defaultdict(list)
        self._reached: set[bytes] = set()
        for task in tasks:
            if above := self._find_above(task):
                self._below[bytes(above.key)].append(task)

    def go_through(self) -> None:
        """Find what comes back below each task that is in the course of none, and then in what goes round itself."""
        for task in self._tasks.values():
            if self._find_above(task) is None:
                self._go_down(task)
        for task in self._tasks.values():
            if bytes(task.key) not in self._reached:
                self._go_round(self._find_ring(task))

    def _find_above(self, task: SeenTask) -> SeenTask | None:
        return None if task.within_key is None else self._tasks.get(bytes(task.within_key))

    def _find_ring(self, task: SeenTask) -> list[SeenTask]:
        """Tasks each of which is in the course of the one before it, and the first in that of the last."""
        seen: dict[bytes, SeenTask] = {}
        while bytes(task.key) not in seen:
            seen[bytes(task.key)] = task
            task = self._find_above(task) or task
        path = list(seen.values())
        return path[path.index(task) :][::-1]

    def _go_round(self, ring: Sequence[SeenTask]) -> None:
        """All others of a ring are above each of its tasks, those that come before it in the ring the nearest."""
        self._handed.clear()
        for task in ring:
            if _hands_on(task):
                self._handed[task.requester].append(task)
        self._below[bytes(ring[-1].key)].remove(ring[0])
        self._go_down(ring[0])
        self._handed.clear()

    def _go_down(self, top: SeenTask) -> None:
        # Each waits to be entered, or, once it was, to be left.
        waiting = [(top, False)]
        while waiting:
            task, is_entered = waiting.pop()
            if is_entered:
                self._handed[task.requester].pop()
                continue
            self._reached.add(bytes(task.key))
            if _hands_on(task):
                before = self._handed[task.performer][-1:] if task.performer else []
                if before and before[0].key != task.key:
                    self.found[bytes(task.key)] = before[0]
                self._handed[task.requester].append(task)
                waiting.append((task, True))
            waiting.extend((each, False) for each in self._below[bytes(task.key)])


def _hands_on(task: SeenTask) -> bool:
    return task.act == "delegate" and task.request is not None
