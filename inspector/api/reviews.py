"""Reviews: queues with their progress, their items and verdicts, of which a program learns what anybody may know; and
acts of a key in the name of the member who made it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.audit.models import Review, ReviewItem, ReviewQueue
from inspector.audit.models.reviews import Rubric
from inspector.audit.reviews import verdicts
from inspector.audit.reviews.bindings import KINDS, Standing, find_standings, list_item_reviews
from inspector.audit.reviews.queues import MAX_CRITERIA, find_rubric
from inspector.audit.reviews.selectors import (
    DISPUTED,
    DONE,
    OPEN,
    SECOND,
    STALE,
    QueueCount,
    count_queue,
    count_reviewers,
    find_item,
    find_queue,
    list_items,
    walk_queues,
)
from inspector.audit.reviews.verdicts import MAX_COMMENT_LENGTH
from inspector.database import or_404
from inspector.ledger.selectors import find_changed

from .authentication import ACT_REFUSALS, act_for, caller_of
from .bodies import Document, Text, Texts
from .endpoints import Endpoint
from .paging import CURSOR, LIMIT, cut_page, page_of, read_place
from .parameters import Choice
from .problems import ProblemError
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


logger = logging.getLogger(__name__)

_VERDICT: Final = Document(
    '{"verdict": "fine", "comment": "…", "seen": "…", "answers": ["pass"]}',
    (
        Choice(name="verdict", choices=Review.Verdict.values, is_required=True),
        Text(name="comment", max_characters=MAX_COMMENT_LENGTH, about="why"),
        Text(
            name="seen",
            is_required=True,
            max_characters=64,
            about="`settled_digest` of the item as it was read: nobody signs what they have not seen",
        ),
        Texts(
            name="answers",
            default=(),
            choices=Review.Answer.values,
            most=MAX_CRITERIA,
            about="one for each criterion of the rubric of the item, in their order",
        ),
    ),
)


class QueuesView(Endpoint):
    """The queues of reviews."""

    scopes: ClassVar = {"GET": "review"}
    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}

    @extend_schema(operation_id="list_review_queues", responses=QueuePageSerializer)
    def get(self, request: Request) -> Response:
        """A page of them, with how far each is, in the order in which they were made."""
        given, workspace = self.given, self.workspace
        found = walk_queues(workspace=workspace, after=read_place(given, workspace), limit=given["limit"] + 1)
        page, cursor = cut_page(found, given, workspace, lambda each: (each.queue.created_at, each.queue.pk))
        return Response({"results": [show_queue(count) for count in page], "next": cursor})


class QueueView(Endpoint):
    """One queue of reviews."""

    scopes: ClassVar = {"GET": "review"}

    @extend_schema(operation_id="get_review_queue", responses=QueueDetailSerializer)
    def get(self, request: Request, queue_id: uuid.UUID) -> Response:
        """How far it is, its rubric, and who did how much in it."""
        return Response(show_whole_queue(count_queue(queue=self.find(find_queue, queue_id=queue_id))))


class ItemsView(Endpoint):
    """The items of a queue."""

    scopes: ClassVar = {"GET": "review"}
    parameters: ClassVar = {
        "GET": (
            CURSOR,
            LIMIT,
            Choice(
                name="state",
                about="which items: open, needing a second reviewer, disputed, done, or done with a stale sign-off",
                choices=[OPEN, SECOND, DISPUTED, DONE, STALE],
                default=OPEN,
            ),
        )
    }

    @extend_schema(operation_id="list_review_items", responses=ItemPageSerializer)
    def get(self, request: Request, queue_id: uuid.UUID) -> Response:
        """A page of its items: longest waiting first, done ones newest first."""
        workspace, queue = self.workspace, self.find(find_queue, queue_id=queue_id)
        after = read_place(self.given, workspace)
        found = list_items(
            queue=queue, show=self.given["state"], reader=None, after=after, limit=self.given["limit"] + 1
        )
        page, cursor = cut_page(found, self.given, workspace, lambda item: (item.ended_at or item.added_at, item.pk))
        return Response({"results": [show_item(item) for item in page], "next": cursor})


class NextView(Endpoint):
    """The item of a queue that waits longest."""

    scopes: ClassVar = {"POST": "sign"}
    refusals: ClassVar = {"POST": (409,)}

    @extend_schema(operation_id="take_next_review", request=None, responses={200: ItemDetailSerializer})
    def post(self, request: Request, queue_id: uuid.UUID) -> Response:
        """Claim the item that waits longest and that the member who made the key may judge; 409 where there is none."""
        queue = self.find(find_queue, queue_id=queue_id)
        with act_for(request) as person:
            item = verdicts.claim_next(membership=person, queue=queue)
        if item is None:
            raise ProblemError(409, "nothing waits in this queue for the member who made this key")
        logger.info("key %s: took review %s", self.key.prefix, item.pk)
        return _answer(request, item.pk)


class ItemView(Endpoint):
    """One item of a queue."""

    scopes: ClassVar = {"GET": "review"}

    @extend_schema(operation_id="get_review_item", responses=ItemDetailSerializer)
    def get(self, request: Request, item_id: uuid.UUID) -> Response:
        """The item with the verdicts that anybody may know: of two reviewers nothing before both have spoken."""
        return _answer(request, item_id)


class LeaseView(Endpoint):
    """A claim on an item: one person at a time, for half an hour."""

    scopes: ClassVar = {"POST": "sign", "PUT": "sign", "DELETE": "sign"}
    refusals: ClassVar = {"POST": (409,), "PUT": (409,), "DELETE": (409,)}

    @extend_schema(operation_id="take_review", request=None, responses={200: ItemDetailSerializer})
    def post(self, request: Request, item_id: uuid.UUID) -> Response:
        """Claim it for half an hour, in the name of the member who made the key; 409 where another person does."""
        return _lease(request, item_id, verdicts.claim)

    @extend_schema(operation_id="hold_review", request=None, responses={200: ItemDetailSerializer})
    def put(self, request: Request, item_id: uuid.UUID) -> Response:
        """Hold it for another half hour from now on; 409 where one does not hold it any more."""
        return _lease(request, item_id, verdicts.renew)

    @extend_schema(operation_id="give_review_back", request=None, responses={200: ItemDetailSerializer})
    def delete(self, request: Request, item_id: uuid.UUID) -> Response:
        """Give it back, so that anybody may take it; 409 where one does not hold it any more."""
        return _lease(request, item_id, verdicts.release)


class VerdictView(Endpoint):
    """What the person who made the key says of an item."""

    scopes: ClassVar = {"POST": "sign", "DELETE": "sign"}
    refusals: ClassVar = {"POST": ACT_REFUSALS, "DELETE": (409,)}

    @extend_schema(operation_id="give_verdict", request=_VERDICT.schema, responses={201: GivenSerializer})
    def post(self, request: Request, item_id: uuid.UUID) -> Response:
        """Give a verdict on an item that one holds; on a disputed one it decides.

        409 where one does not hold it, has spoken, or the conversation has changed since it was read.
        """
        item, said = _find_item(request, item_id), dict(_VERDICT.read(request))
        seen = _read_digest(said.pop("seen"))
        with act_for(request) as person:
            review = verdicts.judge_item(membership=person, item=item, seen=seen, **said)
        logger.info("key %s: gave verdict %s in review %s", self.key.prefix, review.pk, item.pk)
        return Response(show_given(review, _find_item(request, item_id)), status=201)

    @extend_schema(operation_id="withdraw_verdict", request=None, responses={200: ItemDetailSerializer})
    def delete(self, request: Request, item_id: uuid.UUID) -> Response:
        """Take one's verdict back as long as the other reviewer has not spoken. It is kept, as withdrawn."""
        return _lease(request, item_id, verdicts.withdraw_verdict)


def _lease(request: Request, item_id: uuid.UUID, act: Any) -> Response:
    item = _find_item(request, item_id)
    with act_for(request) as person:
        act(membership=person, item=item)
    logger.info("key %s: %s review %s", caller_of(request).prefix, act.__name__, item.pk)
    return _answer(request, item_id)


def _read_digest(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        allowed = "the settled_digest of the item, in hexadecimal"
        raise ProblemError(422, f"seen is {allowed}", member="seen", allowed=allowed) from error


def _find_item(request: Request, item_id: uuid.UUID) -> ReviewItem:
    return or_404(find_item(workspace=caller_of(request).workspace, item_id=item_id))


def _answer(request: Request, item_id: uuid.UUID) -> Response:
    return Response(show_whole_item(_find_item(request, item_id)))
