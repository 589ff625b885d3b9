"""A window of a long conversation: some of its stretches, gone through as they were and as they are with what is late.

From the state before its first stretch (`stretches`) its messages are placed, given their tasks and told, twice. What
was there has to come out as it is stored: then the state was the right one, and nothing else has changed meanwhile. In
what the two differ behind the window is all that the rest of the conversation may notice.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..models import Conversation, Message, Task
from ..placing.nodes import StoredNode, Timeline, copy_unplaced, find_misread, load_between
from ..placing.placer import Citation, Elsewhere, place
from ..placing.places import BEYOND, BlockSize, Places
from ..reads import Border, Key, digest_keys, sees
from ..tasks.memberships import list_moved
from ..telling.carried import CarriedContext
from ..telling.retelling import Retelling
from ..telling.shelves import ShelvedRow
from ..telling.wordings import History
from ..uncertainty import UncertainError
from .alone import Fence
from .carries import Start
from .courses import Course, find_citing, read_awaited
from .entering import assign_entered, enter, find_tasks
from .readers import find_readers, is_lacking, read_running
from .stretches import SPACING, Making, State, load_state
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


class Filled(NamedTuple):
    """What came late before a window: messages, by id, and the questions that are answered since."""

    ids: Set[uuid.UUID]
    questions: Set[str]


NOTHING: Final = Filled(frozenset(), frozenset())


class Window:
    """Stretches of a conversation that are settled again by themselves.

    Args:
        conversation: the row.
        end: what is carried over its end.
        stored: its directory.
        coming: the messages that are late; all of them stand in the window.
        filled: what came late before it; what is in the window was settled without that.
        borders: where its stretches begin.
        at: the number of the first stretch of the window.
        to: that of the first behind it.
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
        filled: Filled,
        borders: Sequence[bytes],
        at: int,
        to: int,
        fence: Fence,
    ) -> None:
        self._conversation = conversation
        self._end = end
        self._stored = stored
        self._coming = coming
        self.ids = frozenset(node.id for node in coming)
        self._filled = filled
        self._borders = borders
        self.border, self.until = borders[at], borders[to] if to < len(borders) else BEYOND
        fence()
        nodes = self._load(stored.count if self.until == BEYOND else stored.find_position(self.until))
        state = load_state(conversation, self.border)
        self.spoken: list[str] = state["spoken"]
        known = [Border(stored.find_position(each) if each else 0, each) for each in borders[: at + 1]]
        within = borders[at + 1 : to]
        stood = [copy_unplaced(node) for node in nodes if not node.is_new]
        self.old = self._place(state, stood, nodes, known, within, filled)
        self.now = self._place(state, nodes, nodes, known, within, NOTHING)
        self._assign(state)
        self._prove_apart(len(within))
        self._tell(fence)
        changed = self._compare()
        self.shelved = self._shelve()
        found = self._list_found()
        # Where somebody stands behind the window who has looked for what is found only now.
        self.awaiting = self._find_awaiting(found)
        # What is known otherwise behind the window, beside that.
        self.changed = digest_keys(changed - found)
        if is_lacking(conversation, self.border, self.now.making.read):
            raise UncertainError

    def _load(self, end: int) -> list[StoredNode]:
        count = end - (self._stored.find_position(self.border) if self.border else 0)
        if count > MOST_MESSAGES:
            raise UncertainError
        nodes = load_between(self._conversation.pk, self.border, self.until)
        if {node.id for node in nodes if node.is_new} != self.ids or len(nodes) != count + len(self.ids):
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
        hidden: Filled,
    ) -> Passage:
        """Place these messages, some of every one of the window or all, from what is known where it begins."""
        conversation, making = self._conversation, Making(known, {}, known[-1].position)
        course = enter(conversation, state, self.border, self.until, every, stored=self._stored, hidden=hidden.ids)
        course.context.miss(hidden.questions)
        course.making, course.placed.coming = making, self.ids
        timeline = Timeline(nodes, blocks=course.blocks)
        if any(True for _ in find_misread(nodes, course.spoken)):
            raise UncertainError
        look = look_up([conversation], {conversation.pk: timeline}, {conversation.pk: course})[conversation.pk]

        def look_elsewhere(citations: Iterable[Citation]) -> dict[Citation, Elsewhere]:
            # What comes only now stands in no other conversation, and was not there before.
            late = self.ids | self._filled.ids
            return {each: found for each, found in look(citations).items() if found.id not in late}

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
        """The window came out as it is stored, and what comes now moves none of it."""
        if any(node.hash_place() != node.was_placed for node in self.old.nodes):
            raise UncertainError
        if [node.id for node in self.now.nodes if node.id not in self.ids] != [node.id for node in self.old.nodes]:
            # Those that were there stand in another order among themselves.
            raise UncertainError
        if len(self.now.making.cuts.made) != cuts:
            # Something reaches over the border of a stretch now.
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

    def _shelve(self) -> list[ShelvedRow]:
        """The names that were never established before, where whoever asks for one behind the window asks the shelf."""
        if self.until == BEYOND:
            return []
        context = load_state(self._conversation, self.until)["context"]
        kinds = CarriedContext.resume(context, self._conversation.pk).list_shelved_kinds()
        return self.now.course.context.list_new(self.old.course.context, kinds, self.until)

    def _list_found(self) -> set[Key]:
        """What is found by whoever looks for it behind the window, whatever is carried: ids, tasks and names."""
        known, tasks = self.old.course.placed.earlier, self.old.course.membership.tasks
        keys: set[Key] = {("correlated", node.key) for node in self._coming if node.key and not known.knows(node.key)}
        keys |= {("above", pk.hex) for pk in self.ids}
        begun = [node.of_task for node in self.now.nodes if node.id in self.ids and node.of_task is not None]
        keys |= {("task", task.key) for task in begun if task.key not in tasks}
        return keys | {("context", question) for question, _, _ in self.shelved}

    def _find_awaiting(self, found: Set[Key]) -> list[bytes]:
        """The borders of those stretches behind the window in which somebody looked for what is found only now.

        Raises:
            UncertainError: where somebody did before the window, or did for an id that is not looked up by itself.
        """
        handles = digest_keys(("sought", name) for node in self._coming for name in node.handles)
        sought = digest_keys(("sought", node.key) for node in self._coming if node.key)
        readers = self._find_readers(sought)
        readers |= {self._find_border(place) for place in find_citing(self._conversation, self._coming)}
        others = self._find_readers(handles) | {border for border in readers if border < self.border}
        if any(not self.border <= border < self.until for border in others):
            raise UncertainError
        return sorted(border for border in readers | self._find_readers(digest_keys(found)) if border >= self.until)

    def list_readers(self) -> list[bytes]:
        """The borders of the stretches behind the window that have read what is known otherwise there, in order."""
        return sorted(border for border in self._find_readers(self.changed, self.until) if border >= self.until)

    def _find_readers(self, digests: Set[bytes], end: bytes = BEYOND) -> set[bytes]:
        """The borders of all stretches that have read something that may have changed now, before a place."""
        readers = set(find_readers(self._conversation, digests, end))
        if sees(read_running(self._end), digests, end):
            readers.add(self._borders[-1])
        return readers

    def _find_border(self, place: bytes) -> bytes:
        return self._borders[bisect_right(self._borders, place) - 1]

    def _compare(self) -> set[Key]:
        """In what that which is known behind the window differs from what was known there."""
        if self.until == BEYOND:
            return set()
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
        return keys

    def join_blocks(self) -> list[BlockSize]:
        """The directory of the conversation: as it was, with that of the window as it is now."""
        if self.until == BEYOND:
            return list(self.now.timeline.blocks)
        return [*self.now.timeline.blocks, *self._stored.list_from(self._stored.find_position(self.until))]
