"""Late messages of a long conversation, settled with the stretches around them and nothing else of it.

Those stretches are gone through twice (`window`): as they were, and with what is late. Where the two leave behind
states that differ in nothing that a later stretch has read, all that comes after comes out as it did. So rows, tasks
and what the conversation's row sums up are changed by what the two say differently, at a cost that has nothing
to do with how long the conversation is.

What cannot be known in this way is settled as before: from a milestone, or from the beginning.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Min

from ..arriving.holding import hold_channels
from ..models import Conversation, Message, Stretch
from ..placing.nodes import StoredNode, load_timelines
from ..placing.numbering import load_places
from ..placing.places import BEYOND, Places
from ..uncertainty import UncertainError
from .alone import Fence
from .carries import Start
from .fitting import fit
from .milestones import go_back, load_ends
from .stretches import LEAST_LONG, SPACING
from .window import NOTHING, Filled, Window

# So many messages are settled in this way at once.
MOST_COMING: Final = 500
# So many stretches behind it are settled again for who looked in vain for it.
MOST_AWAITING: Final = 8
# What is late by less is settled from a milestone, where there is one.
_NEAR: Final = 2 * SPACING


def settle_late(conversation: Conversation, *, fence: Fence, finish: Callable[[], None]) -> bool:
    """Settle what has come late into a conversation, where that can be done by itself.

    Where more has come that is not late, that is left: the conversation is settled up to the generation before this
    one then, and goes on from there.

    Args:
        conversation: the row; its generation as loaded is what this run settles. What is written in it is loaded anew.
        fence: called inside the writing transaction and as a sign of life; raises when another worker has taken over.
        finish: called inside the transaction, so that the job ends together with its work.

    Returns:
        whether all is done.
    """
    if conversation.message_count < LEAST_LONG or not _has_late(conversation):
        return False
    late = _find_late(conversation)
    if late is None:
        return False
    try:
        window = late.find_window(fence)
        if not window.awaiting:
            return late.write(window, fence, finish)
        with transaction.atomic():
            # In the order in which arriving holds them.
            hold_channels([conversation.channel_id], is_shared=False)
            return late.fill(window, fence, finish)
    except UncertainError:
        _refresh(conversation)
        return False


@dataclass(slots=True)
class _Late:
    """What has come late into a conversation, in order key, and the rest of what has come, which is not late.

    `end` is what is carried over its end, and `stored` its directory.
    """

    conversation: Conversation
    end: Start
    stored: Places
    nodes: list[StoredNode]
    rest: list[StoredNode]

    def find_window(self, fence: Fence) -> Window:
        """The stretches of what is late, and as many after them as it takes until the rest comes out as it did.

        Args:
            fence: as `settle` takes it.

        Raises:
            UncertainError: where that cannot be known.
        """
        borders = self._load_borders()
        # Where one begins at the same moment, the message may belong to the one before it.
        at = bisect_left(borders, self.nodes[0].slot) - 1
        if at < 0:
            raise UncertainError
        return self._settle(borders, at, bisect_right(borders, self.nodes[-1].slot), self.nodes, NOTHING, fence)

    def write(self, window: Window, fence: Fence, finish: Callable[[], None]) -> bool:
        """Write what came out otherwise in the last window; whether nothing of what has come is left."""
        is_all = window.until == BEYOND or not self.rest
        if is_all:
            fit(self.conversation, self.end, window, fence, finish)
        else:
            self._write_part(window, fence)
        return is_all

    def fill(self, window: Window, fence: Fence, finish: Callable[[], None]) -> bool:
        """Write it with further windows: of those who looked in vain for what is late. In one transaction."""
        if len(window.awaiting) > MOST_AWAITING:
            raise UncertainError
        filled = Filled(window.ids, {question for question, _, _ in window.shelved})
        later = deque(window.awaiting)
        while later:
            border = later.popleft()
            if border >= window.until:
                self._write_part(window, fence)
                self._load_anew()
                borders = self._load_borders()
                at = borders.index(border)
                window = self._settle(borders, at, at + 1, [], filled, fence, later=later)
        return self.write(window, fence, finish)

    def _load_borders(self) -> list[bytes]:
        rows = Stretch.objects.filter(conversation=self.conversation).order_by("border")
        return [bytes(border) for border in rows.values_list("border", flat=True)]

    def _load_anew(self) -> None:
        end = load_ends([self.conversation]).get(self.conversation.pk)
        if end is None or end.written["read"] is None:
            raise UncertainError
        self.end, self.stored = end, load_places(self.conversation)

    def _settle(
        self,
        borders: Sequence[bytes],
        at: int,
        to: int,
        coming: Sequence[StoredNode],
        filled: Filled,
        fence: Fence,
        *,
        later: Collection[bytes] = (),
    ) -> Window:
        """These stretches with what comes into them; what has come behind the end is settled with the last of all.

        More of them where others have read what comes out otherwise, unless they are settled `later`.
        """
        while True:
            window = Window(
                self.conversation,
                self.end,
                self.stored,
                coming if to < len(borders) else [*coming, *self.rest],
                filled=filled,
                borders=borders,
                at=at,
                to=to,
                fence=fence,
            )
            readers = [border for border in window.list_readers() if border not in later]
            if not readers:
                return window
            to = bisect_right(borders, readers[-1])

    def _write_part(self, window: Window, fence: Fence) -> None:
        """Write what came out otherwise, and let the conversation be as if nothing else had come yet."""
        part = copy(self.conversation)
        part.generation -= 1
        if part.generation < self.conversation.settled_generation:
            raise UncertainError
        fit(part, self.end, window, fence)
        _refresh(self.conversation)


def _find_late(conversation: Conversation) -> _Late | None:
    """What has come late, None where it is not settled by itself."""
    end = load_ends([conversation]).get(conversation.pk)
    if end is None or end.written["read"] is None:
        return None
    coming = load_timelines([], new_in=[conversation.pk])[conversation.pk].nodes
    late = [node for node in coming if not end.precedes(node)]
    if not late or len(late) > MOST_COMING:
        return None
    stored = load_places(conversation)
    if not stored.count == end.written["count"] == conversation.message_count or _is_near(conversation, end, late[0]):
        return None
    return _Late(conversation, end, stored, late, coming[len(late) :])


def _has_late(conversation: Conversation) -> bool:
    """Whether what has come now is older than the last message; to ask is cheaper than to load what is carried."""
    rows = Message.objects.filter(conversation=conversation, place__isnull=True)
    earliest = rows.aggregate(earliest=Min("order_time"))["earliest"]
    return earliest is not None and conversation.last_at is not None and earliest <= conversation.last_at


def _is_near(conversation: Conversation, end: Start, node: StoredNode) -> bool:
    """Whether a milestone that is not far from the end is before a message."""
    try:
        start = go_back(conversation, end, node)
    except UncertainError:
        return False
    return int(end.written["count"]) - int(start.written["count"]) <= _NEAR


def _refresh(conversation: Conversation) -> None:
    """Load the row anew; what is settled is still the generation that it was loaded with."""
    generation = conversation.generation
    conversation.refresh_from_db()
    conversation.generation = generation
