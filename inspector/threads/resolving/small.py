"""Conversations of one block each, which most are: resolved together, and written in one transaction."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from ..agents.aggregates import write_exchanges
from ..decryption import ask_opening
from ..messages import count_hidden_by_conversation
from ..models import Conversation
from ..placing.bearers import find_bearers
from ..placing.citations import Citation, Elsewhere
from ..placing.nodes import find_misread, load_timelines
from ..tasks.replay import Play
from ..tasks.rows import make_row, write_tasks
from ..telling.retelling import load_together
from ..telling.wordings import History, note_rest
from .alone import Fence, hold_alone
from .blocks import Segment, is_one_block
from .linking import Outside
from .misread import read_misread
from .passes import Pass, begin_pass, list_citations
from .rows import derive_state_of, write_rows
from .storing import write_only_blocks
from .summaries import add_up
from .tables import FIRST
from .together import bound
from .view import Facts, View
from .writing import Changes, write_changes

EndOthers = Callable[[set[uuid.UUID]], set[uuid.UUID]]


class Small:
    """Conversations of one block each, but for what reading some of their records again may add.

    Args:
        conversations: the first of which is the one whose job it is.
        fence: as `resolve` takes it.
    """

    def __init__(self, conversations: Sequence[Conversation], fence: Fence) -> None:
        self._first = conversations[0]
        self._fence = fence
        self._histories = {each.pk: History(each) for each in conversations}
        timelines = load_timelines([each.pk for each in conversations])
        first, *others = conversations
        while read_misread(first, timelines[first.pk].nodes, {}, self._histories[first.pk], fence):
            timelines |= load_timelines([first.pk])
        # A companion has no lease: what is to be read again of it, its own job reads. Read here, it could take the
        # place of what that job has told meanwhile, and nobody would tell it again.
        whole = [first, *(each for each in others if next(find_misread(timelines[each.pk].nodes, {}), None) is None)]
        self._nodes = {pk: timeline.nodes for pk, timeline in timelines.items()}
        self._together = [
            each for each in bound(whole, timelines) if each is self._first or is_one_block(len(self._nodes[each.pk]))
        ]

    @property
    def is_long(self) -> bool:
        """Whether the first of them turns out to be more than one block."""
        return not is_one_block(len(self._nodes[self._first.pk]))

    def resolve(self, finish: Callable[[], None], end_others: EndOthers) -> None:
        """Go through all of them and write them."""
        workspace_id = self._first.workspace_id
        elsewhere = self._look_up()
        passes = {each.pk: self._begin(each, elsewhere.get(each.channel_id, {})) for each in self._together}
        retellings = {pk: each.retell(self._fence) for pk, each in passes.items()}
        load_together(list(retellings.values()), self._fence)
        for pk, each in passes.items():
            each.tell(retellings.pop(pk), self._write_window if pk == self._first.pk else None)
        hidden = count_hidden_by_conversation(self._together)
        with hold_alone(passes, self._fence):
            kept = {self._first.pk}
            if len(passes) > 1:
                kept |= end_others(passes.keys() - kept)
            settled = [each for each in self._together if each.pk in kept]
            write_changes([passes[each.pk].changes for each in settled], workspace_id=workspace_id)
            plays = {each.pk: _list_plays(passes[each.pk]) for each in settled}
            write_tasks([(each, [make_row(play) for play in plays[each.pk]]) for each in settled], since={})
            totals = {
                pk: add_up([passes[pk].summary], elements=passes[pk].elements, hidden=hidden.get(pk, 0)) for pk in kept
            }
            states = {pk: derive_state_of(plays[pk]) for pk in kept}
            write_rows(settled, totals, states)
            write_exchanges([passes[each.pk].exchanges for each in settled])
            write_only_blocks([(each, passes[each.pk].summary.count) for each in settled])
            histories = [self._histories[each.pk] for each in settled]
            for history in histories:
                history.forget_unchanged()
            note_rest(histories)
            ask_opening(workspace_id=workspace_id, conversation_ids=kept)
            finish()

    def _begin(self, conversation: Conversation, elsewhere: Mapping[Citation, Elsewhere]) -> Pass:
        view = View(Facts(conversation.pk, is_empty=True), FIRST, is_first=True, is_only=True)
        return begin_pass(
            conversation,
            Segment(FIRST, None, is_forced=False, nodes=list(self._nodes[conversation.pk])),
            view,
            self._histories[conversation.pk],
            outside=Outside(),
            elsewhere=elsewhere,
            count_before=lambda: 0,
        )

    def _write_window(self, changes: Changes) -> None:
        with hold_alone([self._first.pk], self._fence):
            write_changes([changes], workspace_id=self._first.workspace_id)

    def _look_up(self) -> dict[uuid.UUID, Mapping[Citation, Elsewhere]]:
        """By channel, who bears in other conversations the ids that nobody bears in the citing one."""
        wanted: dict[uuid.UUID, set[Citation]] = defaultdict(set)
        for each in self._together:
            nodes = self._nodes[each.pk]
            wanted[each.channel_id] |= list_citations(nodes, {node.key for node in nodes if node.key})
        return {
            channel_id: find_bearers(self._first.workspace_id, channel_id, citations)
            for channel_id, citations in wanted.items()
            if citations
        }


def _list_plays(each: Pass) -> list[Play]:
    return [state.play for state in each.tasks.states.values() if state.play.message_count]
