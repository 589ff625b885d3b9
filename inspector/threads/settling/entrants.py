"""Conversations that are settled together: loaded, gone on with where they carry what matters, and placed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence, Set

from ..models import Conversation
from ..placing.links import Guess
from ..placing.nodes import Timeline, find_misread, load_timelines
from ..placing.placer import place
from ..telling.wordings import History
from ..uncertainty import UncertainError
from .alone import Fence
from .carries import Start
from .courses import Course, assign_tasks, begin, resume
from .milestones import go_back, load_ends, load_since
from .rereading import read_again
from .stretches import is_long
from .together import look_up


class Entrants:
    """The timelines, courses and histories of conversations, by their ids.

    Args:
        conversations: the conversations, which are loaded.
        whole: those that are settled from their beginning, whatever they carry.
        fence: as `settle` takes it.
    """

    def __init__(self, conversations: Iterable[Conversation], whole: Set[uuid.UUID], fence: Fence) -> None:
        every = list(conversations)
        self._whole = whole
        self._fence = fence
        self.histories = {each.pk: History(each) for each in every}
        self.timelines: dict[uuid.UUID, Timeline] = {}
        self.courses: dict[uuid.UUID, Course] = {}
        self._load(every)

    @property
    def resumed(self) -> set[uuid.UUID]:
        """The conversations that are gone on with."""
        return {pk for pk, course in self.courses.items() if course.resumed is not None}

    def place(self, conversations: Sequence[Conversation]) -> None:
        """Place the nodes of these conversations, and assign and play their tasks."""
        look_ups = look_up(conversations, self.timelines, self.courses)
        anew = []
        for each in conversations:
            timeline, course = self.timelines[each.pk], self.courses[each.pk]
            try:
                timeline.nodes = place(timeline.nodes, look_ups[each.pk], course.placed, course.cut(timeline.nodes))
                timeline.give_places()
                assign_tasks(each, course, timeline.nodes)
            except UncertainError:
                anew.append(each)
        if anew:
            for each in anew:
                self._begin_anew(each)
            self.place(anew)

    def _load(self, conversations: Sequence[Conversation]) -> None:
        """The nodes that are to be settled, each record in the dialect that its conversation settles for it."""
        ends = load_ends(each for each in conversations if each.pk not in self._whole)
        self.timelines |= load_timelines([each.pk for each in conversations if each.pk not in ends], new_in=list(ends))
        for each in conversations:
            try:
                self.courses[each.pk] = self._begin(each, ends.get(each.pk))
            except UncertainError:
                self._begin_anew(each)

    def _begin(self, conversation: Conversation, end: Start | None) -> Course:
        """The course of a conversation whose nodes are loaded: those that came since its end, or all of them."""
        start = end
        if end is not None:
            nodes = self.timelines[conversation.pk].nodes
            if end.written["read"] is None and is_long(end.written["count"] + len(nodes)):
                # It has grown long by what was appended to it, and is cut into stretches this once.
                raise UncertainError
            if nodes and not end.precedes(nodes[0]):
                start = go_back(conversation, end, nodes[0])
                self.timelines[conversation.pk] = load_since(conversation, start)
        self._read_misread(conversation, start)
        timeline = self.timelines[conversation.pk]
        if start is None:
            course = begin(conversation, timeline.nodes, is_long=is_long(len(timeline.nodes)))
        else:
            course = resume(conversation, start, timeline.nodes)
        timeline.blocks = course.blocks
        # What they speak was found out before their course was known.
        for _ in find_misread(timeline.nodes, course.spoken):
            continue
        return course

    def _begin_anew(self, conversation: Conversation) -> None:
        self._whole |= {conversation.pk}
        self._load([conversation])

    def _read_misread(self, conversation: Conversation, start: Start | None) -> None:
        # Each record that is read otherwise can decide only for those after it, so that this comes to an end.
        while misread := self._find_misread(conversation, start):
            if start is not None and not self._are_new({record_id for record_id, _, _ in misread}, conversation):
                raise UncertainError
            for record_id, dialect, guess in misread:
                self._fence()
                read_again(self.histories[conversation.pk], record_id, dialect, guess, self._fence)
            if start is None:
                self.timelines |= load_timelines([conversation.pk])
            else:
                self.timelines[conversation.pk] = load_since(conversation, start)

    def _find_misread(
        self, conversation: Conversation, start: Start | None
    ) -> list[tuple[uuid.UUID, str | None, Guess | None]]:
        spoken = dict.fromkeys(start.written["spoken"] if start is not None else ())
        return list(find_misread(self.timelines[conversation.pk].nodes, spoken))

    def _are_new(self, records: set[uuid.UUID], conversation: Conversation) -> bool:
        nodes = self.timelines[conversation.pk].nodes
        return all(node.is_new for node in nodes if node.record in records)
