"""Lines of trees: messages, ghosts of what was not received, headings of conversations; what each stands below, and how
they are walked.

A message stands below its parent in the same tree, below the ghost of what it cites and nobody bears, or below the
conversation, which in a trace is a heading (`above`, `trace_above`). Ghosts and headings are `TreeGroup`s.

A tree is walked in display order from parent links alone, by one recursive statement over one index: to the first line
below, where it is open; else to the next beside it; else up until there is one. The climb is bounded, for a window that
crosses the end of a deep chain, and the walk stops there.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import IntEnum
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from django.db import connection
from django.db.models import QuerySet

from inspector.database import IsAny, update_rows

from .models import Message, TreeGroup

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


# So many lines are climbed, or gone down, in one step of a walk.
MAX_CLIMB: Final = 2_000
# So many lines are climbed to find how deep a line stands. A deeper one counts as so deep.
MAX_DEPTH: Final = 5_000
# Of what is walked beside the kinds of lines: the tree itself, and where a climb was stopped.
ROOT, STOP = 8, 9


class Step(NamedTuple):
    """A line that a walk came by."""

    id: uuid.UUID
    kind: int
    depth: int


class Fold(NamedTuple):
    """How a tree is folded: lines are open above `level` (None: everywhere), those that are `toggled` otherwise."""

    level: int | None = None
    toggled: frozenset[uuid.UUID] = frozenset()

    def is_open(self, line: uuid.UUID, depth: int) -> bool:
        """Whether a line of this depth shows what is below it."""
        return (self.level is None or depth < self.level) != (line in self.toggled)


OPEN: Final = Fold()


def walk(
    column: Column, start: Step, *, limit: int, fold: Fold, is_back: bool = False, is_after: bool = False
) -> list[Step]:
    """The lines from one on, itself first, or back from it without it; at most `limit`. `start` is taken for shown, or
    is the tree itself by the id of its owner, which is never among the lines. `is_after`: begin behind everything below
    the start, without it. The last line is of the kind `STOP` where a climb was stopped at it."""
    is_left_out = is_back or is_after or start.kind == ROOT
    given: dict[str, Any] = {"start": start.id, "kind": start.kind, "depth": start.depth, "is_shut": is_after}
    given |= {"level": fold.level, "toggled": list(fold.toggled), "limit": limit + is_left_out, "most": MAX_CLIMB}
    with connection.cursor() as cursor:
        cursor.execute(_write_walk(column, is_back=is_back), given)
        rows = cursor.fetchall()
    return [Step(*row) for row in rows[is_left_out:]]


@cache
def _write_walk(column: Column, *, is_back: bool) -> str:
    """The statement that walks on or back; `is_shut` says to pass a line by without what is below it."""
    order = ORDERS[column]
    names = ", ".join(order)
    found = ", ".join(f"next_{each}" for each in ("kind", "id", "above", *order))
    top = 0 if column == "above" else 1

    def name(alias: str) -> str:
        return ", ".join(f"{alias}.{each}" for each in order)

    def below(line: str, condition: str, *, is_last: bool, groups: str) -> str:
        """The first line below another, or the last one, among those that meet a condition."""
        direction = " DESC" if is_last else ""
        sort = ", ".join(f"{each}{direction}" for each in (*order, "id"))
        rest = f"{condition} ORDER BY {sort} LIMIT 1"
        return f"""(SELECT * FROM (
            (SELECT {Kind.MESSAGE} AS kind, id, {column} AS above, {names} FROM threads_message AS one
              WHERE {column} = {line} {rest})
            UNION ALL
            (SELECT kind, id, above, {names} FROM threads_treegroup AS one WHERE {groups} AND above = {line} {rest})
            ) AS any_of ORDER BY {sort} LIMIT 1)"""  # noqa: S608

    def beside(alias: str) -> str:
        """The next line beside another, or the one before it. Groups stand near the top alone."""
        sign = "<" if is_back else ">"
        condition = f"AND ({name('one')}, one.id) {sign} ({name(alias)}, {alias}.id)"
        groups = f"({alias}.kind <> {Kind.MESSAGE} OR {alias}.depth <= {top})"
        return below(f"{alias}.above", condition, is_last=is_back, groups=groups)

    def find(line: str) -> str:
        return f"""(SELECT {Kind.MESSAGE} AS kind, id, {column} AS above, {names} FROM threads_message WHERE id = {line}
            UNION ALL SELECT kind, id, above, {names} FROM threads_treegroup WHERE id = {line} LIMIT 1)"""  # noqa: S608

    holds_groups = f"{{}}.kind IN ({ROOT}, {Kind.CONVERSATION})"
    is_open = f"""({{0}}.kind = {ROOT} OR
        (%(level)s::int IS NULL OR {{0}}.depth < %(level)s::int) <> ({{0}}.id = ANY(%(toggled)s::uuid[])))"""
    if is_back:
        # The last line shown below the one before it, else what it stands below itself.
        following = f"""
            (WITH RECURSIVE down (kind, id, above, {names}, depth, n) AS (
                SELECT one.*, w.depth, 0 FROM {beside("w")} AS one
                UNION ALL
                SELECT last.*, down.depth + 1, down.n + 1
                  FROM down
                  CROSS JOIN LATERAL {below("down.id", "", is_last=True, groups=holds_groups.format("down"))} AS last
                 WHERE down.n < %(most)s AND {is_open.format("down")})
             SELECT kind, id, above, {names}, depth FROM down ORDER BY n DESC LIMIT 1)
            UNION ALL
            (SELECT one.*, w.depth - 1 FROM {find("w.above")} AS one)"""  # noqa: S608
    else:
        following = f"""
            (SELECT first.*, w.depth + 1
               FROM {below("w.id", "", is_last=False, groups=holds_groups.format("w"))} AS first
              WHERE NOT w.is_shut AND {is_open.format("w")})
            UNION ALL
            (WITH RECURSIVE up (kind, id, above, {names}, depth, n, {found}) AS (
                SELECT w.kind, w.id, w.above, {name("w")}, w.depth, 0, next.*
                  FROM (SELECT 1) AS once LEFT JOIN LATERAL {beside("w")} AS next ON true
                UNION ALL
                SELECT here.*, next.*
                  FROM (SELECT * FROM up WHERE up.next_id IS NULL AND up.n < %(most)s) AS up
                  CROSS JOIN LATERAL (
                    SELECT one.*, up.depth - 1 AS depth, up.n + 1 FROM {find("up.above")} AS one) AS here
                  LEFT JOIN LATERAL {beside("here")} AS next ON true)
             SELECT {found}, depth FROM up WHERE next_id IS NOT NULL
             UNION ALL
             SELECT {STOP}, id, above, {names}, depth FROM up WHERE next_id IS NULL AND n = %(most)s
             LIMIT 1)"""  # noqa: S608
    return f"""
        WITH RECURSIVE walk (n, kind, id, above, {names}, depth, is_shut) AS (
            SELECT * FROM (
                SELECT 1, one.*, %(depth)s::int, %(is_shut)s::boolean FROM {find("%(start)s::uuid")} AS one
                 WHERE %(kind)s <> {ROOT}
                UNION ALL
                SELECT 1, {ROOT}, %(start)s::uuid, NULL, {"NULL, " * len(order)}%(depth)s::int, false
                 WHERE %(kind)s = {ROOT}) AS start
            UNION ALL
            SELECT w.n + 1, following.*, false FROM walk AS w CROSS JOIN LATERAL ({following} LIMIT 1) AS following
             WHERE w.n < %(limit)s AND w.kind <> {STOP})
        SELECT id, kind, depth FROM walk ORDER BY n"""  # noqa: S608


class Climbed(NamedTuple):
    """A line that a climb came by, and the one that it stands below: of an outermost line the owner of the tree. `at`
    is the time of a message."""

    id: uuid.UUID
    kind: int
    above: uuid.UUID | None
    at: datetime | None


def climb(column: Column, line: uuid.UUID | QuerySet[Any, uuid.UUID], *, most: int = MAX_DEPTH) -> list[Climbed]:
    """A line, by its id or a query for it, and those that it stands below, itself first."""
    sql, given = ("%s::uuid", (line,)) if isinstance(line, uuid.UUID) else line.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH RECURSIVE start (id) AS MATERIALIZED (SELECT ({sql})), up (id, kind, above, at, n) AS (
                (SELECT id, {Kind.MESSAGE}, {column}, order_time, 0 FROM threads_message
                  WHERE id = (SELECT id FROM start)
                 UNION ALL SELECT id, kind, above, NULL, 0 FROM threads_treegroup
                  WHERE id = (SELECT id FROM start) LIMIT 1)
                UNION ALL
                SELECT one.*, up.n + 1 FROM up CROSS JOIN LATERAL (
                    SELECT id, {Kind.MESSAGE}, {column}, order_time FROM threads_message WHERE id = up.above
                    UNION ALL SELECT id, kind, above, NULL FROM threads_treegroup WHERE id = up.above LIMIT 1) AS one
                 WHERE up.n < %s)
            SELECT id, kind, above, at FROM up ORDER BY n
            """,  # noqa: S608
            [*given, most],
        )
        return [Climbed(*row) for row in cursor.fetchall()]


def count_below(column: Column, lines: Collection[uuid.UUID], *, most: int) -> dict[uuid.UUID, int]:
    """How many lines are below each of these, of each as far as `most`."""
    if not lines:
        return {}
    # Their order is asked for, so that the index is gone through whatever the estimate of how many there are.
    order = ", ".join(ORDERS[column])
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT asked.id, (
                WITH RECURSIVE down (id, kind) AS (
                    SELECT asked.id, asked.kind
                    UNION ALL
                    SELECT one.* FROM down CROSS JOIN LATERAL (
                        (SELECT id, {Kind.MESSAGE} FROM threads_message
                          WHERE {column} = down.id ORDER BY {order}, id LIMIT %(most)s + 1)
                        UNION ALL SELECT id, kind FROM threads_treegroup
                         WHERE down.kind = {Kind.CONVERSATION} AND above = down.id) AS one)
                SELECT count(*) - 1 FROM (SELECT FROM down LIMIT %(most)s + 1) AS counted)
              FROM (SELECT given.id, coalesce(held.kind, {Kind.MESSAGE}) AS kind
                      FROM unnest(%(lines)s::uuid[]) AS given (id)
                      LEFT JOIN threads_treegroup AS held ON held.id = given.id) AS asked
            """,  # noqa: S608
            {"lines": list(lines), "most": most},
        )
        return dict(cursor.fetchall())
