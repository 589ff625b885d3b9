"""Verdicts: given alone or by two who do not know of each other, decided by a third, bound to what was seen.

One reviewer settles an item alone. Of two, neither learns what the other said, or who it was, before both have spoken;
where they agree the item is settled, and where they differ a third person decides, who sees both. A verdict is added
and never changed: before another has spoken it can be withdrawn, and later another review of the conversation
supersedes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.utils import timezone

from inspector.accounts.models import Membership
from inspector.intake.text import make_storable
from inspector.threads.models import Conversation

from ..models.reviews import OPEN_STATES, Review, ReviewItem, Rubric
from .bindings import bind
from .leases import check_held, check_turn, hold_item, record_review
from .queues import get_standing_queue, hold_queue, make_items

MAX_COMMENT_LENGTH: Final = 10_000
State = ReviewItem.State


@transaction.atomic
def give_verdict(
    *, membership: Membership, conversation: Conversation, verdict: str, comment: str, seen: bytes
) -> Review:
    """An auditor's verdict on a conversation that waits in no queue: it settles an item of its own.

    Args:
        membership: who gives it; an owner or an auditor of the conversation's workspace.
        verdict: one of `Review.Verdict`.
        comment: why; up to 10,000 characters.
        seen: the settled digest of the conversation as the auditor's page showed it.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: for an unknown verdict, too long a comment, a conversation that waits in a queue, or one that
            has changed since it was shown: nobody signs what they have not seen.
    """
    if not membership.is_auditor or membership.workspace_id != conversation.workspace_id:
        raise PermissionDenied("only an auditor of this workspace gives verdicts")
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
        verdict: one of `Review.Verdict`.
        comment: why; up to 10,000 characters.
        seen: the settled digest of the conversation as the reviewer's page showed it.
        answers: one of `Review.Answer` for each criterion, in the order of the rubric.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: where somebody else holds it, this person has spoken, the rubric is not answered, or the
            conversation has changed since it was shown.
    """
    if not membership.is_auditor or membership.workspace_id != item.workspace_id:
        raise PermissionDenied("only an auditor of this workspace gives verdicts")
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
