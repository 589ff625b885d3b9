"""The timeline of a conversation: the numbers of its messages, counted by its blocks, and its windows. What others add
or withdraw meanwhile moves no window, for one goes on from the last messages of the one before, else from the order key
of the last."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, QuerySet, Subquery, Value
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThanOrEqual, TupleLessThanOrEqual
from django.db.models.functions import Coalesce

from .keys import BEYOND, BlockSize, Places
from .models import Block, Conversation, Message

Row = TypeVar("Row")
_ORDER: Final = ("order_time", "order_source", "order_index", "record_id", "part")
# So many of its outermost messages say where a window ends.
_MAX_HELD: Final = 5

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


class Key(NamedTuple):
    """The order key of a message; of those that share one, the record and the part of it decide."""

    order_time: datetime
    order_source: bytes
    order_index: int
    record_id: uuid.UUID
    part: int


class Edge(NamedTuple):
    """An end of a window: its outermost messages, and the order key of the very last."""

    ids: Sequence[uuid.UUID]
    key: Key

    def write(self) -> list[str | int | bool]:
        """The edge as a cursor holds it."""
        at, source, index, record, part = self.key
        return [at.isoformat(), source.hex(), index, str(record), part, *(pk.hex for pk in self.ids)]


def read_edge(said: Sequence[Any]) -> Edge:
    """The edge that `Edge.write` wrote."""
    at, source, index, record, part, *ids = said
    key = Key(datetime.fromisoformat(at), bytes.fromhex(source), index, uuid.UUID(record), part)
    return Edge([uuid.UUID(pk) for pk in ids], key)


def name_timeline(conversation: Conversation) -> str:
    """The name of a timeline, by which its cursors are told from others."""
    return f"timeline {conversation.pk}"


class Start(NamedTuple):
    """Where a window lies: after an edge, before one, or from a position on, counted from 0."""

    after: Edge | None = None
    before: Edge | None = None
    offset: int = 0


class Mark(NamedTuple):
    """What places a row of a window: the id of its message, its order key and its number."""

    id: uuid.UUID
    key: Key
    number: int


@dataclass(frozen=True, slots=True)
class Window(Generic[Row]):
    """A stretch of a timeline; `earlier` and `later` are its edges, None at an end of the timeline. `first` and `last`
    are the numbers of the rows at its ends, 0 of none; `previous` is the row before it."""

    rows: Sequence[Row]
    previous: Row | None
    first: int
    last: int
    earlier: Edge | None
    later: Edge | None


def read_window(
    *,
    conversation: Conversation,
    start: Start,
    size: int,
    read: Callable[[QuerySet[Message]], list[Row]],
    mark: Callable[[Row], Mark],
) -> Window[Row]:
    """The window of the shown messages that are placed, at most `size`; one statement. `read` makes rows of messages,
    `mark` tells what places a row."""
    shown = Message.objects.shown().filter(conversation=conversation, place__isnull=False)
    if start.before is not None:
        rows = shown.filter(place__lt=_find_place(shown, start.before, is_after=False)).order_by("-place")
        found = read(rows[: size + 1])[::-1]
        cut = max(0, len(found) - size)
        return _cut(found, cut, len(found), mark, is_more=True)
    if start.after is not None:
        # The last that was seen comes with them.
        rows = shown.filter(place__gte=_find_place(shown, start.after, is_after=True))
        found = read(rows.order_by("place")[: size + 2])
        cut = int(bool(found) and (mark(found[0]).id in start.after.ids or mark(found[0]).key <= start.after.key))
    else:
        rows = shown.filter(place__gte=load_places(conversation).find_place(start.offset - 1))
        found = read(rows.order_by("place")[: size + 2])
        cut = int(bool(found) and mark(found[0]).number <= start.offset)
    return _cut(found, cut, cut + size, mark, is_more=len(found) > cut + size)


def _find_place(shown: QuerySet[Message], edge: Edge, *, is_after: bool) -> Coalesce:
    """The place of the outermost message of an edge that is still there, else of the one nearest to its key."""
    compare, way = (TupleLessThanOrEqual, "-") if is_after else (TupleGreaterThanOrEqual, "")
    held = shown.filter(pk__in=edge.ids).order_by(f"{way}place")
    near = shown.filter(compare(Tuple(*map(F, _ORDER)), edge.key)).order_by(*(way + name for name in _ORDER))
    places = (Subquery(rows.values("place")[:1]) for rows in (held, near))
    return Coalesce(*places, Value(b"" if is_after else BEYOND))


def _cut(found: list[Row], start: int, stop: int, mark: Callable[[Row], Mark], *, is_more: bool) -> Window[Row]:
    rows = found[start:stop]
    marks = [mark(row) for row in rows]
    first, last = (marks[0], marks[-1]) if marks else (None, None)
    return Window(
        rows,
        found[start - 1] if start else None,
        first.number if first else 0,
        last.number if last else 0,
        Edge([each.id for each in marks[:_MAX_HELD]], first.key) if first and start else None,
        _find_later(marks) if is_more else None,
    )


def _find_later(marks: Sequence[Mark]) -> Edge | None:
    return Edge([each.id for each in marks[-_MAX_HELD:]], marks[-1].key) if marks else None


def find_later(messages: Sequence[Message]) -> Edge | None:
    """The edge after messages of a timeline, which are in their order; None of none."""
    return _find_later([_mark_message(message) for message in messages])


def read_timeline(
    *, conversation: Conversation, start: Start, size: int, without: Sequence[str] = ()
) -> Window[Message]:
    """A window of messages with their numbers, some columns left out."""
    places = load_places(conversation)

    def read(rows: QuerySet[Message]) -> list[Message]:
        messages = list(rows.defer(*without))
        for message in messages:
            message.number = places.find_position(message.place) + 1
        return messages

    return read_window(conversation=conversation, start=start, size=size, read=read, mark=_mark_message)


def _mark_message(message: Message) -> Mark:
    source = bytes(message.order_source)
    key = Key(message.order_time, source, message.order_index, message.record_id, message.part)
    return Mark(message.pk, key, message.number)
