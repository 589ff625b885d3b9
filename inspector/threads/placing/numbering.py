"""The numbers of messages, counted by the blocks of their conversations."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef

from ..models import Block, Conversation, Message
from .places import BlockSize, Places

_blocks = Block.objects.filter(conversation=OuterRef("pk")).order_by("border")
# What a conversation may be annotated with, so that its places need no statement of their own.
PLACES: Final[Mapping[str, ArraySubquery]] = {
    "block_borders": ArraySubquery(_blocks.values("border")),
    "block_sizes": ArraySubquery(_blocks.values("count")),
}


def load_places(conversation: Conversation) -> Places:
    """The places of a conversation; of one that was never resolved there are none. One statement for each instance."""
    held: Places | None = conversation.__dict__.get("_places")
    if held is None:
        borders, sizes = (conversation.__dict__.get(name) for name in PLACES)
        if borders is not None and sizes is not None:
            held = Places([BlockSize(bytes(border), size) for border, size in zip(borders, sizes, strict=True)])
        else:
            held = load_all_places([conversation.pk]).get(conversation.pk, Places())
        conversation.__dict__["_places"] = held
    return held


def load_all_places(conversation_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Places]:
    """The places of these conversations; one statement."""
    rows = Block.objects.filter(conversation__in=list(conversation_ids)).order_by("conversation_id", "border")
    found: dict[uuid.UUID, list[BlockSize]] = defaultdict(list)
    for pk, border, count in rows.values_list("conversation_id", "border", "count"):
        found[pk].append(BlockSize(bytes(border), count))
    return {pk: Places(blocks) for pk, blocks in found.items()}


def number_messages(messages: Iterable[Message]) -> None:
    """Give these messages their numbers, counted from 1 in the conversation of each; one statement."""
    every = list(messages)
    known = load_all_places({message.conversation_id for message in every}) if every else {}
    for message in every:
        places = known.get(message.conversation_id)
        message.number = places.find_position(message.place) + 1 if places else 0
