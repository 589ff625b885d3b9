"""Events of tasks: what a message is to its task. The first of `EVENT_RULES` that fits it decides; `states` follows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
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
