"""What an act is to a task: the first row of `SIGNS` that fits a message names its event. `lifecycle` follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

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

# What the status words of the wires mean to a task; what is not here means nothing to it.
STATUS_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "done": ("done", "complete", "completed", "finished", "succeeded", "success", "ok"),
    "running": ("running", "rn", "in_progress", "in-progress", "in progress", "working", "started", "partial success"),
    "waiting": (
        *("waiting", "wa", "blocked", "bl", "paused", "on_hold", "on-hold", "queued", "pending"),
        *("needs_input", "needs-input", "input_required", "input-required", "unclear"),
    ),
    "failed": ("failed", "failure", "error", "er"),
    "cancelled": ("cancelled", "canceled", "aborted"),
    "timed out": ("timed_out", "timed-out", "timed out", "timeout"),
    "refused": ("disagreed", "refused", "rejected", "declined"),
    "agreed": ("agreed", "accepted"),
}
_MEANINGS: Final = {word: meaning for meaning, words in STATUS_WORDS.items() for word in words}
LONGEST_STATUS: Final = max(map(len, _MEANINGS))


def read_status(status: str) -> str | None:
    """What a status word means to a task, a key of `STATUS_WORDS`; None where it is none that is known."""
    return _MEANINGS.get(status.strip().lower()) if 0 < len(status) <= LONGEST_STATUS else None


class Event(NamedTuple):
    """What an act is to a task. `about` is said of the agent who acted: "executor acknowledged it"."""

    name: str
    about: str


EVENTS: Final[Mapping[str, Event]] = {
    event.name: event
    for event in (
        Event("asked", "asked for it"),
        Event("posted", "put it up for everyone"),
        Event("asked-again", "asked for it again"),
        Event("acknowledged", "acknowledged it"),
        Event("spoke", "answered with a statement"),
        Event("proposed", "answered with a proposal"),
        Event("progressed", "reported that it is under way"),
        Event("waits", "reported that it waits"),
        Event("asked-back", "asked something back"),
        Event("answered-back", "gave what it waited for"),
        Event("delegated", "passed it on"),
        Event("done", "reported it done"),
        Event("gave-result", "gave the result"),
        Event("answered", "gave the answer"),
        Event("agreed", "agreed to it"),
        Event("turned-down", "turned it down"),
        Event("accepted", "accepted the result"),
        Event("sent-back", "rejected the result"),
        Event("failed", "reported that it failed"),
        Event("failed-for-now", "reported a failure, to be tried again"),
        Event("not-understood", "did not understand it"),
        Event("refused", "refused it"),
        Event("cancelled", "cancelled it"),
        Event("timed-out", "reported that it ran out of time"),
        Event("delegate-done", "did what was transferred"),
        Event("delegate-failed", "failed at what was transferred"),
        Event("help-ended", "ended what was passed on"),
    )
}
FAILURES: Final = frozenset({"failed", "failed-for-now", "not-understood", "delegate-failed"})


class Sign(NamedTuple):
    """One row: a message that fits all of it is this event. None fits anything.

    `by` is the requester, or any other (also where the wire does not say who spoke). `status` is what its status word
    means. `wish` is what the task wants, `answers` the act of the message answered.
    """

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

SIGNS: Final[tuple[Sign, ...]] = (
    # An act that asks, in a task that has been asked for: again, back, or of somebody else.
    Sign("asked-again", _of("request", "delegate"), by="requester"),
    Sign("asked-again", ASKS, by="requester", is_again=True),
    Sign("delegated", _of("request", "delegate"), by="other"),
    Sign("asked-back", _of("query"), by="other"),
    Sign("proposed", _of("propose"), by="other"),
    # What the wire says of the status goes before the act that carries it.
    Sign("failed", _REPORTS, status="failed"),
    Sign("cancelled", _REPORTS | _of("acknowledge"), status="cancelled"),
    Sign("timed-out", _REPORTS, status="timed out"),
    Sign("waits", _WORDS, status="waiting"),
    Sign("done", _SAID, status="done"),
    Sign("progressed", _WORDS, status="running"),
    Sign("turned-down", _of("acknowledge"), by="other", status="refused", wish=_AGREEMENT),
    Sign("refused", _of("acknowledge"), by="other", status="refused"),
    Sign("agreed", _of("acknowledge"), by="other", status="agreed", wish=_AGREEMENT),
    # The ends.
    Sign("done", _of("done")),
    Sign("failed-for-now", _of("failure"), is_retryable=True),
    Sign("failed", _of("failure")),
    Sign("not-understood", _of("not-understood"), by="other"),
    Sign("cancelled", _of("cancel", "unsubscribe")),
    # Yes and no.
    Sign("turned-down", _of("reject"), by="other", wish=_AGREEMENT),
    Sign("refused", _of("reject"), by="other"),
    Sign("sent-back", _of("reject"), by="requester", wish=_WORK),
    Sign("agreed", _of("accept", "commit"), by="other", wish=_AGREEMENT),
    Sign("acknowledged", _of("accept", "commit"), by="other"),
    Sign("progressed", _of("accept"), by="requester", answers=_of("propose")),
    Sign("accepted", _of("accept"), by="requester", wish=_WORK),
    # The rest of the way.
    Sign("acknowledged", _of("acknowledge"), by="other"),
    Sign("progressed", _of("progress")),
    Sign("answered-back", _of("inform", "observe", "acknowledge", "done"), by="requester", is_waiting=True),
    Sign("answered", _of("inform", "observe"), by="other", wish=_ANSWER),
    Sign("progressed", _of("inform", "observe"), by="other", wish=frozenset({"news"})),
    Sign("gave-result", _of("inform", "observe"), by="other", has_result=True),
    Sign("progressed", _of("inform", "observe"), by="other", has_progress=True),
    Sign("spoke", _of("inform", "observe", "evaluate"), by="other"),
)

_SIGNS_OF: Final[Mapping[str, tuple[Sign, ...]]] = {
    act: tuple(sign for sign in SIGNS if act in sign.acts) for act in frozenset().union(*(sign.acts for sign in SIGNS))
}


class Saying(NamedTuple):
    """A message as its task sees it; the names are those of `Sign`."""

    act: str | None
    by: str
    status: str | None
    wish: Wish
    answers: str | None
    is_retryable: bool
    has_result: bool
    has_progress: bool
    is_again: bool
    is_waiting: bool


def find_event(saying: Saying) -> str | None:
    """The event that a message is to its task, or None where it is none."""
    for sign in _SIGNS_OF.get(saying.act or "", ()):
        if (
            (sign.by is None or sign.by == saying.by)
            and (sign.status is None or sign.status == saying.status)
            and (sign.wish is None or saying.wish in sign.wish)
            and (sign.answers is None or saying.answers in sign.answers)
            and (sign.is_retryable is None or sign.is_retryable == saying.is_retryable)
            and (sign.has_result is None or sign.has_result == saying.has_result)
            and (sign.has_progress is None or sign.has_progress == saying.has_progress)
            and (sign.is_again is None or sign.is_again == saying.is_again)
            and (sign.is_waiting is None or sign.is_waiting == saying.is_waiting)
        ):
            return sign.event
    return None
