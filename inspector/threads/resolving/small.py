"""Conversations of one block each, which most are: resolved together, and written in one transaction."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ..agents.aggregates import write_exchanges
from ..decryption import ask_opening
from ..messages import count_hidden_by_conversation
from ..models import Conversation
from ..placing.bearers import find_bearers_alone
from ..placing.citations import Citation, Elsewhere
from ..placing.nodes import StoredNode, find_misread, load_timelines
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
        passes = go_through(
            [(self._histories[each.pk], self._nodes[each.pk]) for each in self._together],
            self._fence,
            elsewhere=self._look_up(),
            write=self._write_window,
        )
        with hold_alone(passes, self._fence):
            kept = {self._first.pk}
            if len(passes) > 1:
                kept |= end_others(passes.keys() - kept)
            settled = [passes[each.pk] for each in self._together if each.pk in kept]
            write_together(settled, [self._histories[each.conversation.pk] for each in settled])
            finish()

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
            channel_id: find_bearers_alone(self._first.workspace_id, channel_id, citations)
            for channel_id, citations in wanted.items()
        }


def go_through(
    conversations: Sequence[tuple[History, Sequence[StoredNode]]],
    fence: Fence,
    *,
    elsewhere: Mapping[uuid.UUID, Mapping[Citation, Elsewhere]] = MappingProxyType({}),
    write: Callable[[Changes], None] | None = None,
) -> dict[uuid.UUID, Pass]:
    """Link, assign and tell the messages of these conversations, each of one block; nothing is written.

    Args:
        conversations: the histories of their wordings, and their messages in order key.
        fence: called between loads, as a sign of life.
        elsewhere: by channel, who bears in other conversations the ids that nobody bears in the citing one.
        write: writes what has changed in the first of them as soon as that is much.
    """
    passes = {}
    for history, nodes in conversations:
        conversation = history.conversation
        passes[conversation.pk] = begin_pass(
            conversation,
            Segment(FIRST, None, is_forced=False, nodes=list(nodes)),
            View(Facts(conversation.pk, is_empty=True), FIRST, is_first=True, is_only=True),
            history,
            outside=Outside(),
            elsewhere=elsewhere.get(conversation.channel_id, {}),
            count_before=lambda: 0,
        )
    retellings = {pk: each.retell(fence) for pk, each in passes.items()}
    load_together(list(retellings.values()), fence)
    for at, (pk, each) in enumerate(passes.items()):
        each.tell(retellings.pop(pk), None if at else write)
    return passes


def write_together(passes: Sequence[Pass], histories: Sequence[History], *, reader: uuid.UUID | None = None) -> None:
    """Write what conversations of one block each came to; call inside the transaction that holds them.

    Args:
        passes: what was gone through, of one workspace.
        histories: of their wordings.
        reader: the job that reads the last of a delivery and resolves them, where it does.
    """
    conversations = [each.conversation for each in passes]
    workspace_id = conversations[0].workspace_id
    hidden = count_hidden_by_conversation(conversations)
    write_changes([each.changes for each in passes], workspace_id=workspace_id)
    plays = {each.conversation.pk: _list_plays(each) for each in passes}
    write_tasks([(each, [make_row(play) for play in plays[each.pk]]) for each in conversations], since={})
    totals = {
        each.conversation.pk: add_up([each.summary], elements=each.elements, hidden=hidden.get(each.conversation.pk, 0))
        for each in passes
    }
    write_rows(conversations, totals, {pk: derive_state_of(each) for pk, each in plays.items()})
    write_exchanges([each.exchanges for each in passes])
    write_only_blocks([(each.conversation, each.summary.count) for each in passes])
    for history in histories:
        history.forget_unchanged()
    note_rest(histories, reader=reader)
    ask_opening(workspace_id=workspace_id, conversation_ids={each.pk for each in conversations})


def _list_plays(each: Pass) -> list[Play]:
    return [state.play for state in each.tasks.states.values() if state.play.message_count]
