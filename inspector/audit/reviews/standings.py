"""Verdicts as they may be told, and whether they hold.

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

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from inspector.accounts.models import Workspace
from inspector.threads.models import Conversation, Message

from .bindings import Change, Place, compare, read_changes, read_lines
from .tables import BLIND_STATES, Binding, Review, ReviewItem

# Of a conversation that is no larger, what a verdict is bound to is compared whenever it is shown.
COMPARED_AT_ONCE: Final = 2000
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


def select_stale(rows: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
    """Those of these items whose sign-off is in force and known to be stale: what `find_sign_offs` says, in SQL."""
    differs = Q(binding__isnull=False) & ~Q(binding__changes="")
    differs |= Q(binding=None) & ~Q(seen_digest=F("conversation__settled_digest"))
    carrying = Review.objects.filter(differs, item=OuterRef("pk"), verdict=OuterRef("verdict"), withdrawn_at=None)
    later = ReviewItem.objects.filter(
        ~_find_blind("ended_at"),
        Q(ended_at__gt=OuterRef("ended_at")) | Q(ended_at=OuterRef("ended_at"), pk__gt=OuterRef("pk")),
        conversation=OuterRef("conversation"),
        state=State.SETTLED,
    )
    return rows.filter(~_find_blind("ended_at"), Exists(carrying), ~Exists(later), state=State.SETTLED)


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
    rows = Review.objects.filter(conversation=conversation)
    # Most conversations have none, and each of their pages asks for them: so this is asked first, which is cheap.
    if not rows.exists():
        return []
    rows = rows.select_related("reviewer", "item__queue", "rubric", "binding")
    return list(select_told(rows, reader_id=reader_id).order_by("-created_at", "-pk")[:limit])


@dataclass(frozen=True, slots=True)
class SignOff:
    """What settled a conversation last: the verdict, of whom and when, and how it stands."""

    verdict: str
    reviewers: Sequence[str]
    at: datetime
    standing: Standing


def find_sign_offs(*, conversations: Collection[Conversation], is_compared: bool = False) -> dict[uuid.UUID, SignOff]:
    """What is in force on each of these conversations that was settled, in two statements.

    Args:
        conversations: of one workspace.
        is_compared: whether each is compared with its messages, as `find_standings` does it; else what the worker found
            is told.
    """
    by_id = {each.pk: each for each in conversations}
    rows = ReviewItem.objects.filter(conversation__in=list(by_id), state=State.SETTLED)
    rows = rows.filter(~_find_blind("ended_at"))
    items = list(rows.order_by("conversation", "-ended_at", "-pk").distinct("conversation"))
    reviews = Review.objects.filter(item__in=[item.pk for item in items], withdrawn_at=None)
    reviews = reviews.select_related("reviewer", "binding")
    reviews = reviews if is_compared else reviews.defer("binding__manifest")
    by_item: dict[uuid.UUID, list[Review]] = {}
    for review in reviews.order_by("created_at", "pk") if items else []:
        by_item.setdefault(review.item_id, []).append(review)
    return {
        item.conversation_id: make_sign_off(
            item, by_item.get(item.pk, []), by_id[item.conversation_id], is_compared=is_compared
        )
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


def list_told_reviews(*, item: ReviewItem) -> list[Review]:
    """The verdicts on an item that anybody may see, the first first."""
    return list_item_reviews(item=item, reader_id=None)


def list_item_reviews(*, item: ReviewItem, reader_id: int | None) -> list[Review]:
    """The verdicts on an item that a reader may see, the first first; for None what anybody may."""
    rows = Review.objects.filter(item=item).select_related("reviewer", "rubric", "binding")
    found = list(select_told(rows, reader_id=reader_id).order_by("created_at", "pk"))
    for review in found:
        # It is loaded with its queue already.
        review.item = item
    return found


def find_places(*, places: Collection[Place], workspace: Workspace) -> dict[Place, Message]:
    """The messages at these places, as far as they are shown; asks for nothing where there are none."""
    if not places:
        return {}
    rows = Message.objects.shown().filter(workspace=workspace, record__in={record for record, _ in places})
    found = {(message.record_id, message.part): message for message in rows.defer("body", "words")}
    return {place: found[place] for place in places if place in found}
