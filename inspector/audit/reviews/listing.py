"""Reads of reviews: queues and how far they are, their items, the verdicts that one may see, and whether they hold.

While a conversation waits for two who must not know of each other, what anybody says of it is told to nobody but who
said it: neither the verdict nor that there is one, nor who gave it. Everything that shows verdicts reads them here, or
in the two conditions of `searchable`, which say the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, Exists, F, Min, OuterRef, Q, QuerySet

from inspector.accounts.models import User, Workspace
from inspector.threads.models import Conversation, Message

from .bindings import Change, Place, compare, read_changes, read_lines
from .tables import BLIND_STATES, OPEN_STATES, Binding, Review, ReviewItem, ReviewQueue, Rubric

# Of a conversation that is no larger, what a verdict is bound to is compared whenever it is shown.
COMPARED_AT_ONCE: Final = 2000
MOST_QUEUES: Final = 200
MOST_REVIEWERS: Final = 100
# What a list of items can be narrowed to.
MINE, OPEN, SECOND, DISPUTED, DONE = "mine", "open", "second", "disputed", "done"
Key = tuple[datetime, uuid.UUID]
State = ReviewItem.State


def select_told(rows: QuerySet[Review], *, reader_id: int | None = None) -> QuerySet[Review]:
    """Those of these verdicts that may be told to a reader: none that was withdrawn, or that is to stay unknown.

    Args:
        reader_id: who reads; one sees what one said oneself. None is anybody.
    """
    blind = ReviewItem.objects.filter(
        conversation=OuterRef("conversation"),
        needed__gt=1,
        state__in=BLIND_STATES,
        added_at__lte=OuterRef("created_at"),
    )
    told = ~Q(Exists(blind))
    return rows.filter(told if reader_id is None else told | Q(reviewer=reader_id), withdrawn_at=None)


def select_told_items(rows: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
    """These items, each with `is_hidden`: whether what settled it must not be told, as others are at it blindly."""
    return rows.annotate(is_hidden=_find_blind("ended_at"))


def _find_blind(moment: str) -> Exists:
    """Whether the conversation of a row was already under blind review at that moment of the row, and still is."""
    blind = ReviewItem.objects.filter(
        conversation=OuterRef("conversation"), needed__gt=1, state__in=BLIND_STATES, added_at__lte=OuterRef(moment)
    )
    return Exists(blind)


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether what was seen is still what is there.

    `changes` by kind, empty where it holds. It `is_known` unless the conversation was settled anew since it was
    compared, or was judged before verdicts were bound to bytes. `is_exact` where the messages can be named.
    """

    changes: Mapping[str, Change]
    is_known: bool = True
    is_exact: bool = True

    @property
    def is_stale(self) -> bool:
        """Whether it is known to differ."""
        return bool(self.changes) or not self.is_exact


_HOLDS: Final = Standing({})


def find_standings(
    *, reviews: Sequence[Review], conversation: Conversation, is_compared: bool = False
) -> dict[uuid.UUID, Standing]:
    """How each of these verdicts on a conversation stands.

    Args:
        reviews: with their bindings.
        conversation: theirs.
        is_compared: whether to compare with the messages themselves, in one or two statements, where these are few
            enough; else what the worker found is told.
    """
    bound = {review.binding for review in reviews if review.binding is not None}
    lines = None
    if bound and is_compared and conversation.message_count <= COMPARED_AT_ONCE:
        lines = read_lines(conversation_id=conversation.pk)
    now = bytes(conversation.settled_digest or b"")
    by_binding = {
        each.pk: Standing(compare(each, lines)) if lines is not None else _read_standing(each, now) for each in bound
    }
    return {
        review.pk: by_binding[review.binding_id] if review.binding_id else _judge_old(review, now) for review in reviews
    }


def _read_standing(bound: Binding, now: bytes) -> Standing:
    return Standing(read_changes(bound.changes), is_known=bytes(bound.checked_digest) == now)


def _judge_old(review: Review, now: bytes) -> Standing:
    """Of a verdict that is bound to no bytes: whether the conversation is told as it was."""
    return _HOLDS if bytes(review.seen_digest) == now else Standing({}, is_exact=False)


def list_reviews(*, conversation: Conversation, reader_id: int | None, limit: int = 50) -> list[Review]:
    """The verdicts on a conversation that a reader may see, newest first, each with who gave it and on what."""
    rows = Review.objects.filter(conversation=conversation).select_related(
        "reviewer", "item__queue", "rubric", "binding"
    )
    return list(select_told(rows, reader_id=reader_id).order_by("-created_at", "-pk")[:limit])


@dataclass(frozen=True, slots=True)
class SignOff:
    """What settled a conversation last: the verdict, of whom and when, and how it stands."""

    verdict: str
    reviewers: Sequence[str]
    at: datetime
    standing: Standing


def find_sign_offs(*, conversations: Collection[Conversation]) -> dict[uuid.UUID, SignOff]:
    """What is in force on each of these conversations that was settled, in two statements; the worker's comparison."""
    by_id = {each.pk: each for each in conversations}
    rows = ReviewItem.objects.filter(conversation__in=list(by_id), state=State.SETTLED)
    rows = rows.filter(~_find_blind("ended_at"))
    items = list(rows.order_by("conversation", "-ended_at", "-pk").distinct("conversation"))
    reviews = Review.objects.filter(item__in=[item.pk for item in items], withdrawn_at=None)
    reviews = reviews.select_related("reviewer", "binding").defer("binding__manifest")
    by_item: dict[uuid.UUID, list[Review]] = {}
    for review in reviews.order_by("created_at", "pk") if items else []:
        by_item.setdefault(review.item_id, []).append(review)
    return {
        item.conversation_id: make_sign_off(item, by_item.get(item.pk, []), by_id[item.conversation_id])
        for item in items
    }


def make_sign_off(
    item: ReviewItem, reviews: Sequence[Review], conversation: Conversation, *, is_compared: bool = False
) -> SignOff:
    """The sign-off of a settled item, from its verdicts: those that say what it came to carry it."""
    carrying = [review for review in reviews if review.verdict == item.verdict]
    standings = find_standings(reviews=carrying, conversation=conversation, is_compared=is_compared)
    stale = [standing for standing in standings.values() if standing.is_stale]
    unknown = [standing for standing in standings.values() if not standing.is_known]
    return SignOff(
        verdict=item.verdict,
        reviewers=[review.reviewer.get_username() for review in carrying],
        at=item.ended_at or item.added_at,
        standing=next(iter([*stale, *unknown]), _HOLDS),
    )


@dataclass(frozen=True, slots=True)
class QueueCount:
    """A queue and how far it is: how many stand in each state, and since when the oldest of the open ones waits."""

    queue: ReviewQueue
    states: Mapping[str, int]
    oldest: datetime | None

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


def list_queues(*, workspace: Workspace) -> list[QueueCount]:
    """The queues of a workspace with their progress, in two statements: open ones first, the standing one last."""
    queues = list(
        ReviewQueue.objects.select_related("created_by")
        .filter(workspace=workspace)
        .order_by("is_standing", F("closed_at").desc(nulls_first=True), "created_at", "pk")[:MOST_QUEUES]
    )
    return _count(workspace, queues)


def count_queue(*, queue: ReviewQueue) -> QueueCount:
    """How far a queue is."""
    return _count(queue.workspace, [queue])[0]


def _count(workspace: Workspace, queues: Sequence[ReviewQueue]) -> list[QueueCount]:
    rows = ReviewItem.objects.filter(workspace=workspace, queue__in=[queue.pk for queue in queues])
    states: dict[uuid.UUID, dict[str, int]] = {}
    oldest: dict[uuid.UUID, datetime] = {}
    for row in rows.values("queue", "state").annotate(count=Count("pk"), oldest=Min("added_at")).order_by():
        states.setdefault(row["queue"], {})[row["state"]] = row["count"]
        if row["state"] in OPEN_STATES:
            oldest[row["queue"]] = min(row["oldest"], oldest.get(row["queue"], row["oldest"]))
    return [QueueCount(queue, states.get(queue.pk, {}), oldest.get(queue.pk)) for queue in queues]


def find_queue(*, workspace: Workspace, queue_id: uuid.UUID) -> ReviewQueue | None:
    """The queue of that id in this workspace, or None."""
    return (
        ReviewQueue.objects.select_related("created_by", "workspace").filter(workspace=workspace, pk=queue_id).first()
    )


def list_fillable(*, workspace: Workspace) -> list[ReviewQueue]:
    """The queues that conversations can be put into by hand, by name."""
    rows = ReviewQueue.objects.filter(workspace=workspace, is_standing=False, closed_at=None)
    return list(rows.order_by("name", "pk")[:MOST_QUEUES])


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
    return sorted(counts, key=lambda count: (-count.total, count.reviewer))[:MOST_REVIEWERS]


def list_items(
    *, queue: ReviewQueue, show: str, reader: User | None, after: Key | None = None, limit: int = 50
) -> list[ReviewItem]:
    """Items of a queue, each with its conversation and holder: those that wait longest first, done ones newest first.

    Each says `has_spoken`: whether the reader gave a verdict on it; and `is_hidden`, as in `select_told_items`.

    Args:
        reader: who reads; None is a program, which has spoken on nothing.
        show: `MINE` (held by the reader, or spoken on and waiting for the other), `OPEN`, `SECOND`, `DISPUTED`, `DONE`.
        after: (added_at or ended_at, id) of the last one seen.
    """
    own = Review.objects.filter(item=OuterRef("pk"), reviewer=reader, withdrawn_at=None)
    rows = ReviewItem.objects.filter(workspace=queue.workspace_id, queue=queue)
    rows = select_told_items(rows).annotate(has_spoken=Exists(own)).select_related("conversation__channel", "holder")
    if show == DONE:
        rows = rows.filter(state=State.SETTLED)
        if after is not None:
            at, pk = after
            rows = rows.filter(Q(ended_at__lt=at) | Q(ended_at=at, pk__lt=pk))
        return list(rows.order_by("-ended_at", "-pk")[:limit])
    rows = rows.filter(state__in=[show] if show in (SECOND, DISPUTED) else OPEN_STATES)
    if show == MINE:
        rows = rows.filter(Q(holder=reader) | Q(has_spoken=True))
    if after is not None:
        at, pk = after
        rows = rows.filter(Q(added_at__gt=at) | Q(added_at=at, pk__gt=pk))
    return list(rows.order_by("added_at", "pk")[:limit])


def find_item(*, workspace: Workspace, item_id: uuid.UUID) -> ReviewItem | None:
    """The item of that id in this workspace with its queue, conversation, rubric and holder, or None."""
    rows = ReviewItem.objects.filter(workspace=workspace, pk=item_id)
    rows = rows.select_related("queue", "conversation__channel", "rubric", "holder", "added_by")
    return select_told_items(rows).first()


def list_told_reviews(*, item: ReviewItem) -> list[Review]:
    """The verdicts on an item that anybody may see, the first first."""
    return list_item_reviews(item=item, reader_id=None)


def list_item_reviews(*, item: ReviewItem, reader_id: int | None) -> list[Review]:
    """The verdicts on an item that a reader may see, the first first; for None what anybody may."""
    rows = Review.objects.filter(item=item).select_related("reviewer", "rubric", "binding")
    return list(select_told(rows, reader_id=reader_id).order_by("created_at", "pk"))


def list_open_items(*, conversation: Conversation) -> list[ReviewItem]:
    """Where a conversation waits to be reviewed, each with its queue and holder."""
    rows = ReviewItem.objects.filter(conversation=conversation, state__in=OPEN_STATES)
    return list(rows.select_related("queue", "holder").order_by("added_at", "pk"))


def find_places(*, places: Collection[Place], workspace: Workspace) -> dict[Place, Message]:
    """The messages at these places, as far as they are shown; asks for nothing where there are none."""
    if not places:
        return {}
    rows = Message.objects.shown().filter(workspace=workspace, record__in={record for record, _ in places})
    found = {(message.record_id, message.part): message for message in rows.defer("body", "words")}
    return {place: found[place] for place in places if place in found}
