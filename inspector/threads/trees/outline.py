"""The lines of a tree: messages, ghosts of messages that were not received, and headings of conversations. Pure."""

from __future__ import annotations

import hashlib
import uuid
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

ADJACENCY: Final = "adjacency"
# The acts that ask somebody for something: their bar lasts until the answer.
ASKING: Final = frozenset({"request", "query", "delegate", "propose", "subscribe"})


class Kind(IntEnum):
    """What a line stands for; those of ghosts and headings are the kinds of `TreeGroup`."""

    MESSAGE = 0
    GHOST = 1
    CONVERSATION = 2


class Outcome(IntEnum):
    """What came of a message: nothing was asked, it is still open, or how it was answered."""

    NONE = 0
    OPEN = 1
    ANSWERED = 2
    DONE = 3
    FAILED = 4
    CANCELLED = 5


# The answers that end a request; any other prolongs it.
ENDS: Final = {
    "done": Outcome.DONE,
    "failure": Outcome.FAILED,
    "reject": Outcome.FAILED,
    "not-understood": Outcome.FAILED,
    "cancel": Outcome.CANCELLED,
}


class Line(NamedTuple):
    """One line of a tree.

    `id` is that of the message or conversation, of a ghost what it is known by in this tree. `start` and `end` are
    microseconds since 1970: of what was asked until it was answered, of a conversation its first and last message in
    the trace, of anything else twice the same.
    """

    id: uuid.UUID
    kind: Kind
    start: int
    end: int
    outcome: Outcome
    severity: int


def name_ghost(tree: bytes, cited: bytes) -> uuid.UUID:
    """What a missing message is known by in a tree.

    Args:
        tree: the id of a conversation; or the key of a trace and the id of the channel, for the same id may be missing
            in two channels.
        cited: the key of its id.
    """
    return _hash(tree + cited)


# Of one conversation there are many messages together.
@lru_cache(maxsize=4096)
def name_heading(trace_key: bytes, conversation_id: uuid.UUID) -> uuid.UUID:
    """What the heading of a conversation is known by in a trace."""
    return _hash(trace_key + conversation_id.bytes)


def _hash(parts: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=hashlib.sha256(parts).digest()[:16])
