"""States of tasks: what a message is to its task, and where that leads. Advisory, never what a wire claims.

The first of `EVENT_RULES` that fits a message decides which event it is; one table says where each event leads. An
event that has no row for a state changes nothing. docs/lifecycle.md is written from both.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple

from django.db.models import TextChoices

# What the acts that ask want: work to be done, an answer, or news for as long as it lasts.
Wish = Literal["work", "answer", "agreement", "news"]
WISHES: Final[Mapping[str, Wish]] = {
    "request": "work",
    "delegate": "work",
    "query": "answer",
    "propose": "agreement",
    "subscribe": "news",
}
ASKS: Final = frozenset(WISHES)
# The acts that say that something did not work.
FAILING: Final = frozenset({"failure", "not-understood"})

# What the status words of the wires mean to a task; what is not here means nothing to it.
STATUS_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "done": ("done", "complete", "completed", "finished", "succeeded", "success", "ok"),
    "running": ("running", "rn", "in_progress", "in-progress", "in progress", "working", "started", "partial success"),
    "waiting": (
        *("waiting", "wa", "blocked", "bl", "paused", "on_hold", "on-hold", "queued", "pending"),
        *("needs_input", "needs-input", "input_required", "input-required", "auth-required", "unclear"),
    ),
    "failed": ("failed", "failure", "error", "er"),
    "cancelled": ("cancelled", "canceled", "aborted"),
    "timed out": ("timed_out", "timed-out", "timed out", "timeout"),
    "refused": ("disagreed", "refused", "rejected", "declined"),
    "agreed": ("agreed", "accepted", "approved"),
}
_MEANINGS: Final = {word: meaning for meaning, words in STATUS_WORDS.items() for word in words}
MAX_STATUS: Final = max(map(len, _MEANINGS))


def read_status(status: str) -> str | None:
    """What a status word means to a task, a key of `STATUS_WORDS`; None where it is none that is known."""
    return _MEANINGS.get(status.strip().lower()) if 0 < len(status) <= MAX_STATUS else None


# What a message is to a task, by name, and what is said of the agent who acted: "executor acknowledged it".
EVENTS: Final[Mapping[str, str]] = {
    "asked": "asked for it",
    "posted": "put it up for everyone",
    "asked-again": "asked for it again",
    "acknowledged": "acknowledged it",
    "spoke": "answered with a statement",
    "proposed": "answered with a proposal",
    "progressed": "reported that it is under way",
    "waits": "reported that it waits",
    "asked-back": "asked something back",
    "answered-back": "gave what it waited for",
    "delegated": "passed it on",
    "done": "reported it done",
    "gave-result": "gave the result",
    "answered": "gave the answer",
    "agreed": "agreed to it",
    "turned-down": "turned it down",
    "accepted": "accepted the result",
    "sent-back": "rejected the result",
    "failed": "reported that it failed",
    "failed-for-now": "reported a failure, to be tried again",
    "not-understood": "did not understand it",
    "refused": "refused it",
    "cancelled": "cancelled it",
    "timed-out": "reported that it ran out of time",
    "delegate-done": "did what was transferred",
    "delegate-failed": "failed at what was transferred",
    "help-ended": "ended what was passed on",
}
FAILURES: Final = frozenset({"failed", "failed-for-now", "not-understood", "delegate-failed"})


class EventRule(NamedTuple):
    """One row: a message that fits all of it is this event; None fits anything. `by` is the requester, or any other
    (also where the wire does not say who spoke), `status` what its status word means, `wish` what the task wants,
    `answers` the act of the message answered."""

    event: str
    acts: frozenset[str]
    by: Literal["requester", "other"] | None = None
    status: str | None = None
    wish: frozenset[Wish] | None = None
    answers: frozenset[str] | None = None
    is_retryable: bool | None = None
    has_result: bool | None = None
    has_progress: bool | None = None
    is_again: bool | None = None
    is_waiting: bool | None = None


def _of(*names: str) -> frozenset[str]:
    return frozenset(names)


_WORK: Final[frozenset[Wish]] = frozenset({"work"})
_ANSWER: Final[frozenset[Wish]] = frozenset({"answer"})
_AGREEMENT: Final[frozenset[Wish]] = frozenset({"agreement"})
_SAID: Final = _of("inform", "observe", "progress")
_REPORTS: Final = _of("inform", "observe", "progress", "done")
_WORDS: Final = _of("inform", "observe", "progress", "acknowledge")

EVENT_RULES: Final[tuple[EventRule, ...]] = (
    # An act that asks, in a task that has been asked for: again, back, or of somebody else.
    EventRule("asked-again", _of("request", "delegate"), by="requester"),
    EventRule("asked-again", ASKS, by="requester", is_again=True),
    EventRule("delegated", _of("request", "delegate"), by="other"),
    EventRule("asked-back", _of("query"), by="other"),
    EventRule("proposed", _of("propose"), by="other"),
    # What the wire says of the status goes before the act that carries it.
    EventRule("failed", _REPORTS, status="failed"),
    EventRule("cancelled", _REPORTS | _of("acknowledge"), status="cancelled"),
    EventRule("timed-out", _REPORTS, status="timed out"),
    EventRule("waits", _WORDS, status="waiting"),
    EventRule("done", _SAID, status="done"),
    EventRule("progressed", _WORDS, status="running"),
    EventRule("turned-down", _of("acknowledge"), by="other", status="refused", wish=_AGREEMENT),
    EventRule("refused", _of("acknowledge"), by="other", status="refused"),
    EventRule("agreed", _of("acknowledge"), by="other", status="agreed", wish=_AGREEMENT),
    # The ends.
    EventRule("done", _of("done")),
    EventRule("failed-for-now", _of("failure"), is_retryable=True),
    EventRule("failed", _of("failure")),
    EventRule("not-understood", _of("not-understood"), by="other"),
    EventRule("cancelled", _of("cancel", "unsubscribe")),
    # Yes and no.
    EventRule("turned-down", _of("reject"), by="other", wish=_AGREEMENT),
    EventRule("refused", _of("reject"), by="other"),
    EventRule("sent-back", _of("reject"), by="requester", wish=_WORK),
    EventRule("sent-back", _of("evaluate"), by="requester", status="refused", wish=_WORK),
    EventRule("accepted", _of("evaluate"), by="requester", status="agreed", wish=_WORK),
    EventRule("agreed", _of("accept", "commit"), by="other", wish=_AGREEMENT),
    EventRule("acknowledged", _of("accept", "commit"), by="other"),
    EventRule("progressed", _of("accept"), by="requester", answers=_of("propose")),
    EventRule("accepted", _of("accept"), by="requester", wish=_WORK),
    # The rest of the way.
    EventRule("acknowledged", _of("acknowledge"), by="other"),
    EventRule("progressed", _of("progress")),
    EventRule("answered-back", _of("inform", "observe", "acknowledge", "done"), by="requester", is_waiting=True),
    EventRule("answered", _of("inform", "observe"), by="other", wish=_ANSWER),
    EventRule("progressed", _of("inform", "observe"), by="other", wish=frozenset({"news"})),
    EventRule("gave-result", _of("inform", "observe"), by="other", has_result=True),
    EventRule("progressed", _of("inform", "observe"), by="other", has_progress=True),
    EventRule("spoke", _of("inform", "observe", "evaluate"), by="other"),
)

_RULES_OF: Final[dict[str, list[tuple[str, dict[str, Collection[object]]]]]] = defaultdict(list)
for _rule in EVENT_RULES:
    _wanted = {name: value for name, value in zip(_rule._fields[2:], _rule[2:], strict=True) if value is not None}
    _values: dict[str, Collection[object]] = {
        name: value if isinstance(value, frozenset) else (value,) for name, value in _wanted.items()
    }
    for _act in _rule.acts:
        _RULES_OF[_act].append((_rule.event, _values))


def find_event(act: str | None, **said: object) -> str | None:
    """The event that a message is to its task, by what it says (`EventRule`); None where it is none."""
    for event, wanted in _RULES_OF.get(act or "", ()):
        if all(said[name] in values for name, values in wanted.items()):
            return event
    return None


# After these a request of the same agent is the same task, asked again.
RETRIED: Final = frozenset({"failure", "not-understood", "reject"})
# What withdraws something that its own sender asked for: of which act, "" for any.
WITHDRAWN: Final[Mapping[str, str]] = {"cancel": "", "unsubscribe": "subscribe"}
# The bases of a parent that was answered; what is adjacent only follows.
LINKED: Final = frozenset({"explicit", "correlation", "turn"})
# By dialect and basis, a link that only says where a message stands: the span around a span.
LIES_WITHIN: Final = ("otel", "explicit")
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
    """The event that the end of a task is to the task above it, by what was asked (`WISHES`) and its mode."""
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


# How a task stands by its acts: it goes on; it does, though what was transferred has ended; it failed and may go on; it
# failed and ended; it ended.
GOES_ON: Final = ""
HANDED_OVER: Final = "handed-over"
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
    def is_handed_over(self) -> bool:
        """Whether nothing has ended it but the end of what was transferred."""
        return self.ending == HANDED_OVER

    def is_still_done_by(self, sender: str | None) -> bool:
        """Whether this sender handed it over, so that a later word of its own shows that it is still at work."""
        return self.is_handed_over and bool(sender) and self.performer == sender

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
