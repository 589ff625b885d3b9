"""Reads of threads: conversations, their trees, messages and what each unfolds to. All within one workspace."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import zip_longest
from typing import Any, Final

from django.db.models import BinaryField, Case, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Length

from dialects import Keys, Reading
from inspector.accounts.models import Workspace
from inspector.intake.facts import read_with_facts
from inspector.intake.models import HiddenRecord

from .agents.meanings import select_naming
from .deliveries import select_messages_of_delivery
from .feed import Snapshot
from .models import Conversation, Message, Wording
from .placing.numbering import PLACES, load_places, number_messages
from .tasks.measures import annotate_stands
from .telling.masks import MOST_BYTES_LOOKED_THROUGH, unfold_reading
from .trees.outline import Kind
from .trees.traces import select_trace
from .trees.windows import Place, load_tree


def find_conversation(*, workspace: Workspace, conversation_id: uuid.UUID) -> Conversation | None:
    """The conversation of that id, with how it `stands` and the `snapshot` it was read in, or None."""
    found: Conversation | None = _select_whole().filter(workspace=workspace, pk=conversation_id).first()
    return found


@cache
def _select_whole() -> QuerySet[Any]:
    """Conversations with all that a page of one needs: made once, for making it takes longer than asking."""
    rows = Conversation.objects.select_related("channel").annotate(snapshot=Snapshot(), **PLACES)
    return annotate_stands(rows)


WORST: Final = "worst"


def select_conversations(
    *,
    workspace: Workspace,
    before: tuple[datetime, uuid.UUID] | None = None,
    dialect: str = "",
    agent: str = "",
    state: str = "",
    fault: str = "",
    delivery: str = "",
    channel: str = "",
    order: str = "",
    grade: int | None = None,
) -> QuerySet[Conversation]:
    """Conversations with at least one settled message, latest activity first, by keyset, each with how it `stands`.

    Args:
        before: (last_at, id) of the last one seen.
        order: `worst` for the gravest open finding first, and among equals the latest activity.
        grade: where it is `worst`, the `open_severity` of the last one seen.
        dialect, agent, state: only conversations that hold this dialect, name this agent, or stand so.
        fault: only those with `errors` in what was read, or with messages cited that are `missing`.
        delivery: only those that hold a shown message of the delivery with this id.
        channel: only those in the channel of this name.
    """
    rows = filter_conversations(
        workspace=workspace, dialect=dialect, agent=agent, state=state, fault=fault, delivery=delivery, channel=channel
    )
    if before:
        last_at, conversation_id = before
        later = Q(last_at__lt=last_at) | Q(last_at=last_at, pk__lt=conversation_id)
        if order == WORST and grade is not None:
            later = Q(open_severity__lt=grade) | (Q(open_severity=grade) & later)
        rows = rows.filter(later)
    ranks = ("-open_severity",) if order == WORST else ()
    ordered: QuerySet[Conversation] = rows.select_related("channel").order_by(*ranks, "-last_at", "-id")
    return ordered


def walk_conversations(*, workspace: Workspace, **filters: str) -> QuerySet[Conversation]:
    """Conversations with at least one settled message, the newest made first: an order in which none moves.

    Args:
        filters: as in `filter_conversations`.
    """
    return filter_conversations(workspace=workspace, **filters).select_related("channel").order_by("-pk")


def filter_conversations(
    *,
    workspace: Workspace,
    dialect: str = "",
    agent: str = "",
    state: str = "",
    fault: str = "",
    delivery: str = "",
    channel: str = "",
) -> QuerySet[Any]:
    """The conversations that such a list holds, in no order, each with how it `stands`."""
    rows = annotate_stands(Conversation.objects.filter(workspace=workspace, last_at__isnull=False))
    if dialect:
        rows = rows.filter(dialects__contains=[dialect])
    if agent:
        rows = rows.filter(select_naming(workspace=workspace, name=agent))
    if state:
        rows = rows.filter(stands=state)
    if fault:
        rows = rows.filter(FAULTS[fault])
    if channel:
        rows = rows.filter(channel__name=channel)
    if delivery:
        reached = select_messages_of_delivery(workspace=workspace, delivery_id=uuid.UUID(delivery))
        rows = rows.filter(pk__in=reached.values("conversation"))
    return rows


# What may be wrong with a conversation as such; the overview counts the same.
FAULTS: Final = {"errors": Q(severity=Message.Severity.ERROR), "missing": Q(missing_count__gt=0)}


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A line of the transcript: a message with its depth, or the ghost of one that was not received."""

    depth: int
    message: Message | None
    body: Mapping[str, Any]
    ghost: str = ""


@dataclass(frozen=True, slots=True)
class TreeWindow:
    """A stretch of a conversation's tree; `next_offset` is None at its end."""

    rows: Sequence[TreeRow]
    offset: int
    next_offset: int | None
    previous_offset: int | None


def read_tree(*, conversation: Conversation, offset: int = 0, limit: int = 200) -> TreeWindow:
    """The tree's rows from a message on, in display order, with their messages and told bodies.

    The number of queries does not depend on the number of rows. Records are not loaded, because a hundred of them
    may be larger than memory: `summaries.load_records` loads those of a bearable size.

    Args:
        conversation: whose tree.
        offset: the position in the timeline of the message that the window begins with, counted from 0; 0 for the
            beginning of the tree.
        limit: how many rows at most. A ghost at the end, of which nothing would be shown, is left to the next window.
    """
    tree = load_tree(conversation)
    if tree is None:
        return TreeWindow((), offset, None, None)
    start = find_at(conversation=conversation, position=offset) if offset else None
    if offset and start is None:
        return TreeWindow((), offset, None, max(0, conversation.message_count - limit))
    window = tree.read_window(at=tree.find_opening(start) if start else None, limit=limit)
    rows, following = list(window.rows), window.next
    while following is not None and following.is_after:
        # The next line stands far up from here.
        on = tree.read_window(at=following, limit=1)
        following = Place(on.rows[0].place, on.rows[0].depth) if on.rows else on.next
    if following is not None and rows and rows[-1].line.kind is Kind.GHOST:
        rows.pop()
    ids = [row.line.id for row in rows if row.line.kind == Kind.MESSAGE]
    edges = (following, window.previous)
    messages = Message.objects.in_bulk([*ids, *(each.line for each in edges if each)])
    # A ghost has no number: the first message below it has.
    next_id, previous_id = (
        None if each is None else each.line if each.line in messages else tree.find_message(each) for each in edges
    )
    messages |= Message.objects.in_bulk([each for each in (next_id, previous_id) if each and each not in messages])
    number_messages(messages.values())
    shown: list[TreeRow] = []
    for row, below in zip_longest(rows, rows[1:]):
        message = messages.get(row.line.id)
        if row.line.kind == Kind.GHOST:
            citing = messages.get(below.line.id) if below else None
            shown.append(TreeRow(row.depth, None, {}, bytes(citing.parent_key or b"").hex() if citing else ""))
        elif message is not None:
            shown.append(TreeRow(row.depth, message, read_body(message)))
    return TreeWindow(
        rows=shown,
        offset=offset,
        next_offset=messages[next_id].number - 1 if next_id in messages else None,
        previous_offset=messages[previous_id].number - 1 if previous_id in messages else None,
    )


def find_at(*, conversation: Conversation, position: int) -> uuid.UUID | None:
    """The message at a position of the timeline; None where there is none."""
    rows = Message.objects.shown().filter(
        conversation=conversation, place=load_places(conversation).find_place(position)
    )
    return rows.values_list("pk", flat=True).first()


def read_body(message: Message) -> Mapping[str, Any]:
    """What telling wrote: `message` (the names that are not absent) and `record`; empty while it is not told."""
    return json.loads(message.body) if message.body else {"message": {}, "record": {}}


def find_message(*, workspace: Workspace, message_id: uuid.UUID) -> Message | None:
    """The message of that id in this workspace, with its record and conversation, or None.

    It has its number, `is_hidden`, whether a withdrawal hides its record, `parts`, of how many its record consists,
    `is_reworded`, whether it was told otherwise before, and `trace`, as `find_traces_of` has it, by `id` and `name`.
    `record_bytes` and `wire_bytes` say how long its record is, and the text that was read of it. A record too long to
    be looked through is loaded when something asks for its bytes. One statement.
    """
    bearable = {
        f"bearable_{name}": Case(
            When(record_bytes__lte=MOST_BYTES_LOOKED_THROUGH, then=F(f"record__{name}")), output_field=BinaryField()
        )
        for name in ("source", "wire")
    }
    parts = Message.objects.filter(record_id=OuterRef("record_id")).values("record_id").annotate(count=Count("pk"))
    rows = Message.objects.select_related("record", "conversation", "channel").annotate(
        is_hidden=Exists(HiddenRecord.objects.filter(record_id=OuterRef("record_id"))),
        parts=Subquery(parts.values("count")),
        is_reworded=Exists(Wording.objects.filter(record_id=OuterRef("record_id"), part=OuterRef("part"))),
        trace=select_trace(),
        record_bytes=Length("record__source"),
        wire_bytes=Length(Coalesce("record__wire", "record__source")),
    )
    rows = rows.defer("record__source", "record__wire").annotate(**bearable)
    found: Message | None = rows.filter(workspace=workspace, pk=message_id).first()
    if found is not None:
        if vars(found)["record_bytes"] <= MOST_BYTES_LOOKED_THROUGH:
            found.record.source, found.record.wire = vars(found)["bearable_source"], vars(found)["bearable_wire"]
        found.number = load_places(found.conversation).find_position(found.place) + 1
    return found


def find_messages_by_ids(*, workspace: Workspace, message_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Message]:
    """The messages of these ids in this workspace, with their numbers."""
    found = Message.objects.filter(workspace=workspace).in_bulk(list(message_ids))
    number_messages(found.values())
    return found


def find_neighbours(*, message: Message) -> tuple[uuid.UUID | None, uuid.UUID | None]:
    """The ids of the messages before and after this one in the timeline of its conversation; one statement."""
    if message.place is None:
        return None, None
    rows = Message.objects.shown().filter(conversation_id=message.conversation_id)
    before = rows.filter(place__lt=message.place).order_by("-place").values_list("pk", Value(-1))
    after = rows.filter(place__gt=message.place).order_by("place").values_list("pk", Value(1))
    found = {side: pk for pk, side in before[:1].union(after[:1], all=True)}
    return found.get(-1), found.get(1)


def list_around(*, message: Message, each_side: int = 3) -> list[Message]:
    """A message among those before and after it in the timeline of its conversation."""
    rows = Message.objects.shown().filter(conversation_id=message.conversation_id).defer("body", "words", "atoms")
    if message.place is None:
        return [message]
    before = rows.filter(place__lt=message.place).order_by("-place")[:each_side]
    after = rows.filter(place__gt=message.place).order_by("place")[:each_side]
    return [*reversed(before), message, *after]


def list_beside(*, message: Message, limit: int = 50) -> tuple[Message | None, list[Message]]:
    """The message that this one answers, where it was received, and those that answer it, in order; with numbers."""
    is_answer = Q(conversation_id=message.conversation_id, parent=message.pk) & ~Q(parent_basis="adjacency")
    answers = Message.objects.shown().filter(is_answer).order_by("place")[:limit]
    wanted = Q(pk__in=answers.values("pk")) | Q(pk=message.parent)
    rows = Message.objects.filter(workspace_id=message.workspace_id).filter(wanted).defer("words", "atoms", "body")
    found = list(rows.order_by("place"))
    parent = next((row for row in found if row.pk == message.parent), None)
    if parent is not None and parent.conversation_id == message.conversation_id:
        parent.number = load_places(message.conversation).find_position(parent.place) + 1
    elif parent is not None:
        number_messages([parent])
    return parent, [row for row in found if row.parent == message.pk and row is not parent]


def reread(*, message: Message) -> Reading:
    """The record of a message read anew in the dialect it was settled in: the wire and its field tree, nothing told."""
    record = message.record
    return read_with_facts(record.wire_text, record.envelope, record.facts, dialect=message.dialect)


def unfold(*, message: Message, keys: Keys | None = None) -> Reading:
    """The record of a message read anew: its layers and its field tree, in the dialect it was settled in.

    The English is the stored one; the tree is recomputed (architecture, decision 8). With keys, what they open is
    unfolded too.
    """
    return unfold_reading(reread(message=message), keys)
