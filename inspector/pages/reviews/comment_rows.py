"""Comments as a page shows them: beside the characters they are about, without what its reader may not see."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.urls import reverse

from dialects import Reading
from inspector.accounts.models import Membership
from inspector.audit.comments import (
    MAX_QUOTED,
    MAX_WORDS_LENGTH,
    OTHER_BYTES,
    Quote,
    Thread,
    digest_english,
    is_open_to_all,
    list_threads,
    may_withdraw,
    quote_of,
)
from inspector.audit.models.reviews import Comment, CommentTurn
from inspector.intake.readings import mask_layers
from inspector.threads.models import Message

from ..messages.selection import find_on_wire
from ..shown.fields import write_offsets
from ..shown.markup import Span, name_spans

MAX_THREADS: Final = 50
_VERBS: Final = {
    CommentTurn.Kind.RESOLVED.value: "resolved it",
    CommentTurn.Kind.REOPENED.value: "opened it again",
}


def show_threads(
    message: Message, reading: Reading | None, membership: Membership, *, sha256: str, light: Sequence[Span]
) -> dict[str, Any]:
    """The comments on a message and the form for another one, as its page takes them.

    Args:
        message: with its record.
        reading: of the record; None where that is too large.
        sha256: of the record's exact bytes, as they are now.
        light: the lit spans, which the form is about at first.
    """
    threads = list_threads(message=message, limit=MAX_THREADS + 1)
    # What is too large is not loaded, neither to be quoted nor to be counted.
    wire = message.record.wire_text if reading else ""
    masked = mask_layers(reading)[0] if reading else None
    rows = [
        _make_row(thread, membership, quote=quote_of(thread.comment, wire, masked), message=message, sha256=sha256)
        for thread in threads[:MAX_THREADS]
    ]
    return {
        "threads": rows,
        "has_more_threads": len(threads) > MAX_THREADS,
        "open_threads": sum(row["state"] == Comment.State.OPEN for row in rows),
        "comment_form": _make_form(message, reading, membership, light) if membership.is_auditor else None,
    }


def _make_form(
    message: Message, reading: Reading | None, membership: Membership, light: Sequence[Span]
) -> dict[str, Any]:
    length = len(message.record.wire_text) if reading else vars(message)["wire_bytes"]
    start, end = (find_on_wire(reading, light) if reading and light else None) or (0, min(length, MAX_QUOTED))
    return {
        "url": reverse("pages:write-comment", args=[membership.workspace.slug, message.pk]),
        "start": start,
        "end": end,
        "length": length,
        "longest": MAX_WORDS_LENGTH,
        "most": MAX_QUOTED,
    }


def may_see_words(membership: Membership, quote: Quote, *, is_restricted: bool) -> bool:
    """Whether this reader may see what was written about these characters: who cannot see them learns nothing of it."""
    return membership.is_auditor or is_open_to_all(quote, is_restricted=is_restricted)


def link_comment(comment: Comment, message: Message, slug: str) -> str:
    """The address of a comment beside its message, with its characters lit."""
    address = reverse("pages:message", args=[slug, message.pk])
    return f"{address}?span={name_spans([(0, comment.start, comment.end)])}#{name_anchor(comment)}"


def name_anchor(comment: Comment) -> str:
    """The name of a comment's place in the page of its message."""
    return f"comment-{comment.pk.hex}"


def _make_row(thread: Thread, membership: Membership, *, quote: Quote, message: Message, sha256: str) -> dict[str, Any]:
    comment = thread.comment
    slug = membership.workspace.slug
    doubts = []
    if bytes(comment.source_sha256).hex() != sha256:
        doubts.append(OTHER_BYTES)
    if comment.part != message.part:
        doubts.append(f"It was written about part {comment.part} of this record, which is read as other messages now.")
    is_mine = membership.is_auditor
    may_answer = is_mine and comment.state != Comment.State.WITHDRAWN
    turns = {Comment.State.OPEN.value: "resolved", Comment.State.RESOLVED.value: "reopened"}
    return {
        "id": comment.pk,
        "anchor": name_anchor(comment),
        "url": link_comment(comment, message, slug),
        "spans": ((0, comment.start, comment.end),),
        "offsets": write_offsets((0, comment.start, comment.end)),
        "quote": quote,
        "state": comment.state,
        "first": _say(
            thread,
            membership,
            quote,
            by=comment.author,
            at=comment.created_at,
            words=comment.words,
            is_restricted=comment.is_restricted,
            reply_id=None,
        ),
        # A withdrawal is told where the words were.
        "steps": [
            _make_step(thread, turn, membership, quote)
            for turn in thread.turns
            if turn.kind != CommentTurn.Kind.WITHDRAWN
        ],
        "doubts": doubts,
        "is_told_otherwise": bytes(comment.english_sha256) != digest_english(message),
        "decoder": comment.decoder,
        "acts_url": reverse("pages:act-on-comment", args=[slug, comment.pk]),
        "turn": turns.get(comment.state, "") if may_answer else "",
        "may_reply": may_answer,
    }


def _make_step(thread: Thread, turn: CommentTurn, membership: Membership, quote: Quote) -> dict[str, Any]:
    if turn.kind in _VERBS:
        return {"by": turn.by.get_username(), "at": turn.at, "verb": _VERBS[turn.kind]}
    return _say(
        thread,
        membership,
        quote,
        by=turn.by,
        at=turn.at,
        words=turn.words,
        is_restricted=turn.is_restricted,
        reply_id=turn.pk,
    )


def _say(
    thread: Thread,
    membership: Membership,
    quote: Quote,
    *,
    by: Any,
    at: datetime,
    words: str,
    is_restricted: bool,
    reply_id: uuid.UUID | None,
) -> dict[str, Any]:
    taken_back = thread.withdrawals.get(reply_id)
    may_see = may_see_words(membership, quote, is_restricted=is_restricted)
    # What was taken back is read by those who may have to judge it.
    may_see = may_see and (membership.is_auditor or taken_back is None)
    return {
        "by": by.get_username(),
        "at": at,
        "words": words if may_see else None,
        "is_restricted": is_restricted or quote.is_masked,
        "taken_back": taken_back.by.get_username() if taken_back else "",
        "taken_back_at": taken_back.at if taken_back else None,
        "reply_id": reply_id,
        "may_withdraw": taken_back is None and may_withdraw(membership, by.pk),
    }
