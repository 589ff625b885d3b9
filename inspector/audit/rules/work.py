"""Rules over what was asked (never answered, late, handed on in circles, tried again in vain), and over what agents
make of answers: not waiting for one, judging their own work.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from inspector.threads.states import STANDING
from inspector.threads.tasks import STALLED_AFTER, read_steps

from ..findings.loading import RESULTS
from ..findings.scene import Scene, SeenTask
from .rule import Hit, Rule


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


_REASKED: Final = "asked-again"
UNANSWERED: Final = "unanswered"
# A chain of failures of which fewer tell nothing.
CASCADE: Final = 3
_A_MINUTE: Final = 60


def _find_unanswered(scene: Scene) -> Iterator[Hit]:
    # What two send each other sealed may be the answer: nobody without their key can say that there is none.
    secret = {frozenset((message.sender, name)) for message in scene.sealed for name in message.receivers}
    for task in scene.tasks:
        if frozenset((task.requester, task.performer)) in secret:
            continue
        # What has a deadline has a rule of its own; and where nobody is named, nobody owes anybody an answer.
        if task.deadline_at is not None or not (task.requester or task.performer):
            continue
        if task.request and task.act in ("request", "query") and _is_unheard(task, scene):
            asked = f"{name_agent(task.requester)} asked {name_agent(task.performer, 'without naming a recipient')}"
            yield Hit(
                message=task.request,
                text=f"{asked}; no reply to it is known.",
                due_at=task.last_at + STALLED_AFTER,
            )


def _is_unheard(task: SeenTask, scene: Scene) -> bool:
    return not (task.is_answered or task.request in scene.elsewhere) and task.state in STANDING


def name_agent(agent: str, otherwise: str = "Somebody") -> str:
    """An agent in a sentence; a number alone would read as a count."""
    return f"agent {agent}" if agent.isdecimal() else agent or otherwise


def _find_unanswered_delegations(scene: Scene) -> Iterator[Hit]:
    for task in scene.tasks:
        if task.request and task.act == "delegate" and _is_unheard(task, scene):
            handed = f"{name_agent(task.requester)} handed it to {name_agent(task.performer, 'no named recipient')}"
            yield Hit(
                message=task.request,
                text=f"{handed}; no reply to it is known.",
                due_at=task.last_at + STALLED_AFTER,
            )


def _find_missed_deadlines(scene: Scene) -> Iterator[Hit]:
    for task in scene.tasks:
        if task.deadline_at is None or task.request is None:
            continue
        if task.finished_at is not None and task.finished_at > task.deadline_at:
            yield Hit(
                message=task.request,
                text=f"It was finished {_say_delay(task.finished_at, task.deadline_at)} after its deadline, "
                f"{_say_moment(task.deadline_at)}.",
            )
        elif task.finished_at is None and task.state in STANDING:
            yield Hit(
                message=task.request,
                text=f"Its deadline, {_say_moment(task.deadline_at)}, passed; it is not known to be finished.",
                due_at=task.deadline_at,
            )


def _say_delay(end: datetime, deadline: datetime) -> str:
    seconds = (end - deadline).total_seconds()
    return f"{seconds / _A_MINUTE:,.0f} minutes" if seconds >= 2 * _A_MINUTE else f"{seconds:,.0f} seconds"


def _say_moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _find_delegation_circles(scene: Scene) -> Iterator[Hit]:
    """Work that comes back to an agent who had handed it on, and that nobody has done since."""
    for task, before in find_rounds(scene.tasks):
        if task.request and before.request and before.state in STANDING:
            yield Hit(
                message=task.request,
                text=f"{task.requester or 'Somebody'} hands it back to {task.performer}, who had handed it on.",
                related=(before.request,),
            )


def _find_ends_taken_back(scene: Scene) -> Iterator[Hit]:
    """Done and then failed; refused or failed for good and then done, with nothing asked again or sent back between.

    Failed for good means that the error itself says so: `retry` is false.
    """
    final = {message.id for message, error in scene.failures if error.get("retryable") is False}
    for task in scene.tasks:
        if not (task.failures or '"refused"' in task.steps):
            continue
        for before, step in pairwise(read_steps(task.steps)):
            end = "failed for good" if before.message_id in final else END_OF.get(before.event, "")
            said = TAKEN_BACK.get((end, END_OF.get(step.event, "")))
            if said:
                yield Hit(message=step.message_id, text=said, related=(before.message_id,))


# What an event says of an end.
END_OF: Final[Mapping[str, str]] = {
    **dict.fromkeys(("done", "gave-result", "answered"), "done"),
    **dict.fromkeys(("failed", "failed-for-now"), "failed"),
    "refused": "refused",
}
TAKEN_BACK_RULE: Final = "end-taken-back"
TAKEN_BACK: Final[Mapping[tuple[str, str], str]] = {
    ("done", "failed"): "Reported failed after it was reported done.",
    ("refused", "done"): "Reported done after it was refused.",
    ("failed for good", "done"): "Reported done after it failed, although the error said not to retry.",
}


def _find_vain_retries(scene: Scene) -> Iterator[Hit]:
    """What was asked again after an error whose message says that a retry is of no use."""
    final = {message.id for message, error in scene.failures if error.get("retryable") is False}
    for task in scene.tasks if final else ():
        failed = None
        for step in read_steps(task.steps):
            if step.message_id in final:
                failed = step.message_id
            elif step.event == _REASKED and failed is not None:
                yield Hit(
                    message=step.message_id,
                    text="It is asked again, although the error before said not to retry.",
                    related=(failed,),
                )
                failed = None


def _find_cascades(scene: Scene) -> Iterator[Hit]:
    """Failures each of which answers or names another, told at the first of the chain."""
    failures = {message.id: (message, error) for message, error in scene.failures}
    ids = {message.native_id: message.id for message, _ in scene.failures if message.native_id}
    origin: dict[uuid.UUID, uuid.UUID] = {}
    for message, error in scene.failures:
        cause = message.parent if message.parent in failures else ids.get(str(error.get("cause") or ""))
        origin[message.id] = origin.get(cause, cause) if cause is not None and cause != message.id else message.id
    chains: dict[uuid.UUID, list[uuid.UUID]] = {}
    for name, first in origin.items():
        chains.setdefault(first, []).append(name)
    for first, members in chains.items():
        if len(members) >= CASCADE and first in failures:
            yield Hit(
                message=failures[first][0].id,
                text=f"{len(members) - 1} more failures came of this one.",
                related=tuple(failures[each][0].id for each in members if each != first)[:20],
            )


def _find_unapproved(scene: Scene) -> Iterator[Hit]:
    """Work reported done by an agent whose own question or proposal about it had no answer yet."""
    works = {bytes(task.key): task for task in scene.tasks}
    for asked in scene.tasks:
        work = works.get(bytes(asked.within_key or b""))
        if work is None or asked.act not in ("query", "propose") or asked.request is None or work.finished_at is None:
            continue
        is_own = bool(asked.requester) and asked.requester == work.performer
        is_answered = asked.finished_at is not None and asked.finished_at <= work.finished_at
        if not is_own or is_answered or asked.first_at > work.finished_at:
            continue
        done = next((step for step in read_steps(work.steps) if step.event in RESULTS), None)
        if done is not None:
            asking = "proposal to" if asked.act == "propose" else "question to"
            whom = name_agent(asked.performer, "no named recipient")
            yield Hit(
                message=done.message_id,
                text=f"{name_agent(asked.requester)} reported it done before its own {asking} {whom} was answered.",
                related=(asked.request,),
            )


def _find_own_judgements(scene: Scene) -> Iterator[Hit]:
    for message, own in scene.judged:
        judges = "accepts" if message.performative == "accept" else "evaluates"
        yield Hit(message=message.id, text=f"{name_agent(message.sender)} {judges} its own work.", related=(own.id,))


RULES: Final = (
    Rule(
        code=UNANSWERED,
        title="Request never answered",
        why="Expected work may never have started.",
        severity="warning",
        group="sequence",
        look=_find_unanswered,
    ),
    Rule(
        code="delegation-unanswered",
        title="Delegation never accepted",
        why="The first requester believes that somebody is working on it.",
        severity="warning",
        group="sequence",
        look=_find_unanswered_delegations,
    ),
    Rule(
        code="deadline-missed",
        title="Deadline missed",
        why="Promised work came late or is missing.",
        severity="warning",
        group="sequence",
        look=_find_missed_deadlines,
    ),
    Rule(
        code="delegation-circle",
        title="Circular delegation",
        why="Everybody waits for somebody else, and nobody does the work.",
        severity="warning",
        group="sequence",
        look=_find_delegation_circles,
    ),
    Rule(
        code=TAKEN_BACK_RULE,
        title="Outcome reversed",
        why="A reader of the first outcome relied on something that changed: work that failed, or a refusal.",
        severity="warning",
        group="sequence",
        look=_find_ends_taken_back,
    ),
    Rule(
        code="vain-retry",
        title="Retried a permanent error",
        why="The error ruled out a retry: an agent that continues wastes work or overloads a service.",
        severity="warning",
        group="protocol",
        look=_find_vain_retries,
    ),
    Rule(
        code="error-cascade",
        title="Failure cascade",
        why="The first failure is the one to fix; the others follow from it.",
        severity="warning",
        group="sequence",
        look=_find_cascades,
    ),
    Rule(
        code="unapproved",
        title="Done without waiting for an answer",
        why="If the question asked for approval, the work was done without it.",
        severity="warning",
        group="sequence",
        look=_find_unapproved,
    ),
    Rule(
        code="own-judgement",
        title="Agent approved its own work",
        why="An agent that checks its own work proves nothing: another one should have judged it.",
        severity="warning",
        group="sequence",
        look=_find_own_judgements,
    ),
)
