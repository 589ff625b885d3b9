"""Which conversations are resolved together, in one transaction."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence

from django.db.models import Count

from ..models import Conversation
from ..models import Message as MessageRow
from ..placing.nodes import Timeline

# Conversations of at most so many messages and bytes are settled together, and so many of theirs at once.
SMALL, TOGETHER = 1000, 2000
SMALL_BYTES, TOGETHER_BYTES = 512 * 1024, 1024 * 1024


def find_together(conversation: Conversation, others: Sequence[Conversation]) -> list[Conversation]:
    """The conversation, and those of the others that are few messages together with it."""
    if not others:
        return [conversation]
    every = [conversation, *(other for other in others if other.pk != conversation.pk)]
    # Those that were settled, as their rows say, and those that came since.
    rows = MessageRow.objects.filter(conversation_id__in=[each.pk for each in every], place__isnull=True)
    counts = Counter({each.pk: each.message_count for each in every})
    counts.update(dict(rows.values_list("conversation_id").annotate(count=Count("id")).order_by()))
    held = counts[conversation.pk]
    found = [conversation]
    for other in every[1:]:
        count = counts[other.pk]
        if count <= SMALL and held + count <= TOGETHER:
            held += count
            found.append(other)
    return found


def bound(conversations: Sequence[Conversation], timelines: Mapping[uuid.UUID, Timeline]) -> list[Conversation]:
    """The first of these conversations, and the small ones after it that are not too much together.

    What is told of them is held until their last transaction. Of the first that is written on the way.
    """
    first, *others = conversations
    found, held = [first], 0
    for other in others:
        size = _count_bytes(timelines[other.pk])
        if size <= SMALL_BYTES and held + size <= TOGETHER_BYTES:
            held += size
            found.append(other)
    return found


def _count_bytes(timeline: Timeline) -> int:
    return sum(node.size_bytes for node in timeline.nodes)
