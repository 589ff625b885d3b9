"""Reviews as the API shows them: queues, items and verdicts, of which a program learns what anybody may know."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from typing import Any, Final

from rest_framework import serializers

from inspector.audit.models import Review, ReviewItem, ReviewQueue
from inspector.audit.models.reviews import Rubric
from inspector.audit.reviews.bindings import KINDS, Standing, find_standings, list_item_reviews
from inspector.audit.reviews.queues import find_rubric
from inspector.audit.reviews.selectors import QueueCount, count_reviewers
from inspector.ledger.selectors import find_changed

from .paging import page_of
from .shapes import show

STANDINGS: Final = ("holds", "stale", "unknown")
STATES: Final = tuple(ReviewItem.State.values)


class QueueSerializer(serializers.Serializer[Any]):
    """A queue of reviews and how far it is."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    about = serializers.CharField(allow_blank=True)
    reviewers = serializers.IntegerField(help_text="how many have to say the same of each conversation: 1 or 2")
    source = serializers.ChoiceField(  # type: ignore[assignment]  # the queue's own word
        choices=ReviewQueue.Source.values, help_text="what fills it"
    )
    is_standing = serializers.BooleanField(help_text="it holds the verdicts given on a conversation's page")
    is_closed = serializers.BooleanField()
    open = serializers.IntegerField(help_text="items of which something is still to be said")
    second = serializers.IntegerField(help_text="of these: one of two has spoken, and another is needed")
    disputed = serializers.IntegerField(help_text="of these: two differ, and a third person decides")
    settled = serializers.IntegerField(help_text="items that are signed off")
    stale = serializers.IntegerField(help_text="sign-offs in force that differ from what is there by now")
    oldest = serializers.DateTimeField(allow_null=True, help_text="since when the oldest open one waits")


class RubricSerializer(serializers.Serializer[Any]):
    """The questions on each conversation."""

    number = serializers.IntegerField(help_text="its version")
    criteria = serializers.ListField(child=serializers.CharField())


class ReviewerSerializer(serializers.Serializer[Any]):
    """What a person did in a queue, as far as anybody may know it."""

    reviewer = serializers.CharField()
    verdicts = serializers.DictField(child=serializers.IntegerField(), help_text="how many, by what they say")
    held = serializers.IntegerField(help_text="how many items they hold")


class QueueDetailSerializer(QueueSerializer):
    """A queue with its rubric and who did how much in it."""

    rubric = RubricSerializer(allow_null=True, help_text="the version that holds")
    people = ReviewerSerializer(many=True, help_text="the busiest first; of two, nothing before both have spoken")


QueuePageSerializer: Final = page_of(
    "Queue",
    QueueSerializer,
    "Queues of the workspace, open ones first, the standing one last; `next` is the cursor of the page after.",
)


class ItemSerializer(serializers.Serializer[Any]):
    """A conversation in a queue."""

    id = serializers.UUIDField()
    queue = serializers.UUIDField(source="queue_id")
    conversation = serializers.UUIDField(source="conversation_id")
    state = serializers.ChoiceField(
        choices=STATES, help_text="second: one of two verdicts is in; both are shown when both are"
    )
    needed = serializers.IntegerField(help_text="how many have to speak")
    why = serializers.CharField(allow_blank=True, help_text="why it is in the queue")
    added_at = serializers.DateTimeField()
    holder = serializers.CharField(allow_null=True, help_text="who holds it now")
    held_until = serializers.DateTimeField(allow_null=True)
    verdict = serializers.ChoiceField(
        choices=Review.Verdict.values, allow_null=True, help_text="null until it is signed off, and while it is hidden"
    )
    ended_at = serializers.DateTimeField(allow_null=True)


ItemPageSerializer: Final = page_of(
    "Item",
    ItemSerializer,
    "Items, longest waiting first, signed-off ones newest first; `next` is the cursor of the page after.",
)


class AnswerSerializer(serializers.Serializer[Any]):
    """An answer to a criterion of the rubric."""

    criterion = serializers.CharField()
    answer = serializers.ChoiceField(choices=Review.Answer.values)


class ChangeSerializer(serializers.Serializer[Any]):
    """In what messages differ from what was signed."""

    kind = serializers.ChoiceField(choices=KINDS)
    count = serializers.IntegerField()


class VerdictSerializer(serializers.Serializer[Any]):
    """A verdict that this key may see."""

    id = serializers.UUIDField()
    reviewer = serializers.CharField(source="reviewer.username")
    verdict = serializers.ChoiceField(choices=Review.Verdict.values)
    comment = serializers.CharField(allow_blank=True)
    is_adjudication = serializers.BooleanField(help_text="it decided between two that differ")
    answers = AnswerSerializer(many=True)
    rubric = serializers.IntegerField(
        source="rubric.number", allow_null=True, help_text="the version of the rubric that was answered"
    )
    at = serializers.DateTimeField(source="created_at")
    messages = serializers.IntegerField(source="seen_messages", help_text="how many messages were seen")
    digest = serializers.CharField(allow_null=True, help_text="what it is bound to; docs/reviews.md says over what")
    is_changed = serializers.BooleanField(
        help_text="it is not what was entered in the ledger: somebody changed its row"
    )
    standing = serializers.ChoiceField(
        choices=STANDINGS, help_text="unknown: processed again, and not compared yet with the sign-off"
    )
    changes = ChangeSerializer(many=True, help_text="in what it is stale")


class ItemDetailSerializer(ItemSerializer):
    """An item with its rubric, and the verdicts on it that this key may see."""

    rubric = RubricSerializer(allow_null=True, help_text="its own while it is held; before, the one of its queue")
    settled_digest = serializers.CharField(
        allow_null=True, help_text="digest of the conversation as it is now: a verdict names it as `seen`"
    )
    verdicts = VerdictSerializer(many=True, help_text="the first first; none before both of two have spoken")


class GivenSerializer(serializers.Serializer[Any]):
    """A verdict that was just given, and its item as anybody sees it."""

    given = VerdictSerializer()
    item = ItemDetailSerializer()


def show_queue(count: QueueCount) -> dict[str, Any]:
    """A queue and how far it is."""
    return show(
        QueueSerializer,
        count.queue,
        is_closed=count.queue.closed_at is not None,
        open=count.open,
        second=count.states.get(ReviewItem.State.SECOND, 0),
        disputed=count.states.get(ReviewItem.State.DISPUTED, 0),
        settled=count.settled,
        stale=count.stale,
        oldest=count.oldest,
    )


def show_item(item: ReviewItem) -> dict[str, Any]:
    """An item as anybody may know it; loaded as `audit.reviews.selectors` does."""
    is_told = not vars(item)["is_hidden"]
    return show(
        ItemSerializer,
        item,
        holder=item.holder.get_username() if item.holder and item.is_held else None,
        held_until=item.held_until if item.is_held else None,
        verdict=item.verdict or None if is_told else None,
    )


def show_whole_queue(count: QueueCount) -> dict[str, Any]:
    """A queue with its rubric and who did how much in it, as far as anybody may know."""
    people = count_reviewers(queue=count.queue, reader_id=None)
    return {
        **show_queue(count),
        "rubric": _show_rubric(find_rubric(queue=count.queue)),
        "people": [show(ReviewerSerializer, each) for each in people],
    }


def show_whole_item(item: ReviewItem) -> dict[str, Any]:
    """An item with the verdicts that anybody may know: of two reviewers nothing before both have spoken."""
    reviews = list_item_reviews(item=item, reader_id=None)
    standings = find_standings(reviews=reviews, conversation=item.conversation, is_compared=True)
    # Which version an item keeps from a hand that gave it back would tell that there was one.
    changed = find_changed("verdict", [review.pk for review in reviews]) if reviews else {}
    is_own = item.is_held or item.state != ReviewItem.State.WAITING
    return {
        **show_item(item),
        "rubric": _show_rubric(item.rubric if is_own else find_rubric(queue=item.queue)),
        "settled_digest": bytes(item.conversation.settled_digest or b"").hex() or None,
        "verdicts": [show_verdict(review, standings[review.pk], changed) for review in reviews],
    }


def show_given(review: Review, item: ReviewItem) -> dict[str, Any]:
    """A verdict to who gave it, and its item as anybody sees it."""
    standing = find_standings(reviews=[review], conversation=item.conversation)[review.pk]
    return {
        "given": show_verdict(review, standing, find_changed("verdict", [review.pk])),
        "item": show_whole_item(item),
    }


def _show_rubric(rubric: Rubric | None) -> Mapping[str, Any] | None:
    return show(RubricSerializer, rubric) if rubric else None


def show_verdict(review: Review, standing: Standing, changed: Collection[uuid.UUID]) -> dict[str, Any]:
    """A verdict that this key may see; `changed` are those that are not as they were entered."""
    criteria = review.rubric.criteria if review.rubric else []
    answers = zip(criteria, review.answers, strict=True)
    return show(
        VerdictSerializer,
        review,
        answers=[{"criterion": criterion, "answer": answer} for criterion, answer in answers],
        digest=bytes(review.binding.digest).hex() if review.binding else None,
        is_changed=review.pk in changed,
        standing="stale" if standing.is_stale else "holds" if standing.is_known else "unknown",
        changes=[{"kind": kind, "count": change.count} for kind, change in standing.changes.items()],
    )
