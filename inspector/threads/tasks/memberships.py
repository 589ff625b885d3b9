"""How a message belongs to a task: which acts answer, end or repeat one, and the rules by which that is inferred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# After these a request of the same agent is the same task, asked again.
RETRIED: Final = frozenset({"failure", "not-understood", "reject"})
# What takes back something that its own sender asked for: of which act, "" for any.
WITHDRAWN: Final[Mapping[str, str]] = {"cancel": "", "unsubscribe": "subscribe"}
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
