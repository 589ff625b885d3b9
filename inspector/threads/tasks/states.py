"""States of tasks: one table of where each event leads. Advisory, never what a wire claims. An event that has no row
for a state changes nothing. docs/lifecycle.md is written from this and `events.EVENT_RULES`."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import TextChoices

from .events import WISHES, Wish


class State(TextChoices):
    """How a task stands."""

    OPEN = "open", "Open"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    IN_PROGRESS = "in-progress", "In progress"
    WAITING = "waiting", "Waiting"
    DELEGATED = "delegated", "Delegated"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    TIMED_OUT = "timed-out", "Timed out"
    STALLED = "stalled", "Stalled"


# Before anything was said of a task, where an answer is the first that stands in the log.
NOT_BEGUN: Final = ""
STANDING: Final = (State.OPEN, State.ACKNOWLEDGED, State.IN_PROGRESS, State.WAITING, State.DELEGATED)
ENDED: Final = (State.DONE, State.FAILED, State.CANCELLED, State.TIMED_OUT)
_BEGUN: Final = (NOT_BEGUN, *STANDING)
_EARLY: Final = (NOT_BEGUN, State.OPEN)
_NOT_DONE: Final = (*_BEGUN, State.FAILED, State.TIMED_OUT)
_NOT_FAILED: Final = (*_BEGUN, State.DONE, State.TIMED_OUT)


class Transition(NamedTuple):
    """One row: from any of these states the event leads to `to`; `why` says what the row rests on."""

    event: str
    sources: tuple[str, ...]
    to: str
    why: str


TRANSITIONS: Final[tuple[Transition, ...]] = (
    Transition("asked", (NOT_BEGUN,), State.OPEN, "a request is open until somebody replies to it"),
    Transition("posted", (NOT_BEGUN,), State.DONE, "a post has no named recipient: no answer is owed"),
    Transition("asked-again", ENDED, State.OPEN, "repeated after its end it is open again: a retry"),
    Transition("acknowledged", _EARLY, State.ACKNOWLEDGED, "it arrived; later ones say nothing new"),
    Transition("spoke", _EARLY, State.ACKNOWLEDGED, "it arrived; a statement does not say that it is done"),
    Transition("proposed", (NOT_BEGUN,), State.OPEN, "a proposal before anything was asked shows no more than itself"),
    Transition("proposed", (State.OPEN,), State.ACKNOWLEDGED, "a proposal shows that what was asked arrived"),
    Transition(
        "progressed",
        (*_EARLY, State.ACKNOWLEDGED, State.WAITING),
        State.IN_PROGRESS,
        "work goes on; a task that was passed on stays delegated until it ends",
    ),
    Transition("waits", _BEGUN, State.WAITING, "blocked, queued or short of something"),
    Transition("asked-back", _BEGUN, State.WAITING, "the agent asked needs an answer first"),
    Transition("answered-back", (State.WAITING,), State.IN_PROGRESS, "what it waited for was given"),
    Transition("delegated", _BEGUN, State.DELEGATED, "somebody else has it now, in the mode that the raw message says"),
    Transition("done", _NOT_DONE, State.DONE, "finished; also after a failure, if it was done after all"),
    Transition("gave-result", _NOT_DONE, State.DONE, "a result was named, and no status that says otherwise"),
    Transition("answered", _NOT_DONE, State.DONE, "a question is done when it is answered"),
    Transition("agreed", _BEGUN, State.DONE, "a proposal is done when somebody agrees"),
    Transition("turned-down", _BEGUN, State.DONE, "a proposal that was turned down has its answer: nothing failed"),
    Transition(
        "accepted",
        (State.ACKNOWLEDGED, State.IN_PROGRESS, State.WAITING, State.DELEGATED),
        State.DONE,
        "who asked is content",
    ),
    Transition("sent-back", (*STANDING, State.DONE), State.IN_PROGRESS, "who asked is not content: the work goes on"),
    Transition("failed", _NOT_FAILED, State.FAILED, "nobody says that it may be tried again"),
    Transition("failed-for-now", _NOT_FAILED, State.OPEN, "a failure that may be tried again leaves it open"),
    Transition("not-understood", _BEGUN, State.FAILED, "a request that was not understood is not done"),
    Transition("refused", _BEGUN, State.FAILED, "the agent asked will not do it"),
    Transition("cancelled", _BEGUN, State.CANCELLED, "withdrawn; what comes after that changes nothing"),
    Transition("timed-out", _BEGUN, State.TIMED_OUT, "the raw message itself says that time ran out"),
    Transition("delegate-done", STANDING, State.DONE, "transferred: the new task ended, and so did this one"),
    Transition("delegate-failed", STANDING, State.FAILED, "transferred: the new task ended, and so did this one"),
    Transition(
        "help-ended",
        (State.DELEGATED, State.WAITING),
        State.IN_PROGRESS,
        "forked, assisted, or asked back in vain: the first agent asked goes on and owes the end",
    ),
)
_TARGETS: Final = {(row.event, str(source)): str(row.to) for row in TRANSITIONS for source in row.sources}


def follow(state: str, event: str) -> str:
    """The state after an event; the same where the table has no row for it."""
    return _TARGETS.get((event, state), state)


# By how the new task ended: what that is to the one that was transferred, and to the one that waited for an answer.
TRANSFERRED: Final[Mapping[str, str]] = {
    State.DONE: "delegate-done",
    State.FAILED: "delegate-failed",
    State.TIMED_OUT: "delegate-failed",
    State.CANCELLED: "help-ended",
}
ASKED_BACK: Final[Mapping[str, str]] = {State.DONE: "answered-back"}


def get_end_of_part(wish: str, mode: str, state: str) -> str:
    """The event that the end of a task is to the task above it, by what was asked (`events.WISHES`) and its mode."""
    ends = TRANSFERRED if mode == "transfer" else ASKED_BACK if wish == "answer" else {}
    return ends.get(state, "help-ended")


def derive_state(roots: Collection[str], others: Collection[str] = ()) -> str:
    """How a conversation stands, from the states of its top tasks; without any, from those of all others."""
    states = set(roots or others)
    if not states or not states.isdisjoint(STANDING):
        return str(State.OPEN)
    if not states.isdisjoint((State.FAILED, State.TIMED_OUT)):
        return str(State.FAILED)
    return str(State.DONE if State.DONE in states else State.CANCELLED)


# How a task stands by its acts: it goes on; it failed and may go on; it failed and ended; it ended.
GOES_ON: Final = ""
FAILED_FOR_NOW: Final = "failed-for-now"
FAILED: Final = "failed"
FINISHED: Final = "ended"


class Step(NamedTuple):
    """A change: the message that caused it, the event, the state after it, and how the message belongs here."""

    message_id: uuid.UUID
    event: str
    state: str
    link: str


@dataclass(slots=True, eq=False)
class TaskState:
    """A task as its messages leave it, those that were gone through so far. `request` is the id of the message that
    asked, `requester` and `act` what it says; the first is None where no message of the conversation did. `ends` counts
    how often it has ended by its acts, `ending` how it stands by them. `part_of` is the key of the task that it is part
    of as the wire says, `within` the one that it goes on within, None where that had ended. It was passed on in the
    `mode`, and itself passed on in the mode `delegation`. `left_out` counts its changes between the first and the
    latest of many."""

    key: bytes
    id: uuid.UUID
    native_id: str = ""
    request: uuid.UUID | None = None
    requester: str = ""
    act: str = ""
    asked_elsewhere: uuid.UUID | None = None
    ends: int = 0
    ending: str = GOES_ON
    part_of: bytes | None = None
    within: TaskState | None = None
    wish: Wish = "work"
    performer: str = ""
    delegate: str = ""
    delegation: str = ""
    mode: str = ""
    state: str = NOT_BEGUN
    deadline: str = ""
    deadline_at: datetime | None = None
    asked_at: datetime | None = None
    acknowledged_at: datetime | None = None
    finished_at: datetime | None = None
    is_answered: bool = False
    # What its messages add up to.
    place: bytes = b""
    first_at: datetime | None = None
    last_at: datetime | None = None
    message_count: int = 0
    retries: int = 0
    failures: int = 0
    is_inferred: bool = False
    steps: list[Step] = field(default_factory=list)
    left_out: int = 0
    # Whether one of the messages that come now belongs to it or says anything on it.
    is_touched: bool = False

    def meet(self, at: datetime | None) -> None:
        """Note that a word was said on it at this time."""
        self.is_touched = True
        if at is not None:
            self.first_at = at if self.first_at is None else min(self.first_at, at)
            self.last_at = at if self.last_at is None else max(self.last_at, at)

    def name_request(self, message_id: uuid.UUID, sender: str, act: str, receiver: str, mode: str) -> None:
        """Say which message asked for it."""
        self.request, self.requester, self.act = message_id, sender, act
        self.wish, self.performer, self.mode = WISHES[act], receiver, mode

    def is_asked_by(self, sender: str | None) -> bool:
        """Whether this sender is who asked for it."""
        return self.request is not None and bool(sender) and self.requester == sender

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, and was not asked for again since."""
        return self.ending in (FAILED, FINISHED)

    @property
    def has_failed(self) -> bool:
        """Whether the latest end of it was a failure."""
        return self.ending in (FAILED_FOR_NOW, FAILED)

    def go_on(self) -> None:
        """It is asked for again."""
        self.ending = GOES_ON

    def fail(self, *, is_end: bool) -> None:
        """It failed, and may be tried again unless that was its end."""
        self._end(FAILED if is_end or self.has_ended else FAILED_FOR_NOW)

    def end(self) -> None:
        """It has ended otherwise than by failing."""
        self._end(FINISHED)

    def _end(self, ending: str) -> None:
        had_ended = self.has_ended
        self.ending = ending
        self.ends += self.has_ended and not had_ended


def make_key(*parts: str) -> bytes:
    """The key of a task within its conversation, from what makes it this one; 32 bytes."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def key_of_id(run: int, native_id: str) -> bytes:
    """The key of a task that has an id on the wire."""
    return make_key("id", str(run), native_id)


def make_task_id(conversation_id: uuid.UUID, key: bytes) -> uuid.UUID:
    """The id of a task: it follows from what makes it this one, so that an address of it holds when it changes."""
    return uuid.UUID(bytes=hashlib.sha256(conversation_id.bytes + key).digest()[:16], version=5)
