"""What goes on in a workspace: numbers, and messages over time, for its overview; and the feed, what has been announced
since a place in it, in one order, and nothing left out.

Transactions end in another order than they began in. So reading the feed stops at the oldest that still runs in this
database: else what a slower writer commits later would be passed over. A page shows what is committed, also above that:
its place remembers the snapshot it was taken in, and what that saw is not news to it. Announcements are kept for a day.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import Count, DateTimeField, Min, Q, QuerySet, Subquery, Sum
from django.db.models.expressions import RawSQL

from inspector.accounts.models import Channel, Workspace
from inspector.database import find_snapshot
from inspector.threads.models import Conversation, Message

SLOTS: Final = 48
DAY: Final = timedelta(days=1)


def _select(workspace: Workspace, channel: Channel | None) -> QuerySet[Conversation]:
    rows = Conversation.objects.filter(workspace=workspace, last_at__isnull=False)
    return rows if channel is None else rows.filter(channel=channel)


def find_newest(*, workspace: Workspace, channel: Channel | None = None) -> Subquery:
    """The time of the newest message of a workspace or a channel, for the statement that counts up to it."""
    rows = _select(workspace, channel).order_by("-last_at", "-id")
    return Subquery(rows.values("last_at")[:1], output_field=DateTimeField())


def split_days(name: str, newest: Subquery) -> tuple[Q, Q]:
    """Whether the time of this name is within the 24 hours up to the newest message, and within the 24 before them."""
    latest = Q(**{f"{name}__gt": newest - DAY})
    return latest, Q(**{f"{name}__gt": newest - 2 * DAY}) & ~latest


class Days(NamedTuple):
    """How much falls into the 24 hours up to the newest message, and into the 24 before them."""

    latest: int
    before: int


def count_days(*, workspace: Workspace, channel: Channel | None = None) -> QuerySet[Message, tuple[int, int]]:
    """The messages of the latest 24 hours and of the 24 before them: one row, or none."""
    latest, before = split_days("order_time", find_newest(workspace=workspace, channel=channel))
    rows = Message.objects.shown().filter(latest | before, workspace=workspace)
    if channel is not None:
        rows = rows.filter(channel=channel)
    counts = {"latest": Count("pk", filter=latest), "before": Count("pk", filter=before)}
    return rows.order_by().values("workspace").annotate(**counts).values_list(*counts)


class Numbers(NamedTuple):
    """Sums over a workspace's resolved conversations; `begun` counts those that began lately."""

    messages: int
    conversations: int
    failed: int
    with_errors: int
    with_missing: int
    begun: Days


def count_all(*, workspace: Workspace, channel: Channel | None = None) -> Numbers:
    """The numbers of a workspace or a channel: one statement over small rows, none over messages."""
    latest, before = split_days("first_at", find_newest(workspace=workspace, channel=channel))
    found = _select(workspace, channel).aggregate(
        latest=Count("pk", filter=latest),
        before=Count("pk", filter=before),
        messages=Sum("message_count"),
        conversations=Count("pk"),
        failed=Count("pk", filter=Q(state=Conversation.State.FAILED)),
        with_errors=Count("pk", filter=Q(severity=Message.Severity.ERROR)),
        with_missing=Count("pk", filter=Q(missing_count__gt=0)),
    )
    begun = Days(found.pop("latest"), found.pop("before"))
    return Numbers(**{**found, "messages": int(found["messages"] or 0)}, begun=begun)


def sum_messages(*, workspace: Workspace) -> QuerySet[Any, Any]:
    """How many messages the resolved conversations hold: one row, or none where there are none."""
    rows = _select(workspace, None).order_by().values("workspace")
    return rows.annotate(total=Sum("message_count")).values_list("total", flat=True)


class Span(NamedTuple):
    """A stretch of the timeline in slots of equal width."""

    start: datetime
    width: timedelta

    @property
    def end(self) -> datetime:
        return self.start + self.width * SLOTS


def find_span(*, workspace: Workspace, period: timedelta | None, channel: Channel | None = None) -> Span | None:
    """The slots of a period that ends with the newest message, or of the whole timeline; None where there is none."""
    rows = _select(workspace, channel)
    newest = rows.order_by("-last_at", "-id").values_list("last_at", flat=True).first()
    if newest is None:
        return None
    # The newest message falls into the last slot and is not its end; what rounding takes away is given back.
    end, second, rounded = newest + timedelta(seconds=1), timedelta(seconds=1), timedelta(microseconds=1)
    if period is not None:
        width = max(period / SLOTS, second)
        return Span(end - width * SLOTS, width + rounded)
    start = rows.aggregate(first=Min("first_at"))["first"] or newest
    return Span(start, max((end - start) / SLOTS, second) + rounded)


def count_over_time(
    *, workspace: Workspace, span: Span, channel: Channel | None = None
) -> QuerySet[Message, tuple[str, int, int]]:
    """(dialect, slot, number) of the messages in a span, to be fetched within a reader's patience."""
    rows = Message.objects.shown().filter(workspace=workspace, order_time__gte=span.start, order_time__lt=span.end)
    if channel is not None:
        rows = rows.filter(channel=channel)
    slot = RawSQL(
        'floor(extract(epoch FROM "threads_message"."order_time" - %s) / %s)::int',
        [span.start, span.width.total_seconds()],
    )
    return rows.annotate(slot=slot).order_by().values_list("dialect", "slot").annotate(count=Count("pk"))


def fill_slots(counts: list[tuple[str, int, int]]) -> dict[str, list[int]]:
    """The numbers of each dialect slot by slot, the dialect with most messages first."""
    found: dict[str, list[int]] = defaultdict(lambda: [0] * SLOTS)
    for dialect, slot, number in counts:
        found[dialect][min(max(slot, 0), SLOTS - 1)] += number
    return dict(sorted(found.items(), key=lambda item: (-sum(item[1]), item[0])))


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
