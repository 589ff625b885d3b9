"""Foretelling: messages told as they arrive, in the context that their conversation likely has by then.

A log is nearly always read in the order of its timeline. What a worker has just told of a conversation is therefore
what the next message of it will be told in; a guess that settling proves or puts right.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence

from .contexts import TrackedContext

# A conversation by its channel and its key there: it is known before it is stored.
ConversationKey = tuple[uuid.UUID, bytes]
# What is kept of a conversation comes to about a hundred kilobytes: a worker's memory must not grow with its log.
MOST_CONVERSATIONS = 150
# What has grown larger than this is not kept: a guess is not worth the memory.
MOST_NAMES = 500


class Foreseen:
    """The context that a conversation likely has, and how many messages were told in it."""

    def __init__(self) -> None:
        self.context = TrackedContext()
        self.count = 0


# Of each thread its own: a context notes what one telling at a time asks of it.
_of_thread = threading.local()


def foresee(conversations: Sequence[ConversationKey], *, is_new: bool) -> Foreseen | None:
    """What likely holds in the conversation of a record's messages; None where nothing is known, or they are several.

    Args:
        conversations: of each message of the record.
        is_new: whether the conversation was empty before its batch.
    """
    if len(set(conversations)) != 1:
        return None
    held: OrderedDict[ConversationKey, Foreseen] = _of_thread.__dict__.setdefault("held", OrderedDict())
    conversation = conversations[0]
    foreseen = held.pop(conversation, None) or (Foreseen() if is_new else None)
    if foreseen is None:
        return None
    held[conversation] = foreseen
    if len(held) > MOST_CONVERSATIONS:
        held.popitem(last=False)
    if foreseen.context.names > MOST_NAMES:
        del held[conversation]
    return foreseen
