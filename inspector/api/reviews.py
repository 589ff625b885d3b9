"""Reviews: queues with their progress, their items, and acts of a key in the name of the member who made it."""

from __future__ import annotations

import logging
import uuid
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.audit.models import Review, ReviewItem
from inspector.audit.reviews import verdicts
from inspector.audit.reviews.queues import MAX_CRITERIA
from inspector.audit.reviews.selectors import (
    DISPUTED,
    DONE,
    OPEN,
    SECOND,
    STALE,
    count_queue,
    find_item,
    find_queue,
    list_items,
    walk_queues,
)
from inspector.audit.reviews.verdicts import MAX_COMMENT_LENGTH
from inspector.lookups import or_404

from .authentication import ACT_REFUSALS, act_for, caller_of
from .documents import Document, Text, Texts
from .endpoints import Endpoint
from .paging import CURSOR, LIMIT, cut_page, read_place
from .parameters import Choice
from .problems import ProblemError
from .review_shapes import (
    GivenSerializer,
    ItemDetailSerializer,
    ItemPageSerializer,
    QueueDetailSerializer,
    QueuePageSerializer,
    show_given,
    show_item,
    show_queue,
    show_whole_item,
    show_whole_queue,
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
