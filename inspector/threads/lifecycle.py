"""How a conversation stands, derived from the acts in it; advisory, and never what a single wire claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .models import Conversation

_ENDS: Final = {
    "done": Conversation.State.DONE,
    "failure": Conversation.State.FAILED,
    "cancel": Conversation.State.CANCELLED,
}
_REOPENS: Final = frozenset({"request", "query", "delegate", "propose", "commit", "accept", "progress", "subscribe"})


def derive_state(acts: Iterable[tuple[str | None, bool | None]]) -> str:
    """The state after the last act that decides: an end, or work that was asked for or went on after it.

    Args:
        acts: (performative, whether a failure is retryable) of each message, in order.
    """
    state: str = Conversation.State.OPEN
    for performative, is_retryable in acts:
        if performative == "failure" and is_retryable:
            state = Conversation.State.OPEN
        elif performative in _ENDS:
            state = _ENDS[performative]
        elif performative in _REOPENS:
            state = Conversation.State.OPEN
    return state
