"""Walking: a tree in display order from parent links alone, by one recursive statement over one index: to the first
line below, where it is open; else to the next beside it; else up until there is one. The climb is bounded, for a window
that crosses the end of a deep chain, and the walk stops there."""

import uuid
from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import QuerySet

from .lines import ORDERS, Column, Kind

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
