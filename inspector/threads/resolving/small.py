"""Conversations of one block each, which most are: resolved together, and written in one transaction."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from django.db.models import Count

from ..agents.aggregates import write_exchanges
from ..decryption import ask_opening
from ..inserting.marking import Fence, hold_alone
from ..messages import count_hidden_by_conversation
from ..models import Conversation, Task
from ..models import Message as MessageRow
from ..models.blocks import FIRST
from ..placing.citations import Citation, Elsewhere, find_bearers_alone
from ..placing.nodes import StoredNode, find_misread, load_timelines
from ..rendering.retelling import load_together
from ..rendering.wordings import History, note_rest
from ..tasks.rows import make_row, write_tasks
from ..tasks.states import TaskState
from .blocks import Segment, is_one_block
from .linking import Outside
from .passes import Pass, begin_pass, list_citations
from .rereading import read_misread
from .storing import write_only_blocks
from .summaries import add_up, derive_state_of, write_rows
from .view import View
from .writing import Changes, write_changes

# Conversations of at most so many messages and bytes are resolved together, and so many of theirs at once.
SMALL, TOGETHER = 1000, 2000
SMALL_BYTES, TOGETHER_BYTES = 512 * 1024, 1024 * 1024


class Small:
    """Conversations of one block each, but for what reading some of their records again may add.

    Args:
        conversations: the first of which is the one whose job it is; the others as far as they are small.
        fence: as `resolve` takes it.
    """

    def __init__(self, conversations: Sequence[Conversation], fence: Fence) -> None:
        first, *others = find_together(conversations)
        self._first = first
        self._fence = fence
        self._histories = {each.pk: History(each) for each in (first, *others)}
        self._nodes = load_timelines([first.pk, *(each.pk for each in others)])
        while read_misread(first, self._nodes[first.pk], {}, self._histories[first.pk], fence):
            self._nodes |= load_timelines([first.pk])
        # What is to be read again of the others, their own jobs read.
        whole = [each for each in others if next(find_misread(self._nodes[each.pk], {}), None) is None]
        self._together = [first, *self._bound(whole)]

    @property
    def is_long(self) -> bool:
        """Whether the first of them turns out to be more than one block."""
        return not is_one_block(len(self._nodes[self._first.pk]))

    def resolve(self, finish: Callable[[set[uuid.UUID]], None]) -> None:
        """Go through all of them and write them; `finish` is called with the ids of those after the first."""
        passes = go_through(
            [(self._histories[each.pk], self._nodes[each.pk]) for each in self._together],
            self._fence,
            elsewhere=self._look_up(),
            write=self._write_window,
        )
        with hold_alone(passes, self._fence):
            write_together(list(passes.values()), [self._histories[pk] for pk in passes])
            finish(passes.keys() - {self._first.pk})

    def _bound(self, conversations: Sequence[Conversation]) -> list[Conversation]:
        """Those of one block that are not too much together: what is told of them is held until they are written."""
        found, held = [], 0
        for each in conversations:
            nodes = self._nodes[each.pk]
            size = sum(node.size_bytes for node in nodes)
            if size <= SMALL_BYTES and held + size <= TOGETHER_BYTES and is_one_block(len(nodes)):
                held += size
                found.append(each)
        return found

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
            View.of_nothing(),
            history,
            outside=Outside(),
            elsewhere=elsewhere.get(conversation.channel_id, {}),
            count_before=lambda: 0,
        )
    retellings = {pk: each.retell(fence) for pk, each in passes.items()}
    load_together(list(retellings.values()))
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
    tasks = {each.conversation.pk: _list_tasks(each) for each in passes}
    write_tasks(
        [make_row(each, task) for each in conversations for task in tasks[each.pk]],
        known=Task.objects.filter(conversation_id__in=list(tasks)),
    )
    write_rows(
        [
            (
                each.conversation,
                add_up([each.summary], elements=each.elements, hidden=hidden.get(each.conversation.pk, 0)),
                derive_state_of(tasks[each.conversation.pk]),
            )
            for each in passes
        ]
    )
    write_exchanges([each.exchanges for each in passes])
    write_only_blocks([(each.conversation, each.summary.count) for each in passes])
    for history in histories:
        history.forget_unchanged()
    note_rest(histories, reader=reader)
    ask_opening(workspace_id=workspace_id, conversation_ids={each.pk for each in conversations})


def _list_tasks(each: Pass) -> list[TaskState]:
    return [task for task in each.tasks.states.values() if task.message_count]


def find_together(conversations: Sequence[Conversation]) -> list[Conversation]:
    """The first of these conversations, and those of the others that are few messages together with it."""
    first, *others = conversations
    if not others:
        return [first]
    # Those that were resolved, as their rows say, and those that came since.
    rows = MessageRow.objects.filter(conversation_id__in=[each.pk for each in conversations], place__isnull=True)
    counts = Counter({each.pk: each.message_count for each in conversations})
    counts.update(dict(rows.values_list("conversation_id").annotate(count=Count("id")).order_by()))
    held = counts[first.pk]
    found = [first]
    for other in others:
        count = counts[other.pk]
        if count <= SMALL and held + count <= TOGETHER:
            held += count
            found.append(other)
    return found
