"""The blocks of a conversation: where its timeline is cut, and which of them have to be resolved.

Where a block begins is decided by its records alone, so that the same ones are cut alike whatever came first and in
whatever file: about one message in 256 begins one; and where none does for long, the thousandth. A conversation that is
not longer than that is one block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final
from zlib import crc32

from ..models import Conversation, Message
from ..models.blocks import FIRST, Block
from ..placing.nodes import StoredNode, load_chunk
from ..placing.places import KEY_BYTES
from .view import name_form

# Of so many messages one begins a block, on average; no block is longer than that, and no shorter conversation is cut.
SPACING: Final = 256
MAX_MESSAGES: Final = 1024
# So many messages are gone through in one transaction, a block more or less.
CHUNK: Final = 2048

OrderKey = tuple[datetime, bytes, int]


@dataclass(slots=True)
class Segment:
    """Messages that make up a block, by order key."""

    border: bytes
    key: OrderKey | None
    is_forced: bool
    nodes: list[StoredNode]


def cut(nodes: Sequence[StoredNode], *, border: bytes, key: OrderKey | None, is_forced: bool) -> list[Segment]:
    """These messages, which begin at a border, as blocks; the parts of a record stay together."""
    segments = [Segment(border, key, is_forced, [])]
    for _, same in groupby(nodes, key=lambda node: (node.instant, node.source, node.index)):
        run = list(same)
        held = segments[-1].nodes
        is_natural = begins_block(run[0])
        if held and (is_natural or len(held) + len(run) > MAX_MESSAGES):
            segments.append(Segment(run[0].slot[:KEY_BYTES], run[0].order, not is_natural, []))
        segments[-1].nodes.extend(run)
    return segments


def is_one_block(count: int) -> bool:
    """Whether a conversation of so many messages is not cut."""
    return count <= MAX_MESSAGES


def is_long(conversation: Conversation) -> bool:
    """Whether a conversation is several blocks, as far as its records are read."""
    messages = Message.objects.shown().filter(conversation=conversation).values("pk")
    return not is_one_block(messages[: MAX_MESSAGES + 1].count())


def begins_block(node: StoredNode) -> bool:
    """Whether a message begins a block, whatever comes before it."""
    return crc32(node.identity) % SPACING == 0


class Timeline:
    """The blocks of one conversation, in order, those that are not stored yet among them."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        stored = list(Block.objects.filter(conversation=conversation).order_by("border"))
        # What another version of the program has stored says where messages stand, and no more.
        self.former = [block.start for block in stored] if stored and stored[0].start != FIRST else []
        self.blocks: list[Block] = stored if stored and not self.former else [self.make(FIRST, None, is_forced=False)]

    def make(self, border: bytes, key: OrderKey | None, *, is_forced: bool) -> Block:
        """A block that is yet to be resolved."""
        block = Block(
            conversation=self.conversation, workspace_id=self.conversation.workspace_id, border=border, is_stale=True
        )
        block.is_forced = is_forced
        if key is not None:
            block.order_time, block.order_source, block.order_index = key
        return block

    @property
    def borders(self) -> list[bytes]:
        """Where the blocks begin."""
        return [block.start for block in self.blocks]

    def find_dirty(self) -> set[bytes]:
        """The borders of the blocks that have to be resolved."""
        conversation, form, borders = self.conversation, name_form(), self.borders
        dirty = {
            block.start
            for block in self.blocks
            if block.is_stale
            or block.form != form
            or block.generation < max(block.changed_generation, conversation.whole_generation)
        }
        rows = Message.objects.shown().filter(conversation=conversation, place__isnull=True)
        if len(borders) == 1:
            if rows.exists():
                dirty.add(borders[0])
            return dirty
        for at, source, index in rows.values_list("order_time", "order_source", "order_index").iterator():
            dirty.add(borders[self.find_at(at, bytes(source), index)])
        return dirty

    def find_at(self, at: datetime, source: bytes, index: int) -> int:
        """The number of the block that an order key belongs to."""
        return bisect_right(self.blocks, (at, source, index), lo=1, key=_order_of) - 1

    def index(self, border: bytes) -> int:
        """The number of the block that begins at a border."""
        return self.borders.index(border)

    def load(self, at: int, until: int, *, limit: int) -> tuple[list[StoredNode], bool]:
        """The messages from one block on up to another one, in order, so many at most; and whether these are all."""
        end = _order_of(self.blocks[until]) if until < len(self.blocks) else None
        start = _order_of(self.blocks[at]) if at else None
        return load_chunk(self.conversation.pk, start, end, limit=limit)


def _order_of(block: Block) -> OrderKey:
    key = block.key
    if key is None:
        raise ValueError("every block but the first begins with a message")
    return key
