"""Replaying tasks: how each stands after its messages, in the order of the timeline. Pure, and without recursion."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from ..placing.nodes import StoredNode
from .events import FAILURES, LINKED, Wish, find_event
from .states import ENDED, NOT_BEGUN, STANDING, Found, follow, get_end_of_part

# A deadline further off is none.
MAX_SECONDS: Final = 10**9


class Step(NamedTuple):
    """A change: the message that caused it, the event, the state after it, and how the message belongs here."""

    message_id: uuid.UUID
    event: str
    state: str
    link: str


@dataclass(slots=True, eq=False)
class Play:
    """A task being replayed: it was passed on in the `mode`, and itself passed on in the mode `delegation`.

    `left_out` counts its changes that are not among `steps`: between the first and the latest of many.
    """

    task: Found
    within: Play | None = None
    wish: Wish = "work"
    place: bytes = b""
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
    left_out: int = 0
    # Whether one of the messages that come now says anything on it.
    is_touched: bool = False

    def meet(self, at: datetime | None) -> None:
        """Note that a word was said on it at this time."""
        self.is_touched = True
        if at is not None:
            self.first_at = at if self.first_at is None else min(self.first_at, at)
            self.last_at = at if self.last_at is None else max(self.last_at, at)

    @property
    def standing(self) -> tuple[bool, str] | None:
        """Whether another task gave rise to it, and its state; None of one that no message belongs to."""
        if not self.message_count:
            return None
        return self.within is not None and self.within.message_count > 0, self.state or STANDING[0].value


class Playing:
    """Plays tasks, message by message in the order of the timeline."""

    def take(self, play: Play, node: StoredNode) -> None:
        """One message of a task."""
        task = play.task
        if not play.message_count:
            play.place = node.place
        play.message_count += 1
        for concerned in (play, play.within):
            if concerned is not None:
                concerned.meet(node.at)
        time = node.at if node.is_timed else None
        if task.request == node.id:
            play.asked_at = None if node.work.is_public else time
            self._apply(play, "posted" if node.work.is_public else "asked", node)
            if play.within is not None:
                self._pass_on(play, play.within, node)
        else:
            by = "requester" if node.sender and node.sender == task.requester else "other"
            if by == "other":
                self._hear(play, node, time)
            event = self._find_event(play, node, by)
            if event is not None:
                if event == "delegated":
                    self._name_delegate(play, node)
                elif event == "asked-again" and len(node.receivers) == 1:
                    # Who is asked again owes the end; asked of somebody else, it is no longer who was asked first.
                    play.performer = node.receivers[0]
                self._apply(play, event, node)
        if node.work.deadline and (task.request == node.id or node.sender == task.requester):
            play.deadline = node.work.deadline
            play.deadline_at = _find_deadline(node, time)

    def _hear(self, play: Play, node: StoredNode, time: datetime | None) -> None:
        """Somebody who did not ask says a word on it."""
        if not play.is_answered:
            play.acknowledged_at = time
        play.is_answered = True
        play.performer = play.performer or node.sender or ""

    def _find_event(self, play: Play, node: StoredNode, by: str) -> str | None:
        parent = node.above
        return find_event(
            node.performative,
            by=by,
            status=node.meaning,
            wish=play.wish,
            answers=parent.performative if parent and node.basis in LINKED else None,
            is_retryable=bool(node.is_retryable),
            has_result=node.work.has_result,
            has_progress=node.work.has_progress,
            is_again=node.performative == (play.task.act or None),
            is_waiting=play.state == "waiting",
        )

    def _name_delegate(self, play: Play, node: StoredNode) -> None:
        play.delegate = node.receivers[0] if len(node.receivers) == 1 else ""
        play.delegation = node.work.mode

    def _pass_on(self, play: Play, parent: Play, node: StoredNode) -> None:
        """What a new task is to the one in the course of which it was asked; nothing where that has ended."""
        if parent.state in ENDED:
            play.within = None
            return
        if node.sender and node.sender == parent.task.requester:
            # Who asked for the whole asks for a part of it as well: that says nothing of how the whole stands.
            return
        self._hear(parent, node, node.at if node.is_timed else None)
        event = self._find_event(parent, node, "other")
        if event is not None:
            if event == "delegated":
                self._name_delegate(parent, node)
            self._apply(parent, event, node)

    def _apply(self, play: Play, event: str, node: StoredNode) -> None:
        """Follow an event, and where it ends a task, what that is to the one in the course of which it was asked."""
        cause: str | None = event
        while cause is not None:
            state = follow(play.state, cause)
            has_changed, play.state, play.is_touched = state != play.state, state, True
            play.retries += cause == "asked-again"
            play.failures += cause in FAILURES
            if has_changed or cause in FAILURES or cause == "asked-again":
                play.steps.append(Step(node.id, cause, state, node.link))
                play.is_inferred = play.is_inferred or bool(node.link)
            if has_changed:
                play.finished_at = node.at if state in ENDED and node.is_timed else None
            cause = None
            if has_changed and state in ENDED and play.within is not None:
                cause = get_end_of_part(play.wish, play.mode, state)
                play = play.within


def _find_deadline(node: StoredNode, time: datetime | None) -> datetime | None:
    """The instant of a deadline; of one that counts from now on None where the time of its message is not known."""
    work = node.work
    if work.instant is not None:
        try:
            said = datetime.fromisoformat(work.instant)
            return said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            return None
    if work.seconds is None or time is None or not 0 <= work.seconds <= MAX_SECONDS:
        return None
    return time + timedelta(seconds=work.seconds)
