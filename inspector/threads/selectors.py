"""Reads of threads: conversations, their trees, messages and what each unfolds to. All within one workspace."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from dialects import Context, Keys, Reading, choose_dialect, tell
from inspector.accounts.models import Workspace
from inspector.intake.facts import read_with_facts

from .measures import annotate_stands
from .models import Conversation, Message
from .numbering import number_messages
from .outline import Kind
from .windows import load_tree


def find_conversation(*, workspace: Workspace, conversation_id: uuid.UUID) -> Conversation | None:
    """The conversation of that id in this workspace, with how it `stands`, or None."""
    rows = Conversation.objects.select_related("channel", "places").filter(workspace=workspace, pk=conversation_id)
    found: Conversation | None = annotate_stands(rows).first()
    return found


def list_conversations(
    *,
    workspace: Workspace,
    before: tuple[datetime, uuid.UUID] | None = None,
    limit: int = 50,
    dialect: str = "",
    agent: str = "",
    state: str = "",
) -> list[Conversation]:
    """Conversations with at least one settled message, latest activity first, by keyset, each with how it `stands`.

    Args:
        before: (last_at, id) of the last one seen.
        dialect, agent, state: only conversations that hold this dialect, name this agent, or stand so.
    """
    rows = filter_conversations(workspace=workspace, dialect=dialect, agent=agent, state=state)
    if before:
        last_at, conversation_id = before
        rows = rows.filter(Q(last_at__lt=last_at) | Q(last_at=last_at, pk__lt=conversation_id))
    return list(rows.select_related("channel").order_by("-last_at", "-id")[:limit])


def filter_conversations(*, workspace: Workspace, dialect: str = "", agent: str = "", state: str = "") -> QuerySet[Any]:
    """The conversations that such a list holds, in no order, each with how it `stands`."""
    rows = annotate_stands(Conversation.objects.filter(workspace=workspace, last_at__isnull=False))
    if dialect:
        rows = rows.filter(dialects__contains=[dialect])
    if agent:
        rows = rows.filter(agents__contains=[agent])
    if state:
        rows = rows.filter(stands=state)
    return rows


def count_messages(*, workspace: Workspace) -> int:
    """How many messages the workspace's settled conversations hold."""
    from django.db.models import Sum

    total = Conversation.objects.filter(workspace=workspace).aggregate(total=Sum("message_count"))["total"]
    return int(total or 0)


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A line of the transcript: a message with its depth, or the ghost of one that was not received."""

    depth: int
    message: Message | None
    body: Mapping[str, Any]
    ghost: str = ""

    @property
    def is_ghost(self) -> bool:
        """Whether the message was cited and never received."""
        return self.message is None


@dataclass(frozen=True, slots=True)
class TreeWindow:
    """A stretch of a conversation's tree; `next_offset` is None at its end."""

    rows: Sequence[TreeRow]
    offset: int
    next_offset: int | None
    previous_offset: int | None


def read_tree(*, conversation: Conversation, offset: int = 0, limit: int = 200) -> TreeWindow:
    """The tree's rows from `offset` on, in display order, with their messages and told bodies.

    The number of queries does not depend on the number of rows. Records are not loaded, because a hundred of them
    may be larger than memory: `summaries.load_records` loads those of a bearable size.
    """
    tree = load_tree(conversation)
    if tree is None:
        return TreeWindow((), offset, None, max(0, offset - limit) if offset else None)
    window = tree.read_window(at=offset, limit=limit)
    ids = [uuid.UUID(bytes=row.line.id) for row in window.rows if row.line.kind == Kind.MESSAGE]
    messages = Message.objects.in_bulk(ids)
    number_messages(messages.values())
    shown = []
    for row in window.rows:
        if row.line.kind == Kind.GHOST:
            shown.append(TreeRow(row.depth, None, {}, row.line.id.hex()))
        elif (message := messages.get(uuid.UUID(bytes=row.line.id))) is not None:
            shown.append(TreeRow(row.depth, message, read_body(message)))
    return TreeWindow(rows=shown, offset=offset, next_offset=window.next, previous_offset=window.previous)


def read_body(message: Message) -> Mapping[str, Any]:
    """What telling wrote: `message` (the names that are not absent) and `record`; empty while it is not told."""
    return json.loads(message.body) if message.body else {"message": {}, "record": {}}


def find_message(*, workspace: Workspace, message_id: uuid.UUID) -> Message | None:
    """The message of that id in this workspace, with its record and conversation, or None."""
    rows = Message.objects.select_related("record", "conversation", "channel")
    return rows.filter(workspace=workspace, pk=message_id).first()


def find_messages_by_ids(*, workspace: Workspace, message_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Message]:
    """The messages of these ids in this workspace, with their numbers."""
    found = Message.objects.filter(workspace=workspace).in_bulk(list(message_ids))
    number_messages(found.values())
    return found


def find_neighbours(*, message: Message) -> tuple[Message | None, Message | None]:
    """The messages before and after this one in the timeline of its conversation."""
    rows = Message.objects.shown().filter(conversation_id=message.conversation_id)
    if message.place is None:
        return None, None
    before = rows.filter(place__lt=message.place).order_by("-place").first()
    after = rows.filter(place__gt=message.place).order_by("place").first()
    return before, after


def list_around(*, message: Message, each_side: int = 3) -> list[Message]:
    """A message among those before and after it in the timeline of its conversation."""
    rows = Message.objects.shown().filter(conversation_id=message.conversation_id).defer("body", "words", "atoms")
    if message.place is None:
        return [message]
    before = rows.filter(place__lt=message.place).order_by("-place")[:each_side]
    after = rows.filter(place__gt=message.place).order_by("place")[:each_side]
    return [*reversed(before), message, *after]


def list_answers(*, message: Message, limit: int = 50) -> list[Message]:
    """The messages that answer this one, in order."""
    rows = Message.objects.shown().filter(conversation_id=message.conversation_id, parent=message.pk)
    return list(rows.exclude(parent_basis="adjacency").order_by("place")[:limit])


def unfold(*, message: Message, keys: Keys | None = None) -> Reading:
    """The record of a message read anew: its layers and its field tree, in the dialect it was settled in.

    The English is the stored one; the tree is recomputed (architecture, decision 8). With keys, what they open is
    unfolded too.
    """
    record = message.record
    reading = read_with_facts(record.wire_text, record.envelope, record.facts, dialect=message.dialect)
    told = tell(choose_dialect(reading, Context()), Context(), keys)
    return reading.replace(
        layers=(*reading.layers, *told.layers), tree=lambda: (*reading.fields, *told.fields), messages=told.messages
    )
