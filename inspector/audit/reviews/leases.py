"""Leases: who holds a conversation of a queue to review it, and until when. Never two people at once.

A lease expires by itself; then somebody else may take the conversation over. Until somebody does, it stays with whoever
held it, so that a verdict that took long to write is not lost.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from inspector.accounts.models import Membership

from ..models.reviews import OPEN_STATES, Review, ReviewItem, ReviewQueue
from ..trail import Thing, record_deed
from .queues import find_rubric

LEASE: Final = timedelta(minutes=30)


@transaction.atomic
def claim(*, membership: Membership, item: ReviewItem) -> ReviewItem:
    """Hold an item for half an hour, to review it alone; whoever holds it already holds it anew.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: where somebody else holds it, nothing is left to be said, or this person has spoken.
    """
    held = hold_item(membership, item)
    if held.is_held and held.holder_id != membership.user_id:
        raise ValidationError(_say_holder(held))
    check_turn(membership, held)
    # Whoever takes it before anybody spoke has the rubric as it stands then, and the second has the same.
    if held.state == ReviewItem.State.WAITING and held.holder_id != membership.user_id:
        held.rubric = find_rubric(queue=held.queue)
    held.holder, held.held_until = membership.user, timezone.now() + LEASE
    held.save(update_fields=["holder", "held_until", "rubric"])
    record_review("review.taken", membership, held)
    return held


@transaction.atomic
def claim_next(*, membership: Membership, queue: ReviewQueue) -> ReviewItem | None:
    """Hold the item of a queue that waits longest of those that this person may speak on; None where there is none.

    What others are just taking is passed by, so that two who ask at once get two items.

    Raises:
        PermissionDenied: for a viewer or a stranger.
    """
    if not membership.is_auditor or membership.workspace_id != queue.workspace_id:
        raise PermissionDenied("only an auditor of this workspace reviews")
    own = Review.objects.filter(item=OuterRef("pk"), reviewer=membership.user_id, withdrawn_at=None)
    rows = ReviewItem.objects.filter(workspace=queue.workspace_id, queue=queue, state__in=OPEN_STATES)
    rows = rows.filter(Q(holder=None) | Q(holder=membership.user_id) | Q(held_until__lte=timezone.now()))
    rows = rows.filter(~Exists(own)).order_by("added_at", "pk")
    item = rows.select_for_update(no_key=True, skip_locked=True).first()
    return claim(membership=membership, item=item) if item else None


@transaction.atomic
def renew(*, membership: Membership, item: ReviewItem) -> ReviewItem:
    """Hold an item for another half hour from now on.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: where one does not hold it any more.
    """
    held = hold_item(membership, item)
    check_held(membership, held)
    held.held_until = timezone.now() + LEASE
    held.save(update_fields=["held_until"])
    return held


@transaction.atomic
def release(*, membership: Membership, item: ReviewItem) -> ReviewItem:
    """Give an item back, so that anybody may take it.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: where one does not hold it any more.
    """
    held = hold_item(membership, item)
    check_held(membership, held)
    held.holder = held.held_until = None
    held.save(update_fields=["holder", "held_until"])
    record_review("review.released", membership, held)
    return held


def hold_item(membership: Membership, item: ReviewItem) -> ReviewItem:
    """The item as it stands, locked until the transaction ends.

    Raises:
        PermissionDenied: for a viewer or a stranger.
    """
    if not membership.is_auditor or membership.workspace_id != item.workspace_id:
        raise PermissionDenied("only an auditor of this workspace reviews")
    # First the lock: had it to be waited for, whoever holds the item since would be missing among rows that were joined
    # before.
    ReviewItem.objects.select_for_update(no_key=True).only("pk").get(pk=item.pk)
    return ReviewItem.objects.select_related("queue", "conversation", "holder", "rubric").get(pk=item.pk)


def check_held(membership: Membership, item: ReviewItem) -> None:
    """See that this person holds the item, if only because nobody took it over.

    Raises:
        ValidationError: where somebody else does, or nobody.
    """
    if item.holder_id is None:
        raise ValidationError("not claimed: claim it first")
    if item.holder_id != membership.user_id:
        raise ValidationError(_say_holder(item))


def check_turn(membership: Membership, item: ReviewItem) -> None:
    """See that this person may speak on the item.

    Raises:
        ValidationError: where nothing is left to be said, or this person has spoken.
    """
    if not item.is_open:
        raise ValidationError("the review is complete: ask for another review instead")
    if Review.objects.filter(item=item, reviewer=membership.user_id, withdrawn_at=None).exists():
        if item.state == ReviewItem.State.DISPUTED:
            raise ValidationError("you are one of the two who differ: a third person decides")
        raise ValidationError("your verdict is in: another person has to review it too")


def record_review(code: str, membership: Membership, item: ReviewItem, **details: object) -> None:
    """Leave a deed about an item in the trail; the last statement of its transaction.

    What of it would tell who has spoken is kept from the second reviewer where deeds are listed.
    """
    record_deed(
        code,
        workspace_id=item.workspace_id,
        by=membership,
        on=Thing("review", item.pk, item.conversation.native_id),
        about=[item.conversation_id],
        details=details,
    )


def _say_holder(item: ReviewItem) -> str:
    until = item.held_until.strftime("%H:%M") if item.held_until else ""
    return f"{item.holder} holds it until {until} UTC: take another, or come back then"
