"""The tasks of a conversation: what was asked in it, which messages belong to each, and how each stands.

Pure, and gone through without recursion: which task a message belongs to follows from the placed nodes alone
(`Membership`); then each is played through the table of `lifecycle`, in the order of the timeline.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from ..placing.nodes import StoredNode
from .lifecycle import ENDED, NOT_BEGUN, STANDING, find_end_of_part, follow
from .memberships import LINKED, Membership
from .signs import FAILURES, WISHES, Saying, Wish, find_event

# A deadline further off is none.
LONGEST_SECONDS: Final = 10**9


@dataclass(slots=True)
class Step:
    """A change: the message that caused it by its place, the event, the state after it, and how it belongs here."""

    at: int
    event: str
    state: str
    link: str


@dataclass(slots=True)
class Play:
    """A task being played. `mode` is that in which it was itself passed on; `delegation` that in which it passed on."""

    key: bytes
    native_id: str = ""
    request: int | None = None
    asked_elsewhere: uuid.UUID | None = None
    within: Play | None = None
    wish: Wish = "work"
    position: int = 0
    requester: str = ""
    performer: str = ""
    delegate: str = ""
    delegation: str = ""
    mode: str = ""
    state: str = NOT_BEGUN
    deadline: str = ""
    deadline_at: datetime | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    asked_at: datetime | None = None
    acknowledged_at: datetime | None = None
    finished_at: datetime | None = None
    message_count: int = 0
    retries: int = 0
    failures: int = 0
    is_answered: bool = False
    is_inferred: bool = False
    steps: list[Step] = field(default_factory=list)

    def meet(self, at: datetime | None) -> None:
        """Note that a word was said on it at this time."""
        if at is not None:
            self.first_at = at if self.first_at is None else min(self.first_at, at)
            self.last_at = at if self.last_at is None else max(self.last_at, at)


def play_tasks(nodes: Sequence[StoredNode]) -> list[Play]:
    """The tasks of a conversation, in the order in which they begin.

    Args:
        nodes: its placed nodes in the order of the timeline.
    """
    return _Playing(nodes).play()


class _Playing:
    def __init__(self, nodes: Sequence[StoredNode]) -> None:
        self._nodes = nodes
        self._membership = Membership(nodes)
        self._plays: list[Play] = []

    def play(self) -> list[Play]:
        members = self._membership
        self._plays = [
            Play(
                key=each.key,
                native_id=each.native_id,
                request=each.request,
                asked_elsewhere=each.asked_elsewhere,
            )
            for each in members.tasks
        ]
        for play, each in zip(self._plays, members.tasks, strict=True):
            play.within = None if each.within is None else self._plays[each.within]
        for play in self._plays:
            if play.request is not None:
                self._name_parties(play, self._nodes[play.request])
        for at, task in enumerate(members.task_of):
            if task is not None:
                self._take(self._plays[task], at)
        played = [play for play in self._plays if play.message_count]
        return sorted(played, key=lambda play: play.position)

    def _name_parties(self, play: Play, node: StoredNode) -> None:
        play.wish = WISHES[node.performative or ""]
        play.requester = node.sender or ""
        play.performer = node.receivers[0] if len(node.receivers) == 1 else ""
        play.mode = node.work.mode

    def _take(self, play: Play, at: int) -> None:
        """One message of a task."""
        node = self._nodes[at]
        if not play.message_count:
            play.position = at
        play.message_count += 1
        for concerned in (play, play.within):
            if concerned is not None:
                concerned.meet(node.at)
        link = self._membership.link_of.get(at, "")
        time = node.at if node.is_timed else None
        if play.request == at:
            play.asked_at = None if node.work.is_public else time
            self._apply(play, "posted" if node.work.is_public else "asked", at, link)
            if play.within is not None:
                self._pass_on(play, play.within, at)
        else:
            by = "requester" if node.sender and node.sender == play.requester else "other"
            if by == "other":
                self._hear(play, node, time)
            event = self._find_event(play, node, by)
            if event is not None:
                if event == "delegated":
                    self._name_delegate(play, node)
                self._apply(play, event, at, link)
        if node.work.deadline and (play.request == at or node.sender == play.requester):
            play.deadline = node.work.deadline
            play.deadline_at = _find_deadline(node, time)

    def _hear(self, play: Play, node: StoredNode, time: datetime | None) -> None:
        """Somebody who did not ask says a word on it."""
        if not play.is_answered:
            play.acknowledged_at = time
        play.is_answered = True
        play.performer = play.performer or node.sender or ""

    def _find_event(self, play: Play, node: StoredNode, by: str) -> str | None:
        asked = self._nodes[play.request].performative if play.request is not None else None
        parent = self._nodes[node.parent_at] if node.parent_at is not None else None
        return find_event(
            Saying(
                act=node.performative,
                by=by,
                status=node.meaning,
                wish=play.wish,
                answers=parent.performative if parent and node.basis in LINKED else None,
                is_retryable=bool(node.is_retryable),
                has_result=node.work.has_result,
                has_progress=node.work.has_progress,
                is_again=node.performative == asked,
                is_waiting=play.state == "waiting",
            )
        )

    def _name_delegate(self, play: Play, node: StoredNode) -> None:
        play.delegate = node.receivers[0] if len(node.receivers) == 1 else ""
        play.delegation = node.work.mode

    def _pass_on(self, play: Play, parent: Play, at: int) -> None:
        """What a new task is to the one in the course of which it was asked; nothing where that has ended."""
        node = self._nodes[at]
        if parent.state in ENDED:
            play.within = None
            return
        if node.sender and node.sender == parent.requester:
            # Who asked for the whole asks for a part of it as well: that says nothing of how the whole stands.
            return
        self._hear(parent, node, node.at if node.is_timed else None)
        event = self._find_event(parent, node, "other")
        if event is not None:
            if event == "delegated":
                self._name_delegate(parent, node)
            self._apply(parent, event, at, self._membership.link_of.get(at, ""))

    def _apply(self, play: Play, event: str, at: int, link: str) -> None:
        """Follow an event, and where it ends a task, what that is to the one in the course of which it was asked."""
        cause: str | None = event
        node = self._nodes[at]
        while cause is not None:
            state = follow(play.state, cause)
            has_changed, play.state = state != play.state, state
            play.retries += cause == "asked-again"
            play.failures += cause in FAILURES
            if has_changed or cause in FAILURES or cause == "asked-again":
                play.steps.append(Step(at, cause, state, link))
                play.is_inferred = play.is_inferred or bool(link)
            if has_changed:
                play.finished_at = node.at if state in ENDED and node.is_timed else None
            cause = None
            if has_changed and state in ENDED and play.within is not None:
                cause = find_end_of_part(play.wish, play.mode, state)
                play = play.within


def _find_deadline(node: StoredNode, time: datetime | None) -> datetime | None:
    """The instant of a deadline; of one that counts from now on None where the time of its message is not known."""
    work = node.work
    if work.instant is not None:
        try:
            said = datetime.fromisoformat(work.instant)
        except ValueError:
            return None
        return said if said.tzinfo else said.replace(tzinfo=UTC)
    if work.seconds is None or time is None or not 0 <= work.seconds <= LONGEST_SECONDS:
        return None
    return time + timedelta(seconds=work.seconds)


def list_states(plays: Sequence[Play]) -> tuple[set[str], set[str]]:
    """(the states of the tasks that no other gave rise to, those of the others)."""
    states: tuple[set[str], set[str]] = (set(), set())
    for play in plays:
        is_part = play.within is not None and play.within.message_count > 0
        states[is_part].add(play.state or STANDING[0].value)
    return states
