"""Lines of trees: messages, ghosts of what was not received, headings of conversations; and what each stands below.

A message stands below its parent in the same tree, below the ghost of what it cites and nobody bears, or below the
conversation, which in a trace is a heading (`above`, `trace_above`). Ghosts and headings are `TreeGroup`s.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from django.db import connection

from inspector.intake.bulk import update_rows
from inspector.lookups import IsAny

from ..models import Message, TreeGroup

ADJACENCY: Final = "adjacency"
Column = Literal["above", "trace_above"]
# What the lines below one are ordered by, before their ids. Places sort as the timeline of one conversation does.
ORDERS: Final[Mapping[Column, tuple[str, ...]]] = {
    "above": ("place",),
    "trace_above": ("order_time", "order_source", "order_index", "place"),
}


class Kind(IntEnum):
    """What a line stands for; those of ghosts and headings are the kinds of `TreeGroup`."""

    MESSAGE = 0
    GHOST = 1
    CONVERSATION = 2


class Outcome(IntEnum):
    """What came of a message: nothing was asked, it is still open, or how it was answered."""

    NONE = 0
    OPEN = 1
    ANSWERED = 2
    DONE = 3
    FAILED = 4
    CANCELLED = 5


# The answers that end a request; any other prolongs it.
ENDS: Final = {
    "done": Outcome.DONE,
    "failure": Outcome.FAILED,
    "reject": Outcome.FAILED,
    "not-understood": Outcome.FAILED,
    "cancel": Outcome.CANCELLED,
}


class Line(NamedTuple):
    """One line of a tree: a message, a conversation, or a ghost by the id that it has in this tree. `start` and `end`
    are microseconds since 1970: from a request until its answer, of a conversation its first and last message in the
    trace, else twice the same."""

    id: uuid.UUID
    kind: Kind
    start: int
    end: int
    outcome: Outcome
    severity: int


def name_ghost(tree: bytes, cited: bytes) -> uuid.UUID:
    """The id of the ghost of a missing message, by the key of its id, in a conversation, or in a channel of a trace."""
    return _hash(tree + cited)


# Of one conversation there are many messages together.
@lru_cache(maxsize=4096)
def name_heading(trace_key: bytes, conversation_id: uuid.UUID) -> uuid.UUID:
    """What the heading of a conversation is known by in a trace."""
    return _hash(trace_key + conversation_id.bytes)


def _hash(parts: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=hashlib.sha256(parts).digest()[:16])


class Placed(NamedTuple):
    """What placing says of a message: its parent (None: none was received), the key of what it cites, and the basis."""

    id: uuid.UUID
    conversation_id: uuid.UUID
    parent: uuid.UUID | None
    parent_key: bytes | None
    parent_basis: str


class Hung(NamedTuple):
    """The lines that a message stands below, and those below which it stood until now; None: it is in no such tree."""

    above: uuid.UUID
    trace_above: uuid.UUID | None
    was_above: uuid.UUID | None
    was_trace_above: uuid.UUID | None
    # Which of the first two are ghosts.
    is_ghost: bool


def hang(messages: Iterable[Placed], new: Mapping[uuid.UUID, Home] = MappingProxyType({})) -> dict[uuid.UUID, Hung]:
    """The lines that these messages stand below as they are placed, by their ids; `new` are those that have no rows
    yet."""
    placed = {each.id: each for each in messages}
    answers = {pk: each.parent for pk, each in placed.items() if each.parent and each.parent_basis != ADJACENCY}
    columns = ("id", "conversation_id", "channel_id", "trace_key", "above", "trace_above")
    ids = {*placed, *answers.values()} - new.keys()
    rows = Message.objects.filter(IsAny("id", ids)).values_list(*columns) if ids else ()
    homes: dict[uuid.UUID, Home] = {
        pk: (home, channel_id, bytes(key or b""), *was) for pk, home, channel_id, key, *was in rows
    }
    homes |= new
    found = {}
    for pk, each in placed.items():
        if pk not in homes:
            continue
        _, channel_id, key, was_above, was_trace_above = homes[pk]
        parent = answers.get(pk)
        home, _, parent_key, *_ = homes.get(parent, (None, None, None)) if parent else (None, None, None)
        cited = each.parent_key if each.parent is None and each.parent_basis else None
        above: uuid.UUID = each.conversation_id
        trace_above = name_heading(key, each.conversation_id) if key else None
        if cited is not None:
            above = name_ghost(each.conversation_id.bytes, cited)
            trace_above = name_ghost(key + channel_id.bytes, cited) if key else None
        if parent is not None and home == each.conversation_id:
            above = parent
        if parent is not None and key and parent_key == key:
            trace_above = parent
        found[pk] = Hung(above, trace_above, was_above, was_trace_above, cited is not None)
    return found


# Conversation, channel and trace of a message, and the lines that it stands below.
Home = tuple[uuid.UUID, uuid.UUID, bytes, uuid.UUID | None, uuid.UUID | None]


def take_down(*, record_ids: Collection[uuid.UUID]) -> None:
    """Take the messages of hidden records out of their trees, and put those of shown ones back."""
    rows = Message.objects.filter(record_id__in=record_ids)
    hidden = rows.hidden().filter(above__isnull=False)
    left = {above for above in hidden.values_list("above", flat=True) if above is not None}
    hidden.update(above=None, trace_above=None)
    back = rows.shown().filter(place__isnull=False, above__isnull=True)
    placed = map(Placed._make, back.values_list(*Placed._fields))
    hung = hang(each._replace(parent_key=bytes(each.parent_key) if each.parent_key else None) for each in placed)
    rows_back = [(pk, each.above, each.trace_above) for pk, each in hung.items()]
    update_rows(model=Message, columns=("id", "above", "trace_above"), rows=rows_back)
    keep_ghosts({each.above for each in hung.values() if each.is_ghost}, left=left)


def keep_ghosts(ghosts: Collection[uuid.UUID], *, left: Collection[uuid.UUID]) -> None:
    """Keep these ghosts of conversations, and those among the lines that messages have `left`, where the first message
    stands that cites them; call where the conversations are held."""
    known = TreeGroup.objects.filter(pk__in=left).values_list("pk", flat=True) if left else ()
    keep_groups("above", [Group(pk) for pk in {*ghosts, *known}])


class Group(NamedTuple):
    """A ghost, or by its conversation a heading, that a tree may have; in a trace with that."""

    id: uuid.UUID
    conversation_id: uuid.UUID | None = None
    trace_id: uuid.UUID | None = None
    trace_key: bytes | None = None


def keep_groups(column: Column, groups: Collection[Group]) -> dict[uuid.UUID, uuid.UUID]:
    """Keep these ghosts, or headings of ghosts that are kept, where the first line below them stands; in which
    conversation that is. Those with nothing below them are deleted."""
    if not groups:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_write_keep(column), [list(values) for values in zip(*groups, strict=True)])
        homes = dict(cursor.fetchall())
    if gone := {group.id for group in groups} - homes.keys():
        TreeGroup.objects.filter(pk__in=gone).delete()
    return homes


@cache
def _write_keep(column: Column) -> str:
    order = ", ".join(ORDERS[column])
    line = "workspace_id, conversation_id, order_time, order_source, order_index, place, id AS line"
    # Places move without a change in the trace, and say something within one conversation alone; there they say all.
    source, place = ("''::bytea", "place") if column == "above" else ("order_source", "''::bytea")
    heading = "encode(substring(sha256(trace_key || uuid_send(conversation_id)) FOR 16), 'hex')::uuid"
    kept = "conversation_id, trace_id, above, order_time, order_source, order_index, place"
    held, excluded = (", ".join(f"{table}.{name}" for name in kept.split(", ")) for table in ("held", "excluded"))
    return f"""
        WITH first AS MATERIALIZED (
            SELECT asked.*, line.*
              FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::bytea[]) AS asked (id, home, trace_id, trace_key)
             CROSS JOIN LATERAL (SELECT * FROM (
                (SELECT {line} FROM threads_message WHERE {column} = asked.id ORDER BY {order}, id LIMIT 1)
                UNION ALL
                (SELECT {line} FROM threads_treegroup WHERE above = asked.id ORDER BY {order}, id LIMIT 1)
                ) AS any_of ORDER BY {order}, line LIMIT 1) AS line),
        written AS (
            INSERT INTO threads_treegroup AS held (id, workspace_id, kind, {kept}, severity, size, is_stale, data)
            SELECT id, workspace_id, CASE WHEN home IS NULL THEN {Kind.GHOST} ELSE {Kind.CONVERSATION} END,
                   CASE WHEN trace_id IS NULL THEN conversation_id ELSE home END, trace_id,
                   CASE WHEN trace_id IS NULL THEN conversation_id WHEN home IS NOT NULL THEN trace_id
                        ELSE {heading} END,
                   order_time, {source}, order_index, {place}, 0, 0, false, ''
              FROM first ORDER BY id
            ON CONFLICT (id) DO UPDATE SET ({kept}) = ROW ({excluded})
             WHERE ({held}) IS DISTINCT FROM ({excluded}))
        SELECT id, conversation_id FROM first"""  # noqa: S608
