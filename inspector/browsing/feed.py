"""The feed: what has been announced in a workspace since a place in it, in one order, and nothing left out.

Transactions end in another order than they began in. So reading stops at the oldest that still runs in this database:
else what a slower writer commits later would be passed over. A page shows what is committed, also above that: its place
remembers the snapshot it was taken in, and what that saw is not news to it. Announcements are kept for a day.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple

from django.db import connection

from inspector.replica import find_snapshot

# So many rows are looked at in one reading.
MAX_ROWS: Final = 100
# Who runs a transaction holds the lock on its number; one that nobody is seen to hold is waited for.
_LOOK: Final = """
SELECT seen.snapshot::text, coalesce(
    (SELECT min(running::text::bigint) FROM pg_snapshot_xip(seen.snapshot) AS running WHERE NOT EXISTS (
        SELECT FROM pg_locks AS lock JOIN pg_stat_activity AS session USING (pid)
        WHERE lock.locktype = 'transactionid' AND lock.transactionid = running::xid AND lock.mode = 'ExclusiveLock'
          AND session.datname <> current_database())),
    pg_snapshot_xmax(seen.snapshot)::text::bigint)
FROM (SELECT pg_current_snapshot() AS snapshot) AS seen
"""


class Place(NamedTuple):
    """A place in the feed: after the row `number` of a transaction, and after `taken` messages of the next row. `known`
    is a snapshot as PostgreSQL writes it, such as "795:799:797": what it saw is no news. It is empty where that makes
    no difference."""

    transaction: int
    number: int = 0
    taken: int = 0
    known: str = ""


class Batch(NamedTuple):
    """Messages that were announced, in order, the place after them, and whether there is more at once."""

    messages: Sequence[uuid.UUID]
    place: Place
    has_more: bool


class LostPlaceError(Exception):
    """A place that this database has not come to yet: it was taken in another one, from which this was restored."""


def find_end(snapshot: str = "") -> Place:
    """The place of a reader who sees all that is committed now; a snapshot taken before its reading may say so."""
    snapshot = snapshot or find_snapshot()
    oldest = int(snapshot.split(":")[0]) if snapshot else 0
    if not snapshot:
        oldest, snapshot = _look()
    return Place(oldest, known=_keep_known(snapshot, oldest))


def _look() -> tuple[int, str]:
    """The oldest transaction that runs in this database, else the next one, and the snapshot that says so."""
    with connection.cursor() as cursor:
        cursor.execute(_LOOK)
        snapshot, oldest = cursor.fetchone()
    return int(oldest), str(snapshot)


def _keep_known(snapshot: str, oldest: int) -> str:
    """The snapshot, as long as there may be a row at or above the oldest transaction that it saw."""
    return snapshot if snapshot and oldest < int(snapshot.split(":")[1]) else ""


def read_feed(*, workspace_id: uuid.UUID, place: Place, most: int) -> Batch:
    """What was announced in a workspace after a place, up to `most` messages and to the oldest running transaction; a
    LostPlaceError for a place in the future."""
    oldest, snapshot = _look()
    if place.transaction > int(snapshot.split(":")[1]):
        raise LostPlaceError
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT transaction, id, messages FROM threads_announcement"
            " WHERE workspace_id = %s AND (transaction, id) > (%s, %s) AND transaction < %s"
            " AND (%s = '' OR NOT pg_visible_in_snapshot(transaction::text::xid8, NULLIF(%s, '')::pg_snapshot))"
            " ORDER BY transaction, id LIMIT %s",
            [workspace_id, place.transaction, place.number, oldest, place.known, place.known, MAX_ROWS],
        )
        rows: list[tuple[int, int, list[uuid.UUID]]] = cursor.fetchall()
    found: list[uuid.UUID] = []
    for transaction, number, messages in rows:
        fresh = messages[place.taken :]
        room = most - len(found)
        if len(fresh) > room:
            return Batch([*found, *fresh[:room]], place._replace(taken=place.taken + room), has_more=True)
        found += fresh
        place = place._replace(transaction=transaction, number=number, taken=0)
    if len(rows) == MAX_ROWS:
        return Batch(found, place, has_more=True)
    if place.transaction < oldest:
        place = Place(oldest, known=_keep_known(place.known, oldest))
    return Batch(found, place, has_more=False)


def find_latest(*, workspace_id: uuid.UUID) -> tuple[int, int] | None:
    """Transaction and number of the last row that may be read now; None where there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH look (snapshot, oldest) AS ({_LOOK}) SELECT transaction, id FROM threads_announcement"  # noqa: S608
            " WHERE workspace_id = %s AND transaction < (SELECT oldest FROM look)"
            " ORDER BY transaction DESC, id DESC LIMIT 1",
            [workspace_id],
        )
        row: tuple[int, int] | None = cursor.fetchone()
        return row
