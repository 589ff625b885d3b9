"""Reviews, to read: the queues with their progress, the items of one, and an item with the verdicts on it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.audit.models import Review, ReviewItem, ReviewQueue
from inspector.audit.reviews.bindings import KINDS
from inspector.audit.reviews.listing import (
    DISPUTED,
    DONE,
    OPEN,
    SECOND,
    QueueCount,
    find_item,
    find_queue,
    list_items,
    list_queues,
)
from inspector.audit.reviews.standings import Standing, find_standings, list_told_reviews
from inspector.search.cursors import CursorError, read_cursor, write_cursor

from .authentication import caller_of
from .endpoints import Endpoint
from .messages import CURSOR, LIMIT
from .parameters import Choice
from .problems import ProblemError

STANDINGS: Final = ("holds", "stale", "unknown")


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
    settled = serializers.IntegerField(help_text="items that are signed off")
    oldest = serializers.DateTimeField(allow_null=True, help_text="since when the oldest open one waits")


class QueuesSerializer(serializers.Serializer[Any]):
    """The queues of the workspace, open ones first."""

    results = QueueSerializer(many=True)


class ItemSerializer(serializers.Serializer[Any]):
    """A conversation in a queue."""

    id = serializers.UUIDField()
    queue = serializers.UUIDField()
    conversation = serializers.UUIDField()
    state = serializers.ChoiceField(choices=ReviewItem.State.values)
    needed = serializers.IntegerField(help_text="how many have to speak")
    why = serializers.CharField(allow_blank=True, help_text="why it is in the queue")
    added_at = serializers.DateTimeField()
    holder = serializers.CharField(allow_null=True, help_text="who holds it now")
    held_until = serializers.DateTimeField(allow_null=True)
    verdict = serializers.ChoiceField(
        choices=Review.Verdict.values, allow_null=True, help_text="null until it is signed off, and while it is hidden"
    )
    ended_at = serializers.DateTimeField(allow_null=True)


class ItemPageSerializer(serializers.Serializer[Any]):
    """Items, those that wait longest first, signed-off ones newest first; `next` is the cursor of the page after."""

    results = ItemSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class AnswerSerializer(serializers.Serializer[Any]):
    """What was said of a criterion of the rubric."""

    criterion = serializers.CharField()
    answer = serializers.ChoiceField(choices=Review.Answer.values)


class ChangeSerializer(serializers.Serializer[Any]):
    """In what messages differ from what was signed."""

    kind = serializers.ChoiceField(choices=KINDS)
    count = serializers.IntegerField()


class VerdictSerializer(serializers.Serializer[Any]):
    """A verdict that may be told."""

    id = serializers.UUIDField()
    reviewer = serializers.CharField()
    verdict = serializers.ChoiceField(choices=Review.Verdict.values)
    comment = serializers.CharField(allow_blank=True)
    is_adjudication = serializers.BooleanField(help_text="it decided between two that differ")
    answers = AnswerSerializer(many=True)
    rubric = serializers.IntegerField(allow_null=True, help_text="the version of the rubric that was answered")
    at = serializers.DateTimeField()
    messages = serializers.IntegerField(help_text="how many messages were seen")
    digest = serializers.CharField(allow_null=True, help_text="what it is bound to; docs/reviews.md says over what")
    standing = serializers.ChoiceField(
        choices=STANDINGS, help_text="unknown: settled anew, and not compared yet with what was seen"
    )
    changes = ChangeSerializer(many=True, help_text="in what it is stale")


class ItemDetailSerializer(ItemSerializer):
    """An item with the verdicts on it that may be told."""

    verdicts = VerdictSerializer(many=True, help_text="the first first; none before both of two have spoken")


class QueuesView(Endpoint):
    """The queues of reviews."""

    scopes: ClassVar = {"GET": "review"}

    @extend_schema(operation_id="list_review_queues", responses=QueuesSerializer)
    def get(self, request: Request) -> Response:
        """All of them, with how far each is."""
        counts = list_queues(workspace=caller_of(request).workspace)
        return Response({"results": [_show_queue(count) for count in counts]})


class ItemsView(Endpoint):
    """The items of a queue."""

    scopes: ClassVar = {"GET": "review"}
    parameters: ClassVar = {
        "GET": (
            CURSOR,
            LIMIT,
            Choice(
                name="state",
                about="which: those that are open, need a second reviewer, are disputed, or done",
                choices=[OPEN, SECOND, DISPUTED, DONE],
                default=OPEN,
            ),
        )
    }

    @extend_schema(operation_id="list_review_items", responses=ItemPageSerializer)
    def get(self, request: Request, queue_id: uuid.UUID) -> Response:
        """A page of its items."""
        workspace, limit, show = caller_of(request).workspace, self.given["limit"], self.given["state"]
        queue = find_queue(workspace=workspace, queue_id=queue_id)
        if queue is None:
            raise NotFound
        try:
            after = read_cursor(self.given["cursor"], workspace.pk)
        except CursorError as error:
            raise ProblemError(400, str(error), parameter="cursor") from error
        found = list_items(queue=queue, show=show, reader=None, after=after, limit=limit + 1)
        page = found[:limit]
        place = None
        if len(found) > limit:
            last = page[-1]
            place = write_cursor((last.ended_at or last.added_at, last.pk), workspace.pk)
        return Response({"results": [_show_item(item) for item in page], "next": place})


class ItemView(Endpoint):
    """One item of a queue."""

    scopes: ClassVar = {"GET": "review"}

    @extend_schema(operation_id="get_review_item", responses=ItemDetailSerializer)
    def get(self, request: Request, item_id: uuid.UUID) -> Response:
        """The item with the verdicts that anybody may know: of two reviewers nothing before both have spoken."""
        item = find_item(workspace=caller_of(request).workspace, item_id=item_id)
        if item is None:
            raise NotFound
        reviews = list_told_reviews(item=item)
        standings = find_standings(reviews=reviews, conversation=item.conversation, is_compared=True)
        verdicts = [_show_verdict(review, standings[review.pk]) for review in reviews]
        return Response({**_show_item(item), "verdicts": verdicts})


def _show_queue(count: QueueCount) -> Mapping[str, Any]:
    queue = count.queue
    return {
        "id": queue.pk,
        "name": queue.name,
        "about": queue.about,
        "reviewers": queue.reviewers,
        "source": queue.source,
        "is_standing": queue.is_standing,
        "is_closed": queue.closed_at is not None,
        "open": count.open,
        "settled": count.settled,
        "oldest": count.oldest,
    }


def _show_item(item: ReviewItem) -> Mapping[str, Any]:
    is_told = not vars(item)["is_hidden"]
    return {
        "id": item.pk,
        "queue": item.queue_id,
        "conversation": item.conversation_id,
        "state": item.state,
        "needed": item.needed,
        "why": item.why,
        "added_at": item.added_at,
        "holder": item.holder.get_username() if item.holder and item.is_held else None,
        "held_until": item.held_until if item.is_held else None,
        "verdict": item.verdict or None if is_told else None,
        "ended_at": item.ended_at,
    }


def _show_verdict(review: Review, standing: Standing) -> Mapping[str, Any]:
    criteria = review.rubric.criteria if review.rubric else []
    return {
        "id": review.pk,
        "reviewer": review.reviewer.get_username(),
        "verdict": review.verdict,
        "comment": review.comment,
        "is_adjudication": review.is_adjudication,
        "answers": [
            {"criterion": criterion, "answer": answer}
            for criterion, answer in zip(criteria, review.answers, strict=True)
        ],
        "rubric": review.rubric.number if review.rubric else None,
        "at": review.created_at,
        "messages": review.seen_messages,
        "digest": bytes(review.binding.digest).hex() if review.binding else None,
        "standing": "stale" if standing.is_stale else "holds" if standing.is_known else "unknown",
        "changes": [{"kind": kind, "count": change.count} for kind, change in standing.changes.items()],
    }
