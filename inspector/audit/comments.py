"""Comments are written about a span, answered, resolved, opened again and taken back, and nothing is edited; and their
reads: those on a message with all that happened to them, their numbers, and what may be shown.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Prefetch, Q

from inspector.accounts.models import Membership, Workspace
from inspector.database import make_storable, take_page
from inspector.intake.readings import mask_layers
from inspector.intake.selectors import read_source
from inspector.opening import find_opened_ids
from inspector.threads.dependencies import DECODER_VERSION
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import unfold
from inspector.trail.services import Thing, record_deed

from .models.reviews import Comment, CommentTurn

MAX_WORDS_LENGTH: Final = 5000
MAX_QUOTED: Final = 10_000
# A longer record is not unfolded to find out what of it is masked: see `is_delicate`.
MAX_UNFOLDED_BYTES: Final = 2_000_000
_TURNS: Final = {
    CommentTurn.Kind.RESOLVED: (Comment.State.OPEN, Comment.State.RESOLVED),
    CommentTurn.Kind.REOPENED: (Comment.State.RESOLVED, Comment.State.OPEN),
}

_DEEDS: Final = {
    CommentTurn.Kind.RESOLVED: "comment.resolved",
    CommentTurn.Kind.REOPENED: "comment.reopened",
}


@transaction.atomic
def write_comment(*, membership: Membership, message: Message, start: int, end: int, words: str) -> Comment:
    """A comment on the characters [start, end) of the text of a message's record.

    Args:
        membership: who writes; an owner or an auditor.
        message: with its record.
        start, end: positions in characters of the raw text.
        words: up to `MAX_WORDS_LENGTH` characters.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: for characters that the record has not, for too many of them, or without words.
    """
    membership.require_auditor(message.workspace_id, "comments")
    wire = message.record.wire_text
    if not 0 <= start < end <= len(wire):
        raise ValidationError(
            {"start": f"the record has the characters 0 to {len(wire):,}: choose from a lower one to a higher one"}
        )
    if end - start > MAX_QUOTED:
        raise ValidationError({"end": f"a comment is about at most {MAX_QUOTED:,} characters: choose fewer"})
    digest = hashlib.sha256()
    for piece in read_source(record=message.record):
        digest.update(piece)
    comment = Comment.objects.create(
        workspace_id=message.workspace_id,
        record_id=message.record_id,
        part=message.part,
        start=start,
        end=end,
        quoted=wire[start:end].encode("utf-8", "surrogatepass"),
        source_sha256=digest.digest(),
        english_sha256=digest_english(message),
        decoder=DECODER_VERSION,
        author=membership.user,
        words=_check_words(words),
        is_restricted=is_delicate(message, start, end),
    )
    _record("comment.written", membership, comment)
    return comment


@transaction.atomic
def reply(*, membership: Membership, comment: Comment, message: Message | None, words: str) -> CommentTurn:
    """An answer to a comment that was not taken back.

    Args:
        message: what the comment is about, as it is read now; None where nothing is read there any more.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: without words, or where the comment was taken back.
    """
    held = _hold(membership, comment)
    if held.state == Comment.State.WITHDRAWN:
        raise ValidationError("the comment was taken back: write another one")
    is_restricted = held.is_restricted or message is None or is_delicate(message, held.start, held.end)
    said = CommentTurn.objects.create(
        comment=held,
        kind=CommentTurn.Kind.REPLY,
        by=membership.user,
        words=_check_words(words),
        is_restricted=is_restricted,
    )
    _record("comment.answered", membership, held)
    return said


@transaction.atomic
def turn(*, membership: Membership, comment: Comment, kind: str) -> Comment:
    """Resolve a comment that is open, or open one again that was resolved; what stands so already stays.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: for another kind of turn, or for a comment that was taken back.
    """
    if kind not in _TURNS:
        raise ValidationError({"kind": "a comment is resolved or opened again"})
    before, after = _TURNS[CommentTurn.Kind(kind)]
    held = _hold(membership, comment)
    if held.state == Comment.State.WITHDRAWN:
        raise ValidationError("the comment was taken back")
    if held.state == before:
        CommentTurn.objects.create(comment=held, kind=kind, by=membership.user)
        _set(held, after)
        _record(_DEEDS[CommentTurn.Kind(kind)], membership, held)
    return held


@transaction.atomic
def withdraw(*, membership: Membership, comment: Comment, reply_id: uuid.UUID | None = None) -> Comment:
    """Take back a comment or a reply to it: that it stood there, and who took it back, stays to be seen.

    Raises:
        PermissionDenied: for everybody but who wrote it, and owners.
        ValidationError: where it has no such reply, or it was taken back before.
    """
    held = _hold(membership, comment)
    said = held.turns.filter(kind=CommentTurn.Kind.REPLY, pk=reply_id).first() if reply_id else None
    if reply_id and said is None:
        raise ValidationError({"reply": "there is no such reply"})
    author_id = said.by_id if said else held.author_id
    if not may_withdraw(membership, author_id):
        raise PermissionDenied("a comment is taken back by who wrote it, or by an owner")
    if held.turns.filter(kind=CommentTurn.Kind.WITHDRAWN, of=said).exists():
        raise ValidationError("it was taken back before")
    CommentTurn.objects.create(comment=held, kind=CommentTurn.Kind.WITHDRAWN, by=membership.user, of=said)
    if said is None:
        _set(held, Comment.State.WITHDRAWN)
    _record("comment.withdrawn", membership, held)
    return held


def may_withdraw(membership: Membership, author_id: int) -> bool:
    """Whether a member may take back what this person wrote."""
    return membership.is_owner or (membership.is_auditor and membership.user.pk == author_id)


def is_delicate(message: Message, start: int, end: int) -> bool:
    """Whether who comments these characters may have seen what others may not: a secret, or what a key has opened."""
    if message.is_sealed and find_opened_ids(messages=[message]):
        return True
    if len(message.record.source) > MAX_UNFOLDED_BYTES:
        return True
    reading = unfold(message=message)
    return mask_layers(reading)[0][start:end] != reading.wire[start:end]


def digest_english(message: Message) -> bytes:
    """The digest of the sentence that a message is told as, without keys."""
    return hashlib.sha256(message.english.encode("utf-8", "surrogatepass")).digest()


def _record(code: str, membership: Membership, comment: Comment) -> None:
    """What was written stands in no deed: it may be about what others must not see."""
    record_deed(
        code,
        workspace_id=comment.workspace_id,
        by=membership,
        on=Thing("comment", comment.pk, f"characters {comment.start}-{comment.end}"),
        about=[comment.record_id],
    )


def _hold(membership: Membership, comment: Comment) -> Comment:
    membership.require_auditor(comment.workspace_id, "comments")
    return Comment.objects.select_for_update(no_key=True).get(pk=comment.pk)


def _set(comment: Comment, state: str) -> None:
    comment.state = state
    comment.save(update_fields=["state"])


def _check_words(words: str) -> str:
    words = make_storable(words.strip())
    if not words:
        raise ValidationError({"words": "write what there is to say about these characters"})
    if len(words) > MAX_WORDS_LENGTH:
        raise ValidationError({"words": f"a comment has at most {MAX_WORDS_LENGTH:,} characters"})
    return words


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

_WITH_TURNS = Prefetch("turns", queryset=CommentTurn.objects.select_related("by"))


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
    rows = rows.filter(Q(part=message.part) | Q(part__gt=parts)).select_related("author").prefetch_related(_WITH_TURNS)
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
    rows = Comment.objects.select_related("author").prefetch_related(_WITH_TURNS)
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
