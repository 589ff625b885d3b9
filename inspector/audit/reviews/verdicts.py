"""Verdicts: given alone or by two who do not know of each other, decided by a third, bound to what was seen; by whoever
holds the conversation, which are never two people at once.

A lease expires by itself; then somebody else may take the conversation over. Until somebody does, it stays with whoever
held it, so that a verdict that took long to write is not lost.

One reviewer settles an item alone. Of two, neither learns what the other said, or who it was, before both have spoken;
where they agree the item is settled, and where they differ a third person decides, who sees both. A verdict is added
and never changed: before another has spoken it can be withdrawn, and later another review of the conversation
supersedes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from inspector.accounts.models import Membership
from inspector.database import make_storable
from inspector.threads.models import Conversation
from inspector.trail.services import Thing, record_deed

from ..models.reviews import OPEN_STATES, Review, ReviewItem, ReviewQueue, Rubric
from .bindings import bind
from .queues import find_rubric, get_standing_queue, hold_queue, make_items

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
    membership.require_auditor(queue.workspace_id, "reviews")
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
    membership.require_auditor(item.workspace_id, "reviews")
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


MAX_COMMENT_LENGTH: Final = 10_000
State = ReviewItem.State


@transaction.atomic
def give_verdict(
    *, membership: Membership, conversation: Conversation, verdict: str, comment: str, seen: bytes
) -> Review:
    """An auditor's verdict on a conversation that waits in no queue: it settles an item of its own.

    Args:
        membership: who gives it; an owner or an auditor of the conversation's workspace.
        verdict: one of `Verdict`.
        comment: why; up to 10,000 characters.
        seen: the settled digest of the conversation as the auditor's page showed it.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: for an unknown verdict, too long a comment, a conversation that waits in a queue, or one that
            has changed since it was shown: nobody signs what they have not seen.
    """
    membership.require_auditor(conversation.workspace_id, "gives verdicts")
    conversation = _hold_conversation(conversation, seen)
    waiting = ReviewItem.objects.filter(conversation=conversation, state__in=OPEN_STATES).select_related("queue")
    for item in waiting[:1]:
        raise ValidationError(f"it waits for review in the queue “{item.queue}”: give your verdict there")
    queue = get_standing_queue(workspace_id=conversation.workspace_id)
    item = make_items(queue, [conversation.pk], "", membership.user)[0]
    review = _add(membership, conversation, item, verdict, comment, seen, None, ())
    _settle(item, review.verdict)
    record_review("verdict.given", membership, item, verdict=verdict, review=str(review.pk))
    return review


@transaction.atomic
def judge_item(
    *, membership: Membership, item: ReviewItem, verdict: str, comment: str, seen: bytes, answers: Sequence[str] = ()
) -> Review:
    """The verdict of whoever holds an item, with an answer for each criterion of its rubric.

    Args:
        membership: who gives it.
        item: on what; held by them.
        verdict: one of `Verdict`.
        comment: why; up to 10,000 characters.
        seen: the settled digest of the conversation as the reviewer's page showed it.
        answers: one of `Review.Answer` for each criterion, in the order of the rubric.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: where somebody else holds it, this person has spoken, the rubric is not answered, or the
            conversation has changed since it was shown.
    """
    membership.require_auditor(item.workspace_id, "gives verdicts")
    conversation = _hold_conversation(item.conversation, seen)
    item = hold_item(membership, item)
    check_turn(membership, item)
    check_held(membership, item)
    is_adjudication = item.state == State.DISPUTED
    earlier = list(Review.objects.filter(item=item, withdrawn_at=None))
    review = _add(
        membership, conversation, item, verdict, comment, seen, item.rubric, answers, is_adjudication=is_adjudication
    )
    if is_adjudication or len(earlier) + 1 >= item.needed:
        agrees = is_adjudication or all(each.verdict == review.verdict for each in earlier)
        _settle(item, review.verdict if agrees else "")
    else:
        item.state = State.SECOND
        _give_back(item)
    record_review("verdict.given", membership, item, verdict=verdict, review=str(review.pk))
    return review


@transaction.atomic
def withdraw_verdict(*, membership: Membership, item: ReviewItem) -> None:
    """Take back one's verdict on an item as long as the other has not spoken. It is kept, as withdrawn.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: where one has not spoken, or the other has.
    """
    held = hold_item(membership, item)
    own = Review.objects.filter(item=held, reviewer=membership.user_id, withdrawn_at=None)
    if held.state != State.SECOND or not own.exists():
        raise ValidationError("it cannot be withdrawn any more: ask for another review, which supersedes it")
    own.update(withdrawn_at=timezone.now())
    held.state = State.WAITING
    held.save(update_fields=["state"])
    record_review("verdict.withdrawn", membership, held)


@transaction.atomic
def review_again(*, membership: Membership, item: ReviewItem) -> ReviewItem:
    """Ask for another review of a settled conversation in the same queue; its verdict supersedes the earlier one.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: where it is not settled, waits already, or its queue is closed.
    """
    held = hold_item(membership, item)
    if held.state != State.SETTLED:
        raise ValidationError("it is not signed off yet: it can be reviewed as it is")
    if held.queue.is_standing:
        raise ValidationError("it was reviewed directly: give another verdict on the conversation's page")
    # Whoever closes the queue meanwhile comes before or after this, and not in between.
    if hold_queue(membership, held.queue).closed_at is not None:
        raise ValidationError("its queue is closed: open it again first")
    made = make_items(held.queue, [held.conversation_id], "reviewed before", membership.user)[0]
    # What waits already stays as it is, also where the rules have just put it there.
    if not ReviewItem.objects.filter(pk=made.pk).exists():
        raise ValidationError("it waits in this queue already")
    record_review("review.asked-again", membership, held)
    return made


def _hold_conversation(conversation: Conversation, seen: bytes) -> Conversation:
    held = Conversation.objects.select_for_update(no_key=True).get(pk=conversation.pk)
    if seen != bytes(held.settled_digest or b""):
        raise ValidationError("the conversation has changed since you opened it: look again before you sign")
    return held


def _add(
    membership: Membership,
    conversation: Conversation,
    item: ReviewItem,
    verdict: str,
    comment: str,
    seen: bytes,
    rubric: Rubric | None,
    answers: Sequence[str],
    *,
    is_adjudication: bool = False,
) -> Review:
    if verdict not in Review.Verdict.values:
        raise ValidationError({"verdict": f"a verdict is one of {', '.join(Review.Verdict.values)}"})
    if len(comment) > MAX_COMMENT_LENGTH:
        raise ValidationError({"comment": "a comment has at most 10,000 characters"})
    criteria = rubric.criteria if rubric else []
    if len(answers) != len(criteria) or not set(answers) <= set(Review.Answer.values):
        raise ValidationError({"answers": "answer each criterion of the rubric: pass, fail or not applicable"})
    return Review.objects.create(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        item=item,
        reviewer=membership.user,
        verdict=verdict,
        comment=make_storable(comment.strip()),
        rubric=rubric,
        answers=list(answers),
        seen_digest=seen,
        seen_messages=conversation.message_count,
        binding=bind(conversation=conversation),
        is_adjudication=is_adjudication,
    )


def _settle(item: ReviewItem, verdict: str) -> None:
    """Settle an item with a verdict; without one it is disputed."""
    item.state, item.verdict = (State.SETTLED, verdict) if verdict else (State.DISPUTED, "")
    item.ended_at = timezone.now() if verdict else None
    _give_back(item)


def _give_back(item: ReviewItem) -> None:
    item.holder = item.held_until = None
    item.save(update_fields=["state", "verdict", "ended_at", "holder", "held_until"])
