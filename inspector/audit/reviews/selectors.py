"""Reads of queues: how far they are, who did how much in them, and their items."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, Exists, F, FilteredRelation, Min, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from inspector.accounts.models import Channel, User, Workspace
from inspector.database import WrittenSince, take_page
from inspector.threads.models import Conversation

from ..comments import select_here
from ..models.reviews import OPEN_STATES, Comment, Review, ReviewItem, ReviewQueue, Rubric
from .bindings import select_stale, select_told, select_told_items

# The queues of a page, and those that one of them is chosen from.
EVERYWHERE: Final = Q()
QUEUES_AT_ONCE: Final = 100
MAX_QUEUES: Final = 200
MAX_REVIEWERS: Final = 100
# What a list of items can be narrowed to.
MINE, OPEN, SECOND, DISPUTED, DONE, STALE = "mine", "open", "second", "disputed", "done", "stale"
Key = tuple[datetime, uuid.UUID]
# Where a queue stands among the others: whether it is the standing one, when it was closed, when made, and its id.
QueueKey = tuple[bool, datetime | None, datetime, uuid.UUID]
State = ReviewItem.State


@dataclass(frozen=True, slots=True)
class QueueCount:
    """A queue and how far it is: how many stand in each state, and since when the oldest of the open ones waits.

    `stale` are the sign-offs in force that are known to differ from what is there.
    """

    queue: ReviewQueue
    states: Mapping[str, int]
    oldest: datetime | None
    stale: int

    @property
    def open(self) -> int:
        """How many are still to be said something of."""
        return sum(self.states.get(state, 0) for state in OPEN_STATES)

    @property
    def settled(self) -> int:
        """How many are signed off."""
        return self.states.get(State.SETTLED, 0)

    @property
    def total(self) -> int:
        """How many there are, without those that were taken out."""
        return self.open + self.settled


def list_queues(
    *,
    workspace: Workspace,
    after: QueueKey | None = None,
    limit: int = QUEUES_AT_ONCE,
    is_stale: bool = False,
    channel: Channel | None = None,
) -> list[QueueCount]:
    """Queues of a workspace with their progress, by keyset, in three statements: open ones first, the standing last.

    Args:
        after: where the last one seen stands, as `write_queue_key` says.
        is_stale: only those in which a sign-off in force is known to be stale.
        channel: only those with conversations of this channel, and of these alone it is counted.
    """
    rows, items = _narrow(workspace, is_stale, channel)
    if after is not None:
        rows = rows.filter(_is_after(after))
    ordered = rows.order_by("is_standing", F("closed_at").desc(nulls_first=True), "created_at", "pk")
    return _count(items, list(ordered[:limit]))


def walk_queues(
    *,
    workspace: Workspace,
    after: Key | None = None,
    limit: int = QUEUES_AT_ONCE,
    is_stale: bool = False,
    channel: Channel | None = None,
    within: Q | WrittenSince = EVERYWHERE,
) -> list[QueueCount]:
    """The same in the order in which they were made, where none moves; `after` is (created_at, id) of the last one."""
    rows, items = _narrow(workspace, is_stale, channel)
    return _count(items, take_page(rows.filter(within), "created_at", after, limit, is_newest_first=False))


def _narrow(
    workspace: Workspace, is_stale: bool, channel: Channel | None
) -> tuple[QuerySet[ReviewQueue], QuerySet[ReviewItem]]:
    """The queues of such a list, and the items that are counted of them."""
    rows = ReviewQueue.objects.select_related("created_by").filter(workspace=workspace)
    items = ReviewItem.objects.filter(workspace=workspace)
    if channel is not None:
        items = items.filter(conversation__channel=channel)
        rows = rows.filter(pk__in=items.values("queue"))
    if is_stale:
        rows = rows.filter(pk__in=select_stale(items).values("queue"))
    return rows, items


def write_queue_key(queue: ReviewQueue) -> list[str | int | bool]:
    """Where a queue stands among the others, as a cursor holds it."""
    closed = queue.closed_at.isoformat() if queue.closed_at else ""
    return [queue.is_standing, closed, queue.created_at.isoformat(), str(queue.pk)]


def read_queue_key(key: Sequence[Any] | None) -> QueueKey | None:
    """Where a cursor says that a queue stands; None for no cursor."""
    if key is None:
        return None
    is_standing, closed, created, pk = key
    closed_at = datetime.fromisoformat(closed) if closed else None
    return bool(is_standing), closed_at, datetime.fromisoformat(created), uuid.UUID(pk)


def _is_after(key: QueueKey) -> Q:
    is_standing, closed_at, created_at, pk = key
    later = Q(closed_at=closed_at) & (Q(created_at__gt=created_at) | Q(created_at=created_at, pk__gt=pk))
    later |= Q(closed_at__isnull=False) if closed_at is None else Q(closed_at__lt=closed_at)
    later &= Q(is_standing=is_standing)
    return later if is_standing else later | Q(is_standing=True)


def count_queue(*, queue: ReviewQueue) -> QueueCount:
    """How far a queue is."""
    return _count(ReviewItem.objects.filter(workspace=queue.workspace_id), [queue])[0]


def _count(items: QuerySet[ReviewItem], queues: Sequence[ReviewQueue]) -> list[QueueCount]:
    rows = items.filter(queue__in=[queue.pk for queue in queues])
    states: dict[uuid.UUID, dict[str, int]] = {}
    oldest: dict[uuid.UUID, datetime] = {}
    for row in rows.values("queue", "state").annotate(count=Count("pk"), oldest=Min("added_at")).order_by():
        states.setdefault(row["queue"], {})[row["state"]] = row["count"]
        if row["state"] in OPEN_STATES:
            oldest[row["queue"]] = min(row["oldest"], oldest.get(row["queue"], row["oldest"]))
    stale = dict(select_stale(rows).values_list("queue").annotate(count=Count("pk")).order_by())
    return [
        QueueCount(queue, states.get(queue.pk, {}), oldest.get(queue.pk), stale.get(queue.pk, 0)) for queue in queues
    ]


def find_queue(*, workspace: Workspace, queue_id: uuid.UUID) -> ReviewQueue | None:
    """The queue of that id in this workspace, or None."""
    return (
        ReviewQueue.objects.select_related("created_by", "workspace").filter(workspace=workspace, pk=queue_id).first()
    )


def list_fillable(*, workspace: Workspace) -> list[ReviewQueue]:
    """The queues that conversations can be put into by hand, by name."""
    rows = ReviewQueue.objects.filter(workspace=workspace, is_standing=False, closed_at=None)
    return list(rows.order_by("name", "pk")[:MAX_QUEUES])


def list_rubrics(*, queue: ReviewQueue, limit: int = 50) -> list[Rubric]:
    """The versions of a queue's rubric, the latest first, each with who wrote it."""
    return list(Rubric.objects.select_related("by").filter(queue=queue).order_by("-number")[:limit])


@dataclass(frozen=True, slots=True)
class ReviewerCount:
    """What a person did in a queue: verdicts by what they say, as far as they may be told, and what they hold."""

    reviewer: str
    verdicts: Mapping[str, int]
    held: int

    @property
    def total(self) -> int:
        """How many verdicts they gave."""
        return sum(self.verdicts.values())


def count_reviewers(*, queue: ReviewQueue, reader_id: int | None) -> list[ReviewerCount]:
    """Who did how much in a queue, the busiest first. A verdict counts when it may be told: a count tells as much."""
    rows = select_told(Review.objects.filter(item__queue=queue), reader_id=reader_id)
    verdicts: dict[str, dict[str, int]] = {}
    for row in rows.values("reviewer__username", "verdict").annotate(count=Count("pk")).order_by():
        verdicts.setdefault(row["reviewer__username"], {})[row["verdict"]] = row["count"]
    held = ReviewItem.objects.filter(queue=queue, workspace=queue.workspace_id, holder__isnull=False)
    holding = dict(held.values_list("holder__username").annotate(count=Count("pk")).order_by())
    counts = [
        ReviewerCount(name, verdicts.get(name, {}), holding.get(name, 0)) for name in verdicts.keys() | holding.keys()
    ]
    return sorted(counts, key=lambda count: (-count.total, count.reviewer))[:MAX_REVIEWERS]


def list_items(
    *,
    queue: ReviewQueue,
    show: str,
    reader: User | None,
    after: Key | None = None,
    limit: int = 50,
    within: Q = EVERYWHERE,
    is_by_id: bool = False,
) -> list[ReviewItem]:
    """Items of a queue, each with its conversation and holder: those that wait longest first, done ones newest first.

    Each says `has_spoken`: whether the reader gave a verdict on it; and `is_hidden`, as in `select_told_items`.

    Args:
        reader: who reads; None is a program, which has spoken on nothing.
        show: `MINE` (held by the reader, or spoken on and waiting for the other), `OPEN`, `SECOND`, `DISPUTED`, `DONE`,
            or `STALE` (signed off, and known to differ from what is there).
        after: (added_at or ended_at, id) of the last one seen.
        within: only those of which this holds.
        is_by_id: in the order of their ids, in which none moves.
    """
    own = Review.objects.filter(item=OuterRef("pk"), reviewer=reader, withdrawn_at=None)
    rows = ReviewItem.objects.filter(within, workspace=queue.workspace_id, queue=queue)
    rows = select_told_items(rows).annotate(has_spoken=Exists(own)).select_related("conversation__channel", "holder")
    is_ended = show in (DONE, STALE)
    if is_ended:
        rows = rows.filter(state=State.SETTLED) if show == DONE else select_stale(rows)
    else:
        rows = rows.filter(state__in=[show] if show in (SECOND, DISPUTED) else OPEN_STATES)
    if show == MINE:
        rows = rows.filter(Q(holder=reader) | Q(has_spoken=True))
    at = "pk" if is_by_id else "ended_at" if is_ended else "added_at"
    place = (after[1], after[1]) if after and is_by_id else after
    return take_page(rows, at, place, limit, is_newest_first=is_ended and not is_by_id)


def find_item(*, workspace: Workspace, item_id: uuid.UUID) -> ReviewItem | None:
    """The item of that id in this workspace with its queue, conversation, rubric and holder, or None."""
    return _find_items(workspace, item_id).first()


def survey_item(*, workspace: Workspace, item_id: uuid.UUID) -> ReviewItem | None:
    """As `find_item`, and in the same statement what its page counts: the queue's open and settled items, the comments.

    These are `open_count`, `settled_count` and `comment_count`, of which the last are those that stand open.
    """
    beside = ReviewItem.objects.filter(workspace=OuterRef("workspace"), queue=OuterRef("queue"))
    comments = Comment.objects.filter(select_here(OuterRef(OuterRef("conversation"))), workspace=OuterRef("workspace"))
    rows = _find_items(workspace, item_id).annotate(
        open_count=_count_rows(beside.filter(state__in=OPEN_STATES)),
        settled_count=_count_rows(beside.filter(state=State.SETTLED)),
        comment_count=_count_rows(comments.filter(state=Comment.State.OPEN)),
    )
    return rows.first()


def _find_items(workspace: Workspace, item_id: uuid.UUID) -> QuerySet[ReviewItem]:
    rows = ReviewItem.objects.filter(workspace=workspace, pk=item_id)
    return select_told_items(rows.select_related("queue", "conversation__channel", "rubric", "holder", "added_by"))


def _count_rows(rows: QuerySet[Any]) -> Coalesce:
    """How many these are, as a value of a row outside."""
    counted = rows.order_by().annotate(one=Value(1)).values("one").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted), 0)


def list_beside(*, queue: ReviewQueue, reader: User, limit: int = 30) -> tuple[list[ReviewItem], list[ReviewItem]]:
    """The open items of a queue around one of them: the reader's, and what others may do, at most so many of each.

    In one statement, as `list_items` has each of the two.
    """
    rows = ReviewItem.objects.filter(workspace=queue.workspace_id, queue=queue, state__in=OPEN_STATES)
    own = Review.objects.filter(item=OuterRef("pk"), reviewer=reader, withdrawn_at=None)
    ordered = rows.order_by("added_at", "pk").values("pk")
    mine = ordered.filter(Q(holder=reader) | Q(Exists(own)))[:limit]
    # What is the reader's may stand among the first of all.
    chosen = rows.filter(pk__in=mine.union(ordered[: 2 * limit]))
    found = select_told_items(chosen).annotate(has_spoken=Exists(own)).select_related("conversation__channel", "holder")
    groups: tuple[list[ReviewItem], list[ReviewItem]] = ([], [])
    for item in found.order_by("added_at", "pk"):
        is_mine = item.holder_id == reader.pk or vars(item)["has_spoken"]
        groups[not is_mine].append(item)
    return groups[0][:limit], groups[1][:limit]


def list_queues_around(*, conversation: Conversation) -> tuple[list[ReviewItem], list[ReviewQueue]]:
    """Where a conversation waits to be reviewed, each with its queue and holder, and the queues that it can be put
    into besides, by name; one statement."""
    waiting = FilteredRelation("items", condition=Q(items__conversation=conversation.pk, items__state__in=OPEN_STATES))
    rows: Any = ReviewQueue.objects.filter(workspace=conversation.workspace_id).annotate(waiting=waiting)
    wanted = Q(waiting__isnull=False) | Q(is_standing=False, closed_at=None)
    # Those it waits in first: they are not to fall off the end.
    rows = rows.filter(wanted).order_by(F("waiting__added_at").asc(nulls_last=True), "name", "pk")
    items: list[ReviewItem] = []
    fillable: list[ReviewQueue] = []
    for queue in rows.select_related("waiting__holder")[:MAX_QUEUES]:
        item = getattr(queue, "waiting", None)
        if item is None:
            fillable.append(queue)
            continue
        item.queue = queue
        items.append(item)
    return items, fillable


def list_settled(*, conversation: Conversation, limit: int = 5) -> list[ReviewItem]:
    """Where a conversation was signed off, as far as that may be told, the latest first, each with its queue."""
    rows = ReviewItem.objects.filter(conversation=conversation, state=State.SETTLED).select_related("queue")
    found = select_told_items(rows).order_by("-ended_at", "-pk")[:limit]
    return [item for item in found if not vars(item)["is_hidden"]]
