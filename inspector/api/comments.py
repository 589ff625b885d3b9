"""Comments: lists of them, one with its history, and what a key says in the name of the member who made it; in the
shapes of the API, which say what the pages say of each, without what a program may not see.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.models import ApiKey, Membership
from inspector.audit.comments import (
    MAX_WORDS_LENGTH,
    TOO_LARGE,
    PlaceOnWire,
    Quote,
    Thread,
    digest_english,
    find_commented,
    find_thread,
    is_open_to_all,
    list_comments,
    list_threads,
    quote_of,
    reply,
    turn,
    withdraw,
    write_comment,
)
from inspector.audit.models.reviews import Comment, CommentTurn
from inspector.database import or_404
from inspector.intake.readings import MAX_BYTES_LOOKED_THROUGH, mask_layers
from inspector.intake.selectors import has_bytes
from inspector.threads.models import Message
from inspector.threads.selectors import find_message, has_record, load_records, unfold

from .authentication import ACT_REFUSALS, act_for, caller_of
from .bodies import Document, Text, Whole
from .endpoints import Endpoint
from .masking import digest_source, may_see_secrets
from .paging import CURSOR, cut_keyed, cut_page, page_of, read_place, read_row_key
from .parameters import Choice, Id, Number, find_named_conversation
from .problems import ProblemError
from .shapes import show

# A list does not look through longer records.
MAX_LISTED_BYTES: Final = 128 * 1024
STEPS: Final = (CommentTurn.Kind.REPLY, CommentTurn.Kind.RESOLVED, CommentTurn.Kind.REOPENED)


class CommentSerializer(serializers.Serializer[Any]):
    """A comment on characters of a message; while its message is withdrawn, neither its place nor its words."""

    id = serializers.UUIDField()
    conversation = serializers.UUIDField(allow_null=True)
    message = serializers.UUIDField(allow_null=True)
    start = serializers.IntegerField(help_text="its first character in the text of the record, counted from 0")
    end = serializers.IntegerField(help_text="the one after its last")
    quoted = serializers.CharField(
        allow_null=True,
        help_text="the first 300 of these characters, secrets masked; null in a list for a record over 128 KiB",
    )
    quoted_more = serializers.IntegerField(help_text="how many characters follow those")
    author = serializers.CharField(source="author.username")
    at = serializers.DateTimeField(source="created_at")
    state = serializers.ChoiceField(choices=Comment.State.values)
    words = serializers.CharField(allow_null=True, help_text="null where they were taken back or are withheld")
    is_withheld = serializers.BooleanField(help_text="the words are about what this key may not see")
    replies = serializers.IntegerField(help_text="how many answers there are, those taken back too")


CommentPageSerializer: Final = page_of("Comment", CommentSerializer, "Comments, newest first")


class TakenBackSerializer(serializers.Serializer[Any]):
    """That words were taken back."""

    by = serializers.CharField(source="by.username")
    at = serializers.DateTimeField()


class CommentStepSerializer(serializers.Serializer[Any]):
    """What somebody did about a comment."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=STEPS)
    by = serializers.CharField(source="by.username")
    at = serializers.DateTimeField()
    words = serializers.CharField(allow_null=True, help_text="of an answer; null where taken back or withheld")
    is_withheld = serializers.BooleanField()
    taken_back = TakenBackSerializer(allow_null=True)


class CommentDetailSerializer(CommentSerializer):
    """A comment with all that happened to it, and whether its message is still what it was written about."""

    part = serializers.IntegerField(help_text="the message of the record that it was written about")
    decoder = serializers.CharField(help_text="by which it was read then")
    source_sha256 = serializers.CharField(help_text="of the exact bytes that it was written about")
    is_other_bytes = serializers.BooleanField(help_text="the record has other bytes now")
    is_told_otherwise = serializers.BooleanField(help_text="the message has another sentence now")
    taken_back = TakenBackSerializer(allow_null=True)
    steps = CommentStepSerializer(many=True, help_text="the first first")


ThreadPageSerializer: Final = page_of(
    "Thread",
    CommentDetailSerializer,
    "The comments on a message in the order of its characters",
)


def show_comments(comments: Sequence[Comment], key: ApiKey) -> list[dict[str, Any]]:
    """Comments as a list shows them, in two statements: each was loaded with its author and its number of replies."""
    messages = find_commented(comments)
    load_records(messages=list(messages.values()), max_bytes=MAX_LISTED_BYTES)
    masked: dict[tuple[uuid.UUID, int], str] = {}
    rows = []
    for comment in comments:
        message = messages.get(comment.pk)
        quote = _quote(comment, message, masked, is_list=True)
        rows.append(_show(comment, message, quote, key, replies=vars(comment)["replies"]))
    return rows


def show_threads(threads: Sequence[Thread], message: Message, key: ApiKey) -> list[dict[str, Any]]:
    """The comments on a message, which has its record, with all that happened to them."""
    masked: dict[tuple[uuid.UUID, int], str] = {}
    digest = digest_source(message.record) if threads else ""
    return [_show_thread(thread, message, _quote(thread.comment, message, masked), digest, key) for thread in threads]


def show_thread(thread: Thread, key: ApiKey) -> dict[str, Any]:
    """A comment with all that happened to it, wherever its message is now."""
    message = find_commented([thread.comment]).get(thread.comment.pk)
    digest = digest_source(message.record) if message else ""
    return _show_thread(thread, message, _quote(thread.comment, message, {}), digest, key)


def _quote(
    comment: Comment, message: Message | None, masked: dict[tuple[uuid.UUID, int], str], *, is_list: bool = False
) -> Quote | None:
    """What may be shown of the characters of a comment; None where its message is hidden.

    `masked` keeps what was worked out of a message, for the next comment on it.
    """
    if message is None:
        return None
    if is_list and not has_record(message):
        return Quote(text="", more=0, is_masked=True, why_none=TOO_LARGE)
    if not has_bytes(message.record) or len(message.record.source) > MAX_BYTES_LOOKED_THROUGH:
        return Quote(text="", more=0, is_masked=True, why_none=TOO_LARGE)
    place = (message.record_id, message.part)
    if place not in masked:
        masked[place] = mask_layers(unfold(message=message))[0]
    return quote_of(comment, message.record.wire_text, masked[place])


def _may_see(key: ApiKey, quote: Quote | None, *, is_restricted: bool) -> bool:
    if quote is None:
        return False
    return may_see_secrets(key) or is_open_to_all(quote, is_restricted=is_restricted)


def _show(
    comment: Comment, message: Message | None, quote: Quote | None, key: ApiKey, *, replies: int
) -> dict[str, Any]:
    is_seen = _may_see(key, quote, is_restricted=comment.is_restricted)
    is_told = quote is not None and not quote.why_none
    return show(
        CommentSerializer,
        comment,
        conversation=message.conversation_id if message else None,
        message=message.pk if message else None,
        quoted=quote.text if quote and is_told else None,
        quoted_more=quote.more if quote and is_told else 0,
        # What was taken back is read by people who may have to judge it, and by no program.
        words=comment.words if is_seen and comment.state != Comment.State.WITHDRAWN else None,
        is_withheld=not is_seen,
        replies=replies,
    )


def _show_thread(
    thread: Thread, message: Message | None, quote: Quote | None, digest: str, key: ApiKey
) -> dict[str, Any]:
    comment = thread.comment
    replies = sum(turn.kind == CommentTurn.Kind.REPLY for turn in thread.turns)
    source_sha256 = bytes(comment.source_sha256).hex()
    is_same_sentence = message is None or bytes(comment.english_sha256) == digest_english(message)
    return {
        **_show(comment, message, quote, key, replies=replies),
        "part": comment.part,
        "decoder": comment.decoder,
        "source_sha256": source_sha256,
        "is_other_bytes": message is not None and source_sha256 != digest,
        "is_told_otherwise": not is_same_sentence,
        "taken_back": _show_withdrawal(thread.withdrawals.get(None)),
        "steps": [_show_step(turn, thread, quote, key) for turn in thread.turns if turn.kind in STEPS],
    }


def _show_step(turn: CommentTurn, thread: Thread, quote: Quote | None, key: ApiKey) -> dict[str, Any]:
    is_reply = turn.kind == CommentTurn.Kind.REPLY
    is_seen = not is_reply or _may_see(key, quote, is_restricted=turn.is_restricted)
    withdrawal = thread.withdrawals.get(turn.pk)
    return show(
        CommentStepSerializer,
        turn,
        words=turn.words if is_reply and is_seen and withdrawal is None else None,
        is_withheld=not is_seen,
        taken_back=_show_withdrawal(withdrawal),
    )


def _show_withdrawal(turn: CommentTurn | None) -> Mapping[str, Any] | None:
    return show(TakenBackSerializer, turn) if turn else None


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
