"""Comments: lists of them, one with its history, and what a key says in the name of the member who made it."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.models import Membership
from inspector.audit.comments import (
    MAX_WORDS_LENGTH,
    PlaceOnWire,
    Thread,
    find_commented,
    find_thread,
    list_comments,
    list_threads,
    reply,
    turn,
    withdraw,
    write_comment,
)
from inspector.audit.models.reviews import Comment, CommentTurn
from inspector.lookups import or_404
from inspector.threads.messages import find_message

from .authentication import ACT_REFUSALS, act_for, caller_of
from .comment_shapes import (
    CommentDetailSerializer,
    CommentPageSerializer,
    ThreadPageSerializer,
    show_comments,
    show_thread,
    show_threads,
)
from .documents import Document, Text, Whole
from .endpoints import Endpoint
from .narrowing import find_named_conversation
from .paging import CURSOR, cut_keyed, cut_page, read_place, read_row_key
from .parameters import Choice, Id, Number
from .problems import ProblemError

logger = logging.getLogger(__name__)

# The text of each is looked through for secrets on the way.
LIMIT: Final = Number(name="limit", about="rows per page", least=1, most=100, default=25)
_ON_MESSAGE: Final = "comments on a message"
_ACTS: Final = tuple(kind.value for kind in CommentTurn.Kind)
_WRITTEN: Final = Document(
    '{"start": 0, "end": 12, "words": "…"}',
    (
        Whole(name="start", is_required=True, about="the first character of the text of the record, counted from 0"),
        Whole(name="end", is_required=True, about="the one after the last"),
        Text(name="words", is_required=True, max_characters=MAX_WORDS_LENGTH),
    ),
)
_ACT: Final = Document(
    '{"act": "reply", "words": "…"} or {"act": "resolved"}',
    (
        Choice(name="act", choices=_ACTS, is_required=True, about="withdrawn takes the comment back, or a reply to it"),
        Text(name="words", max_characters=MAX_WORDS_LENGTH, about="of a reply"),
        Text(name="reply", max_characters=36, about="the id of the reply that is taken back"),
    ),
)


class CommentsView(Endpoint):
    """What people say of characters of messages."""

    scopes: ClassVar = {"GET": "review"}
    parameters: ClassVar = {
        "GET": (
            CURSOR,
            LIMIT,
            Choice(name="state", about="filter by state", choices=Comment.State.values, default=""),
            Id(name="conversation", about="filter by conversation"),
        )
    }

    @extend_schema(operation_id="list_comments", responses=CommentPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of the comments of the workspace."""
        key = self.key
        conversation = find_named_conversation(key.workspace, self.given["conversation"])
        found = list_comments(
            workspace=key.workspace,
            state=self.given["state"],
            conversation=conversation,
            after=read_place(self.given, key.workspace),
            limit=self.given["limit"] + 1,
        )
        page, cursor = cut_page(found, self.given, key.workspace, lambda comment: (comment.created_at, comment.pk))
        return Response({"results": show_comments(page, key), "next": cursor})


class MessageCommentsView(Endpoint):
    """What people say of characters of one message."""

    scopes: ClassVar = {"GET": "review", "POST": "review"}
    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}
    refusals: ClassVar = {"GET": (409, 410), "POST": ACT_REFUSALS}

    @extend_schema(operation_id="list_message_comments", responses=ThreadPageSerializer)
    def get(self, request: Request, message_id: uuid.UUID) -> Response:
        """A page of them, each with all that happened to it."""
        key, message = self.key, self.find(find_message, message_id=message_id)
        given = read_row_key(self.given, key.workspace, of=_ON_MESSAGE)
        found = list_threads(message=message, after=_read_key(given), limit=self.given["limit"] + 1)
        page, cursor = cut_keyed(found, self.given, key.workspace, _write_key, of=_ON_MESSAGE)
        return Response({"results": show_threads(page, message, key), "next": cursor})

    @extend_schema(operation_id="write_comment", request=_WRITTEN.schema, responses={201: CommentDetailSerializer})
    def post(self, request: Request, message_id: uuid.UUID) -> Response:
        """Comment the characters from `start` up to `end`, in the name of the member who made the key."""
        key, message = self.key, self.find(find_message, message_id=message_id)
        said = _WRITTEN.read(request)
        with act_for(request) as person:
            comment = write_comment(membership=person, message=message, **said)
        logger.info("key %s: wrote comment %s", key.prefix, comment.pk)
        return _answer(request, comment.pk, status=201)


class CommentView(Endpoint):
    """One comment."""

    scopes: ClassVar = {"GET": "review"}
    refusals: ClassVar = {"GET": (409, 410)}

    @extend_schema(operation_id="get_comment", responses=CommentDetailSerializer)
    def get(self, request: Request, comment_id: uuid.UUID) -> Response:
        """The comment with all that happened to it, also when it was taken back."""
        return _answer(request, comment_id)


class CommentActsView(Endpoint):
    """An action on a comment."""

    scopes: ClassVar = {"POST": "review"}
    refusals: ClassVar = {"POST": ACT_REFUSALS}

    @extend_schema(operation_id="act_on_comment", request=_ACT.schema, responses={201: CommentDetailSerializer})
    def post(self, request: Request, comment_id: uuid.UUID) -> Response:
        """Answer it, resolve it, open it again, or withdraw words, in the name of the member who made the key."""
        comment, said = _find(request, comment_id).comment, _ACT.read(request)
        kind = said["act"]
        with act_for(request) as person:
            if kind == CommentTurn.Kind.REPLY:
                _reply(person, comment, said["words"])
            elif kind == CommentTurn.Kind.WITHDRAWN:
                withdraw(membership=person, comment=comment, reply_id=_read_reply(said["reply"]))
            else:
                turn(membership=person, comment=comment, kind=kind)
        logger.info("key %s: comment %s: %s", self.key.prefix, comment.pk, kind)
        return _answer(request, comment_id, status=201)


def _reply(person: Membership, comment: Comment, words: str) -> None:
    commented = find_commented([comment]).get(comment.pk)
    message = find_message(workspace=person.workspace, message_id=commented.pk) if commented else None
    reply(membership=person, comment=comment, message=message, words=words)


def _read_reply(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text) if text else None
    except ValueError:
        raise ProblemError(422, "there is no such reply", member="reply", allowed="the id of a reply") from None


def _read_key(key: list[Any] | None) -> PlaceOnWire | None:
    if key is None:
        return None
    start, end, at, pk = key
    return start, end, datetime.fromisoformat(at), uuid.UUID(pk)


def _write_key(thread: Thread) -> list[str | int | bool]:
    said = thread.comment
    return [said.start, said.end, said.created_at.isoformat(), str(said.pk)]


def _find(request: Request, comment_id: uuid.UUID) -> Thread:
    return or_404(find_thread(workspace=caller_of(request).workspace, comment_id=comment_id))


def _answer(request: Request, comment_id: uuid.UUID, *, status: int = 200) -> Response:
    return Response(show_thread(_find(request, comment_id), caller_of(request)), status=status)
