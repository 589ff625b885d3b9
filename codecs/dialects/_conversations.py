"""The conversations of a log under way: what each has established, bounded in number and in size."""

from __future__ import annotations

from collections import OrderedDict

import dialects

# The conversation that was quiet longest is forgotten first.
MOST_CONVERSATIONS = 1000
# And so it is when all together established more names than these.
MOST_NAMES = 50_000


class Conversations:
    """Tells the records of a log in order, each in the context of its conversation.

    A record's conversation is the one that its first message names; all that name none share one.
    """

    def __init__(self) -> None:
        self._contexts: OrderedDict[str | None, dialects.Context] = OrderedDict()
        self._names = 0

    def tell(self, reading: dialects.Reading, index: int) -> dialects.Reading:
        """The reading, told; `index` stands for it where a later one cites it."""
        name = reading.messages[0].conversation_id if reading.messages else None
        context = self._contexts.get(name)
        if context is None:
            context = self._contexts[name] = dialects.Context()
        self._contexts.move_to_end(name)
        context.record = index
        before = context.size
        whole = dialects.tell(reading, context).whole
        context.position += len(whole.messages)
        self._names += context.size - before
        while len(self._contexts) > MOST_CONVERSATIONS or self._names > MOST_NAMES:
            self._names -= self._contexts.popitem(last=False)[1].size
        return whole
