"""A window of a long conversation: some of its stretches, gone through as they were and as they are with what is late.

From the state before its first stretch (`stretches`) its messages are placed, given their tasks and told, twice. What
was there has to come out as it is stored: then the state was the right one, and nothing else has changed meanwhile. In
what the two differ behind the window is all that the rest of the conversation may notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final

from ..models import Conversation, Message, Task
from ..placing.nodes import StoredNode, Timeline, copy_unplaced, find_misread, load_between
from ..placing.placer import Citation, Elsewhere, place
from ..placing.places import BEYOND, BlockSize, Places
from ..reads import Border, digest_keys, sees
from ..tasks.memberships import list_moved
from ..telling.retelling import Retelling
from ..telling.wordings import History
from ..uncertainty import UncertainError
from .alone import Fence
from .carries import Start
from .courses import Course, read_awaited
from .entering import assign_entered, enter, find_tasks
from .stretches import SPACING, Making, State, find_readers, is_lacking, load_state, read_running
from .together import look_up
from .writing import Changes

# So many messages are gone through for what is late, at most.
MOST_MESSAGES: Final = 8 * SPACING


@dataclass(slots=True)
class Passage:
    """A window gone through once: what settling came to know, and its messages in the order of the timeline."""

    course: Course
    making: Making
    timeline: Timeline

    @property
    def nodes(self) -> list[StoredNode]:
        """The messages."""
        return self.timeline.nodes


class Window:
    """Stretches of a conversation that are settled again by themselves.

    Args:
        conversation: the row.
        end: what is carried over its end.
        stored: its directory.
        coming: the messages that are late; all of them stand in the window.
        borders: where its stretches begin, up to the first of the window.
        within: where more stretches of the window begin.
        until: where the next one begins, `BEYOND` where there is none.
        fence: as `settle` takes it.

    Raises:
        UncertainError: where it cannot be settled by itself.
    """

    def __init__(
        self,
        conversation: Conversation,
        end: Start,
        stored: Places,
        coming: Sequence[StoredNode],
        *,
        borders: Sequence[bytes],
        within: Sequence[bytes],
        until: bytes,
        fence: Fence,
    ) -> None:
        self._conversation = conversation
        self._end = end
        self._stored = stored
        self._coming = coming
        self._ids = frozenset(node.id for node in coming)
        self.border, self.until = borders[-1], until
        fence()
        nodes = self._load(stored.count if until == BEYOND else stored.find_position(until))
        state = load_state(conversation, self.border)
        self.spoken: list[str] = state["spoken"]
        known = [Border(stored.find_position(border) if border else 0, border) for border in borders]
        stood = [copy_unplaced(node) for node in nodes if not node.is_new]
        self.old = self._place(state, stood, nodes, known, within)
        self.now = self._place(state, nodes, nodes, known, within)
        self._assign(state)
        self._prove_apart(len(within))
        self._tell(fence)
        self.changed = self._compare()
        if is_lacking(conversation, self.border, self.now.making.read):
            raise UncertainError

    def _load(self, end: int) -> list[StoredNode]:
        count = end - (self._stored.find_position(self.border) if self.border else 0)
        if count > MOST_MESSAGES:
            raise UncertainError
        nodes = load_between(self._conversation.pk, self.border, self.until)
        if {node.id for node in nodes if node.is_new} != self._ids or len(nodes) != count + len(self._ids):
            # More has come meanwhile, or it stands on the border.
            raise UncertainError
        return nodes

    def _place(
        self,
        state: State,
        nodes: list[StoredNode],
        every: Sequence[StoredNode],
        known: Sequence[Border],
        within: Sequence[bytes],
    ) -> Passage:
        """Place these messages, some of every one of the window or all, from what is known where it begins."""
        conversation, making = self._conversation, Making(known, {}, known[-1].position)
        course = enter(conversation, state, self.border, every, stored=self._stored)
        course.making, course.placed.coming = making, self._ids
        timeline = Timeline(nodes, blocks=course.blocks)
        if any(True for _ in find_misread(nodes, course.spoken)):
            raise UncertainError
        look = look_up([conversation], {conversation.pk: timeline}, {conversation.pk: course})[conversation.pk]

        def look_elsewhere(citations: Iterable[Citation]) -> dict[Citation, Elsewhere]:
            # What comes only now stands in no other conversation, and was not there before.
            return {each: found for each, found in look(citations).items() if found.id not in self._ids}

        timeline.nodes = place(nodes, look_elsewhere, course.placed, making.cut_at(nodes, within))
        timeline.give_places()
        return Passage(course, making, timeline)

    def _assign(self, state: State) -> None:
        both = (self.old, self.now)
        ids = find_tasks(self._conversation, [each.course for each in both], state, [*self.old.nodes, *self.now.nodes])
        awaited = read_awaited(self._end.written)
        for each in both:
            assign_entered(self._conversation, each.course, state, self.border, each.nodes, ids, awaited)
        tasks = {node.task_id for each in both for node in each.nodes if node.task_id is not None}
        requests = Task.objects.filter(pk__in=tasks, request__isnull=False).values("request")
        if self.until != BEYOND and Message.objects.filter(pk__in=requests, place__gte=self.until).exists():
            # Whose task it is was said behind the window: membership knows it from the beginning, but not from here.
            raise UncertainError

    def _prove_apart(self, cuts: int) -> None:
        """The window came out as it is stored, and nobody outside it looked in vain for what has come now."""
        if any(node.hash_place() != node.was_placed for node in self.old.nodes):
            raise UncertainError
        if [node.id for node in self.now.nodes if node.id not in self._ids] != [node.id for node in self.old.nodes]:
            # Those that were there stand in another order among themselves.
            raise UncertainError
        if len(self.now.making.cuts.made) != cuts:
            # Something reaches over the border of a stretch now.
            raise UncertainError
        names = {name for node in self._coming for name in (*node.correlation, *((node.key,) if node.key else ()))}
        sought = digest_keys(("sought", name) for name in names)
        readers = find_readers(self._conversation, sought, BEYOND)
        if any(not self.border <= border < self.until for border in readers):
            raise UncertainError
        if self.until != BEYOND and sees(read_running(self._end), sought, BEYOND):
            raise UncertainError

    def _tell(self, fence: Fence) -> None:
        """Tell what is told otherwise now; what was there before is to be told as it is stored."""
        retelling = Retelling(self.old.nodes, fence, self.old.course.context)
        if any(row is not None for _, row, _ in retelling.go_through()):
            raise UncertainError
        self.history = History(self._conversation)
        self.changes = Changes(self._conversation.pk, self.history)
        retelling = Retelling(self.now.nodes, fence, self.now.course.context)
        for node, row, established in self.now.making.tell(self.now.nodes, retelling):
            self.changes.take(node, row, established)

    def _compare(self) -> Set[bytes]:
        """In what that which is known behind the window differs from what was known there, as digests."""
        if self.until == BEYOND:
            return frozenset()
        old, now = self.old.course, self.now.course
        if now.context.has_shelved:
            # What changed of it is no longer at hand.
            raise UncertainError
        keys = old.placed.list_differences(now.placed) | old.membership.list_differences(now.membership)
        keys |= list_moved(self.old.nodes, self.now.nodes) | old.context.list_differences(now.context)
        # Every message behind it has another number.
        keys.add(("context", "position"))
        if list(old.spoken) != list(now.spoken):
            keys.add(("spoken",))
        return digest_keys(keys)

    def join_blocks(self) -> list[BlockSize]:
        """The directory of the conversation: as it was, with that of the window as it is now."""
        if self.until == BEYOND:
            return list(self.now.timeline.blocks)
        return [*self.now.timeline.blocks, *self._stored.list_from(self._stored.find_position(self.until))]
