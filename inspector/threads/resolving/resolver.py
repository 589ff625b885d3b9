"""Resolving: each message of a conversation linked, assigned to its task and told; one loop, block by block.

A conversation is cut by order key into blocks of some hundred messages (`blocks`). To resolve it:

1. take the first block that is dirty: messages came into it, or something that it read has changed;
2. go through its messages in order, with a view of what holds where it begins (`view`): who is answered (`linking`),
   which task each belongs to (`assigning`, `tasks.rows`), and in which words it is told (`established`);
3. write the rows that came out otherwise, and what the block adds up to (`summaries`);
4. compare the facts that the block gives with those that it gave before: whoever read one of them is dirty now;
5. until none is dirty. Then the conversation's row is the sum of its blocks.

Nothing is carried from block to block, so one message more costs the blocks that it changes, wherever it comes in. The
same set of records gives the same rows in whatever order and batches they came: a block is a function of its messages
and of what it reads. Some blocks are written in one transaction, so that a worker killed at any point leaves blocks
that are resolved and blocks that are dirty. Most conversations are one block: those are resolved together (`small`),
and keep no facts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..agents.aggregates import add_rows, prune_declarations, write_declarations, write_exchanges
from ..decryption import ask_opening
from ..inserting.marking import Fence, hold_alone
from ..messages import count_hidden_by_conversation
from ..models import Conversation, Task
from ..models.blocks import FIRST, Block, Fact
from ..placing.citations import find_bearers_alone
from ..placing.nodes import StoredNode
from ..rendering.wordings import History, note_rest
from ..tasks.rows import write_touched
from .blocks import CHUNK, Segment, Timeline, begins_block, cut, is_long
from .linking import load_bearers
from .passes import Pass, begin_pass, list_citations
from .rereading import read_misread
from .small import Small
from .storing import mark_readers, write_blocks, write_facts
from .summaries import add_up, read_state_of, read_summary, with_elements, write_rows
from .view import Facts, View, digest_key
from .writing import write_changes

# So many dirty blocks that stand together are gone through in one transaction.
MAX_TOGETHER: Final = 8


def resolve(
    *,
    conversation: Conversation,
    fence: Fence,
    finish: Callable[[set[uuid.UUID]], None],
    others: Sequence[Conversation] = (),
) -> None:
    """Link, assign and tell what is dirty of a conversation, and note up to which generation it is resolved.

    Args:
        conversation: the row; its generation as loaded is what this run resolves.
        fence: called inside every writing transaction, and as the sign of life between them; raises when another
            worker has taken over.
        finish: called inside the last one, so that the job ends together with its work; with the ids of those of the
            others that it has resolved.
        others: more conversations of the same workspace, of which nobody else works on one: those of them that are
            small are resolved in the same last transaction.
    """
    if not is_long(conversation):
        small = Small([conversation, *others], fence)
        if not small.is_long:
            small.resolve(finish)
            return
    resolver = Resolver(conversation, fence)
    while resolver.dirty:
        resolver.resolve_first()
    resolver.finish(lambda: finish(set()))


class Resolver:
    """The loop over the blocks of one conversation."""

    def __init__(self, conversation: Conversation, fence: Fence) -> None:
        self._conversation = conversation
        self._fence = fence
        self._history = History(conversation)
        self._timeline = Timeline(conversation)
        blocks = self._timeline.blocks
        # Whether more may have changed than that messages came: then what is nobody's any more is looked for.
        self._is_whole = conversation.whole_generation > conversation.settled_generation or not all(
            block.is_linked for block in blocks
        )
        self.dirty = self._timeline.find_dirty() | {block.start for block in blocks if not block.is_linked}
        self._facts = Facts(conversation.pk, is_empty=not Fact.objects.filter(conversation=conversation).exists())

    def resolve_first(self) -> None:
        """Go through the first dirty block and dirty ones that follow it; write them, and mark who read them."""
        at, until, segments, rest = self._load()
        blocks = self._timeline.blocks
        old = [*self._timeline.former, *(block.start for block in blocks[at:until] if block.pk is not None)]
        self._timeline.former = []
        passes: list[Pass] = []
        count = sum(block.count for block in blocks[:at])
        fresh: dict[uuid.UUID, StoredNode] = {}
        for segment in segments:
            # What blocks behind it gave is known as it is stored, until they are gone through.
            self._facts.replace(border for border in old if border <= segment.border)
            passes.append(self._pass(segment, count, fresh))
            fresh |= {node.id: node for node in segment.nodes}
            count += len(segment.nodes)
        has_behind = until < len(blocks) or rest is not None
        is_moved = count != sum(block.count for block in blocks[:until])
        written, stale = self._write(old, passes, has_behind=has_behind, is_moved=is_moved)
        self.dirty -= {block.start for block in blocks[at:until]}
        blocks[at:until] = written
        self.dirty |= stale
        if rest is not None:
            blocks.insert(at + len(written), self._timeline.make(rest.border, rest.key, is_forced=rest.is_forced))
            self.dirty.add(rest.border)

    # What is gone through together.

    def _load(self) -> tuple[int, int, list[Segment], Segment | None]:
        """The first dirty blocks: from which to which they stand, as they are cut now, and what of them is left."""
        at = self._timeline.index(min(self.dirty))
        while True:
            at, until, nodes, is_all = self._load_from(at)
            if not self._read_misread(self._timeline.blocks[at], nodes):
                break
        first = self._timeline.blocks[at]
        segments = cut(nodes, border=first.start, key=first.key, is_forced=first.is_forced)
        rest = None
        if not is_all:
            # More follows, which may go on with the last of these; where that is the only one, it is full.
            rest = segments.pop() if len(segments) > 1 else None
        return at, until, segments, rest

    def _load_from(self, at: int) -> tuple[int, int, list[StoredNode], bool]:
        blocks = self._timeline.blocks
        while True:
            until = at + 1
            while until < len(blocks) and (
                blocks[until].is_forced or (blocks[until].border in self.dirty and until - at < MAX_TOGETHER)
            ):
                until += 1
            nodes, is_all = self._timeline.load(at, until, limit=CHUNK)
            if not at or self._begins(blocks[at], nodes):
                return at, until, nodes, is_all
            # Its first message is gone: what is left goes on with the block before.
            at -= 1

    @staticmethod
    def _begins(block: Block, nodes: Sequence[StoredNode]) -> bool:
        if not nodes or nodes[0].slot[: len(block.start)] != block.start:
            return False
        return block.is_forced or begins_block(nodes[0])

    def _read_misread(self, first: Block, nodes: Sequence[StoredNode]) -> bool:
        """Read those again that are to be read in another dialect, as far as the blocks before tell."""
        guessed = {slug for node in nodes if node.guess is not None for slug in node.guess.scores}
        view = View(self._facts, first.start, is_first=first.start == FIRST)
        spoken = {slug: None for slug in sorted(guessed) if view.get(("spoken", slug))}
        return read_misread(self._conversation, nodes, spoken, self._history, self._fence)

    # One block.

    def _pass(self, segment: Segment, count_before: int, fresh: Mapping[uuid.UUID, StoredNode]) -> Pass:
        conversation = self._conversation
        view = View(self._facts, segment.border, is_first=segment.border == FIRST)
        for slug in {slug for node in segment.nodes if node.guess is not None for slug in node.guess.scores}:
            # In which dialect they are read was decided by this.
            view.get(("spoken", slug))
        outside = load_bearers(conversation, segment.nodes, fresh)
        borne = {node.key for node in segment.nodes if node.key} | outside.earlier.keys() | outside.later.keys()
        citations = list_citations(segment.nodes, borne)
        elsewhere = find_bearers_alone(conversation.workspace_id, conversation.channel_id, citations)
        passed = begin_pass(
            conversation,
            segment,
            view,
            self._history,
            outside=outside,
            elsewhere=elsewhere,
            count_before=lambda: count_before,
        )
        passed.tell(passed.retell(self._fence))
        self._facts.take(segment.border, view.list_given())
        return passed

    # Writing.

    def _write(
        self, old: Sequence[bytes], passes: Sequence[Pass], *, has_behind: bool, is_moved: bool
    ) -> tuple[list[Block], set[bytes]]:
        """Write blocks and their messages; the rows of the blocks, and the borders of those that are dirty by it."""
        conversation = self._conversation
        with hold_alone([conversation.pk], self._fence):
            generation = Conversation.objects.values_list("generation", flat=True).get(pk=conversation.pk)
            write_changes([each.changes for each in passes], workspace_id=conversation.workspace_id)
            changed = write_facts(conversation, old, passes)
            if is_moved and passes:
                changed.behind.append((digest_key(("count",)), passes[-1].segment.border))
            is_quiet = generation == conversation.generation
            touched = {task_id for each in passes for task_id in each.tasks.states}
            # From here on all that is known is stored.
            self._facts.written()
            write_touched(conversation, touched | changed.tasks, self._facts)
            for each in passes:
                write_declarations(each.exchanges, [node.id for node in each.nodes])
            written = write_blocks(
                conversation,
                old,
                [(each.segment, with_elements(each.summary, each.elements)) for each in passes],
                is_quiet=is_quiet,
            )
            stale = mark_readers(
                conversation,
                changed,
                [each.segment.border for each in passes],
                has_behind=has_behind,
                is_quiet=is_quiet,
            )
        return written, stale

    def finish(self, finish: Callable[[], None]) -> None:
        """Write what the blocks come to, and end the job with it."""
        conversation = self._conversation
        hidden = count_hidden_by_conversation([conversation]).get(conversation.pk, 0)
        with hold_alone([conversation.pk], self._fence):
            texts = Block.objects.filter(conversation=conversation).order_by("border").values_list("summary", flat=True)
            summaries = [read_summary(text) for text in texts if text]
            if self._is_whole:
                self._prune()
            write_rows([(conversation, add_up(summaries, hidden=hidden), read_state_of(conversation))])
            write_exchanges([add_rows(conversation, (each.exchanges for each in summaries))], has_declared=False)
            self._history.forget_unchanged()
            note_rest([self._history])
            ask_opening(workspace_id=conversation.workspace_id, conversation_ids={conversation.pk})
            finish()

    def _prune(self) -> None:
        """Delete the tasks that no block tells of, and what messages declared that are not shown any more."""
        conversation = self._conversation
        keys = {
            digest_key(("task", pk.hex)): pk
            for pk in Task.objects.filter(conversation=conversation).values_list("pk", flat=True)
        }
        known = Fact.objects.filter(conversation=conversation, key__in=list(keys)).values_list("key", flat=True)
        gone = [keys[key] for key in keys.keys() - {bytes(key) for key in known}]
        Task.objects.filter(pk__in=gone).delete()
        prune_declarations(conversation)
