"""Reads of comments: those on a message with all that happened to them, their numbers, and what may be shown."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, Exists, OuterRef, Prefetch, Q

from inspector.accounts.models import Workspace
from inspector.lookups import take_page
from inspector.threads.models import Conversation, Message

from ..models.comments import Comment, CommentTurn

MAX_QUOTE_LENGTH: Final = 300
TOO_LARGE: Final = "The record is too large to be looked through for secrets here, or its bytes cannot be read."
OTHER_BYTES: Final = "These are not the bytes it was written about."


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """The characters that a comment is about, its secrets as marks; `why_none` says why there are none to be seen."""

    text: str
    more: int
    is_masked: bool
    why_none: str = ""


def quote_of(comment: Comment, wire: str, masked: str | None) -> Quote:
    """What may be shown of the characters that a comment is about.

    Args:
        comment: which.
        wire: the text of its record.
        masked: that text with its secrets masked; None where it could not be looked through.
    """
    start, end = comment.start, comment.end
    if masked is None:
        return Quote(text="", more=0, is_masked=True, why_none=TOO_LARGE)
    if wire[start:end] != comment.quoted_text:
        return Quote(text="", more=0, is_masked=True, why_none=OTHER_BYTES)
    text = masked[start:end]
    return Quote(
        text=text[:MAX_QUOTE_LENGTH], more=max(0, len(text) - MAX_QUOTE_LENGTH), is_masked=text != wire[start:end]
    )


def is_open_to_all(quote: Quote, *, is_restricted: bool) -> bool:
    """Whether everybody may read what was written about these characters: who cannot see them learns nothing of it."""
    return not (is_restricted or quote.is_masked)


Key = tuple[datetime, uuid.UUID]
PlaceOnWire = tuple[int, int, datetime, uuid.UUID]
_TURNS = Prefetch("turns", queryset=CommentTurn.objects.select_related("by"))


@dataclass(frozen=True, slots=True)
class Thread:
    """A comment with its turns, and who took back what: its own withdrawal, and those of its replies by their ids."""

    comment: Comment
    turns: Sequence[CommentTurn]
    withdrawals: dict[uuid.UUID | None, CommentTurn]


def list_threads(*, message: Message, after: PlaceOnWire | None = None, limit: int = 100) -> list[Thread]:
    """The comments on a message in the order of its characters, by keyset, at most so many; two statements.

    What was written about a part that the record does not have any more stands at every part that it has.

    Args:
        after: (start, end, created_at, id) of the last one seen.
    """
    parts = getattr(message, "parts", message.part)
    rows = Comment.objects.filter(workspace=message.workspace_id, record=message.record_id)
    rows = rows.filter(Q(part=message.part) | Q(part__gt=parts)).select_related("author").prefetch_related(_TURNS)
    if after is not None:
        start, end, at, pk = after
        later = Q(created_at__gt=at) | Q(created_at=at, pk__gt=pk)
        rows = rows.filter(Q(start__gt=start) | Q(start=start) & (Q(end__gt=end) | Q(end=end) & later))
    return [make_thread(comment) for comment in rows.order_by("start", "end", "created_at", "pk")[:limit]]


def make_thread(comment: Comment) -> Thread:
    """A comment that was loaded with its turns."""
    turns = list(comment.turns.all())
    return Thread(comment, turns, {turn.of_id: turn for turn in turns if turn.kind == CommentTurn.Kind.WITHDRAWN})


def count_comments(*, conversation: Conversation) -> dict[tuple[uuid.UUID, int], int]:
    """How many comments stand open on the messages of a conversation, by the record and the part of each."""
    rows = Comment.objects.filter(
        select_here(conversation), workspace=conversation.workspace_id, state=Comment.State.OPEN
    )
    counted = rows.values("record", "part").annotate(count=Count("pk")).order_by()
    return {(row["record"], row["part"]): row["count"] for row in counted}


def select_here(conversation: Any) -> Exists:
    """Whether the message that a comment is about is shown, in the conversation, which may be that of a row outside."""
    here = Message.objects.shown().filter(record=OuterRef("record"), part=OuterRef("part"), conversation=conversation)
    return Exists(here)


def list_comments(
    *,
    workspace: Workspace,
    state: str = "",
    conversation: Conversation | None = None,
    after: Key | None = None,
    limit: int = 50,
) -> list[Comment]:
    """The comments of a workspace, newest first, by keyset, each with its author and the number of its replies.

    Args:
        state: one of `Comment.State`; empty for all.
        conversation: only those on its messages.
        after: (created_at, id) of the last one seen.
    """
    rows = Comment.objects.filter(workspace=workspace)
    if state:
        rows = rows.filter(state=state)
    if conversation is not None:
        rows = rows.filter(select_here(conversation))
    replies = Count("turns", filter=Q(turns__kind=CommentTurn.Kind.REPLY))
    rows = rows.select_related("author").annotate(replies=replies)
    return take_page(rows, "created_at", after, limit)


def find_comment(*, workspace: Workspace, comment_id: uuid.UUID) -> Comment | None:
    """The comment of that id in this workspace, or None."""
    rows = Comment.objects.select_related("author").filter(workspace=workspace, pk=comment_id)
    return rows.first()


def find_thread(*, workspace: Workspace, comment_id: uuid.UUID) -> Thread | None:
    """The comment of that id in this workspace with all that happened to it, or None; two statements."""
    rows = Comment.objects.select_related("author").prefetch_related(_TURNS)
    found = rows.filter(workspace=workspace, pk=comment_id).first()
    return make_thread(found) if found else None


def find_commented(comments: Collection[Comment]) -> dict[uuid.UUID, Message]:
    """The message that each of these comments is about, by the comment's id; one that is hidden or gone is left out.

    A part that is not there any more stands for the first that is.
    """
    by_record: dict[uuid.UUID, dict[int, Message]] = defaultdict(dict)
    rows: Any = Message.objects.shown().select_related("conversation")
    for message in rows.filter(record__in={comment.record_id for comment in comments}).defer("body", "words", "atoms"):
        by_record[message.record_id][message.part] = message
    return {
        comment.pk: parts.get(comment.part) or parts[min(parts)]
        for comment in comments
        if (parts := by_record.get(comment.record_id))
    }
