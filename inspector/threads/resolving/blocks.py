"""The blocks of a conversation: where its timeline is cut, by its records alone, and which have to be resolved."""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final
from zlib import crc32

from django.db import transaction

from inspector.intake.models import Record

from ..inserting.inserts import find_citing, find_keys, read_record, replace_parts
from ..inserting.marking import Fence, hold_channels, hold_conversations, mark_conversations
from ..models import Message
from ..models.blocks import FIRST, Block
from ..placing.links import Guess
from ..placing.nodes import StoredNode, find_misread, load_chunk
from ..placing.places import KEY_BYTES, slot_of
from ..rendering.wordings import History
from .passes import Pass, Recut
from .storing import mark_blocks
from .view import View, name_form
from .writing import Changes

# Of so many messages one begins a block, on average; no block is longer than that, and no shorter conversation is cut.
SPACING: Final = 256
MAX_MESSAGES: Final = 1024
# So many messages are loaded at once, a block more or less.
CHUNK: Final = 2048


def is_one_block(count: int) -> bool:
    """Whether a conversation of so many messages is not cut."""
    return count <= MAX_MESSAGES


def begins_block(node: StoredNode) -> bool:
    """Whether a message begins a block, whatever comes before it."""
    return crc32(node.identity) % SPACING == 0


class Timeline:
    """The blocks of one conversation that is being resolved, in order, and which of them are dirty; `nodes` are all of
    its messages, where they are one block."""

    def __init__(self, history: History, nodes: list[StoredNode] | None = None) -> None:
        self.history = history
        self.conversation = conversation = history.conversation
        self.is_only = nodes is not None
        first = Block(conversation=conversation, workspace_id=conversation.workspace_id, border=FIRST)
        self.blocks = [first]
        self.dirty = {FIRST}
        # Whether more may have changed than that messages came: then what is nobody's any more is looked for.
        self.is_whole = True
        # Blocks that are cut and loaded, and what that has changed.
        self._loaded = [] if nodes is None else [(first, nodes)]
        self._recut = Recut()
        if nodes is None:
            self._read_blocks()

    def _read_blocks(self) -> None:
        conversation, form = self.conversation, name_form()
        stored = list(Block.objects.filter(conversation=conversation).order_by("border"))
        if not stored or stored[0].start != FIRST:
            # What another version of the program has stored says where messages stand, and no more.
            self._recut.gone = [block.start for block in stored]
            return
        self.blocks, self.dirty = stored, set()
        latest = conversation.whole_generation
        self.is_whole = latest > conversation.settled_generation or not all(block.is_linked for block in stored)
        for block in stored:
            is_current = block.generation >= max(block.changed_generation, latest) and block.form == form
            if block.is_stale or not block.is_linked or not is_current:
                self.dirty.add(block.start)
        borders = [block.start for block in stored]
        rows = Message.objects.shown().filter(conversation=conversation, place__isnull=True)
        for at, source, index in rows.values_list("order_time", "order_source", "order_index").iterator():
            self.dirty.add(borders[max(0, bisect_right(borders, slot_of(at, bytes(source), index)) - 1)])

    def begin_next(self, changes: Changes, fence: Fence) -> Pass:
        """Begin to go through the first dirty block, as it is cut now."""
        if not self._loaded:
            self._load(fence)
        block, nodes = self._loaded.pop(0)
        self.dirty.discard(block.start)
        if self.is_only:
            return Pass(self.history, block, nodes, View(), changes)
        passed = Pass(self.history, block, nodes, View(self.conversation.pk, block.start), changes)
        passed.recut, self._recut = self._recut, Recut()
        passed.count_before = sum(each.count for each in self.blocks[: self.blocks.index(block)])
        passed.look_around()
        return passed

    def _load(self, fence: Fence) -> None:
        """Load and cut the first dirty blocks that stand together."""
        blocks = self.blocks
        at = next(at for at, block in enumerate(blocks) if block.start in self.dirty)
        while True:
            until = at + 1
            while until < len(blocks) and (blocks[until].is_forced or blocks[until].start in self.dirty):
                until += 1
            first, end = blocks[at], blocks[until].key if until < len(blocks) else None
            nodes, is_all = load_chunk(self.conversation.pk, first.key, end, limit=CHUNK)
            if at and not _begins(first, nodes):
                # Its first message is gone: what is left goes on with the block before.
                at -= 1
            elif not read_misread(self.history, nodes, View(self.conversation.pk, first.start), fence):
                break
        cut = list(_cut(nodes, first))
        # What follows what was loaded may go on with the last of these; where that is the only one, it is full.
        self._loaded = cut if is_all or len(cut) == 1 else cut[:-1]
        if not is_all:
            until = bisect_right(blocks, nodes[-1].slot, key=lambda block: block.start)
        old, new = blocks[at:until], [block for block, _ in cut]
        if [(each.start, each.is_forced) for each in old] == [(each.start, each.is_forced) for each in new]:
            self._loaded = [(block, nodes) for block, (_, nodes) in zip(old, self._loaded, strict=False)]
            self._recut.is_moved = any(block.count != len(nodes) for block, nodes in self._loaded)
        else:
            blocks[at:until] = new
            for each in new:
                each.generation = min(block.generation for block in old)
            borders = {each.start for each in new}
            self._recut.gone += [each.start for each in old if each.start not in borders]
            self._recut.beside, self._recut.is_moved = new[1:], True
        for block, held in self._loaded:
            block.count = len(held)
        self.dirty -= {each.start for each in old}
        self.dirty |= {each.start for each in new}


def _begins(block: Block, nodes: Sequence[StoredNode]) -> bool:
    """Whether a block still begins with the first of these messages."""
    is_there = bool(nodes) and nodes[0].slot[:KEY_BYTES] == block.start
    return is_there and (block.is_forced or begins_block(nodes[0]))


def _cut(nodes: Sequence[StoredNode], first: Block) -> Iterator[tuple[Block, list[StoredNode]]]:
    """These messages, which begin with a block, as blocks; the parts of a record stay together."""
    whose = {"conversation_id": first.conversation_id, "workspace_id": first.workspace_id}
    order = first.key or (None, None, None)
    block, held = Block(**whose, border=first.start, is_forced=first.is_forced), list[StoredNode]()
    block.order_time, block.order_source, block.order_index = order
    for order, same in groupby(nodes, key=lambda node: node.order):
        run = list(same)
        is_natural = begins_block(run[0])
        if held and (is_natural or len(held) + len(run) > MAX_MESSAGES):
            yield block, held
            block, held = Block(**whose, border=run[0].slot[:KEY_BYTES], is_forced=not is_natural), []
            block.order_time, block.order_source, block.order_index = order
        held += run
    yield block, held


def _read_again(history: History, record_id: uuid.UUID, dialect: str | None, guess: Guess | None, fence: Fence) -> None:
    """Put the messages of a record that is read otherwise in the place of its earlier ones, and mark who cites them."""
    conversation = history.conversation
    arrival = read_record(Record.objects.get(pk=record_id), dialect=dialect)
    with transaction.atomic():
        hold_channels([conversation.channel_id], is_shared=True)
        borne = {conversation.channel_id: {key: {conversation.pk} for key in find_keys(conversation, arrival)}}
        citing = find_citing(borne, conversation.workspace_id)
        hold_conversations({conversation.pk, *citing})
        fence()
        ids = citing.keys()
        mark_conversations(conversation_ids=ids, workspace_id=conversation.workspace_id, added_to=ids)
        mark_blocks(citing)
        history.read_anew(record_id, is_outdated=dialect is None)
        replace_parts(arrival, conversation, guess, at=history.at)


def read_misread(history: History, nodes: Sequence[StoredNode], view: View, fence: Fence) -> bool:
    """Read again what is to be read otherwise of these nodes of a conversation, in order key; whether there was
    anything. Its messages have to be loaded again then. `view` is what holds before them."""
    guessed = {slug for node in nodes if node.guess is not None for slug in node.guess.scores}
    spoken = {slug: None for slug in sorted(guessed) if view.get(("spoken", slug))}
    misread = list(find_misread(nodes, spoken))
    for record_id, dialect, guess in misread:
        fence()
        _read_again(history, record_id, dialect, guess, fence)
    return bool(misread)
