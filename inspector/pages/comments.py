"""Comments: beside the characters they are about, without what their reader may not see; writing one, what is done
about it, its address, and the list of a workspace's.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dialects import Reading
from inspector.accounts.models import Membership
from inspector.audit.comments import (
    MAX_QUOTED,
    MAX_WORDS_LENGTH,
    OTHER_BYTES,
    TOO_LARGE,
    Quote,
    Thread,
    digest_english,
    find_comment,
    find_commented,
    is_open_to_all,
    list_comments,
    list_threads,
    may_withdraw,
    quote_of,
    reply,
    turn,
    withdraw,
    write_comment,
)
from inspector.audit.models.reviews import Comment, CommentTurn
from inspector.database import or_404
from inspector.intake.readings import mask_layers
from inspector.search.selectors import Place
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import find_conversation, find_message, has_record, load_records, unfold

from .lists import list_page
from .shell import attempt, parse_id, read_id, render_page, require_auditor, within_workspace
from .shown.fields import MAX_SHOWN_RECORD_BYTES, find_on_wire, write_offsets
from .shown.findings import title_conversation
from .shown.markup import Span, name_spans, shorten_name
from .shown.told import find_openings_of, shorten

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
        "first": _say(thread, comment, membership, quote),
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
    return _say(thread, turn, membership, quote)


def _say(thread: Thread, said: Comment | CommentTurn, membership: Membership, quote: Quote) -> dict[str, Any]:
    """The words of a comment or of a reply, as far as this reader may see them."""
    by, at = (said.by, said.at) if isinstance(said, CommentTurn) else (said.author, said.created_at)
    reply_id = said.pk if isinstance(said, CommentTurn) else None
    taken_back = thread.withdrawals.get(reply_id)
    may_see = may_see_words(membership, quote, is_restricted=said.is_restricted)
    # What was taken back is read by those who may have to judge it.
    may_see = may_see and (membership.is_auditor or taken_back is None)
    return {
        "by": by.get_username(),
        "at": at,
        "words": said.words if may_see else None,
        "is_restricted": said.is_restricted or quote.is_masked,
        "taken_back": taken_back.by.get_username() if taken_back else "",
        "taken_back_at": taken_back.at if taken_back else None,
        "reply_id": reply_id,
        "may_withdraw": taken_back is None and may_withdraw(membership, by.pk),
    }


PAGE_ROWS: Final = 25

MAX_LINE_LENGTH: Final = 240

ALL: Final = "all"

STATES: Final = {
    Comment.State.OPEN.value: "open",
    Comment.State.RESOLVED.value: "resolved",
    Comment.State.WITHDRAWN.value: "withdrawn",
    ALL: "all",
}

HIDDEN: Final = "It is hidden with its message, whose delivery was withdrawn."


@within_workspace("GET")
def show_comments(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The comments of the workspace, or of one conversation, newest first, by keyset; those that are open at first."""
    workspace = membership.workspace
    state = request.GET.get("state", "")
    state = state if state in STATES else Comment.State.OPEN.value
    wanted = read_id(request, "conversation")
    conversation = or_404(find_conversation(workspace=workspace, conversation_id=wanted)) if wanted else None
    narrowed: dict[str, Any] = {"state": "" if state == ALL else state, "conversation": conversation}

    def find(before: Place | None, limit: int) -> list[Comment]:
        return list_comments(workspace=workspace, after=before, limit=limit, **narrowed)

    page, pages = list_page(request, membership, find, PAGE_ROWS, "created_at")
    context = {
        "rows": _make_rows(page, membership),
        "state": state,
        "states": STATES.items(),
        "conversation": conversation,
        "conversation_title": _title_one(conversation) if conversation else "",
        **pages,
    }
    return render_page(request, membership, "comments/comments.html", context, section="comments")


def _title_one(conversation: Conversation) -> str:
    return title_conversation(conversation, find_openings_of([conversation]))


def _make_rows(comments: Sequence[Comment], membership: Membership) -> list[dict[str, Any]]:
    messages = find_commented(comments)
    load_records(messages=list(messages.values()), max_bytes=MAX_SHOWN_RECORD_BYTES)
    openings = find_openings_of(message.conversation for message in messages.values())
    return [_make_line(comment, messages.get(comment.pk), openings, membership) for comment in comments]


def _make_line(
    comment: Comment, message: Message | None, openings: dict[uuid.UUID, str], membership: Membership
) -> dict[str, Any]:
    slug = membership.workspace.slug
    row = {
        "comment": comment,
        "offsets": write_offsets((0, comment.start, comment.end)),
    }
    if message is None:
        return {**row, "url": "", "quote": None, "words": HIDDEN, "is_withheld": True, "conversation_title": ""}
    quote = _quote(comment, message)
    may_see = may_see_words(membership, quote, is_restricted=comment.is_restricted)
    may_see = may_see and (membership.is_auditor or comment.state != Comment.State.WITHDRAWN)
    return {
        **row,
        "url": link_comment(comment, message, slug),
        "quote": quote,
        "words": shorten_name(shorten(comment.words, MAX_LINE_LENGTH), 2 * MAX_LINE_LENGTH) if may_see else "",
        "is_withheld": not may_see,
        "conversation_title": title_conversation(message.conversation, openings),
        "conversation": message.conversation,
    }


def _quote(comment: Comment, message: Message) -> Quote:
    if not has_record(message):
        return Quote(text="", more=0, is_masked=True, why_none=TOO_LARGE)
    return quote_of(comment, message.record.wire_text, mask_layers(unfold(message=message))[0])


@within_workspace("POST", of=find_message)
def write(request: HttpRequest, membership: Membership, message: Message) -> HttpResponse:
    """A comment on characters of a message; a refusal gives the form back as it was filled in."""
    require_auditor(membership)
    try:
        comment = write_comment(
            membership=membership,
            message=message,
            start=_read_position(request, "start"),
            end=_read_position(request, "end"),
            words=request.POST.get("words", ""),
        )
    except ValidationError as error:
        form = {
            "url": request.path,
            "start": request.POST.get("start", "")[:16],
            "end": request.POST.get("end", "")[:16],
            "length": len(message.record.wire_text),
            "longest": MAX_WORDS_LENGTH,
            "words": request.POST.get("words", ""),
        }
        context = {
            "comment_form": form,
            "error": " ".join(error.messages),
            "back": reverse("pages:message", args=[membership.workspace.slug, message.pk]),
        }
        return render_page(request, membership, "comments/refused.html", context, section="comments", status=422)
    flashes.success(request, "Your comment is kept, bound to these characters.")
    return redirect(link_comment(comment, message, membership.workspace.slug))


def _read_position(request: HttpRequest, name: str) -> int:
    text = request.POST.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise ValidationError("Say from which character to which: two numbers.")
    return int(text)


@within_workspace("GET", of=find_comment)
def show_comment(request: HttpRequest, membership: Membership, comment: Comment) -> HttpResponse:
    """The lasting address of a comment: to where it stands today, beside its message."""
    return redirect(_find_place(comment, membership))


def _find_place(comment: Comment, membership: Membership) -> str:
    slug = membership.workspace.slug
    message = find_commented([comment]).get(comment.pk)
    return link_comment(comment, message, slug) if message else f"{reverse('pages:comments', args=[slug])}?state=all"


@within_workspace("POST", of=find_comment)
def act(request: HttpRequest, membership: Membership, comment: Comment) -> HttpResponse:
    """What is done about a comment: `act` is reply, resolved, reopened or withdrawn."""
    require_auditor(membership)
    attempt(request, lambda: _act(request, membership, comment), str, refusal="Nothing was changed: ")
    return redirect(_find_place(comment, membership))


def _act(request: HttpRequest, membership: Membership, comment: Comment) -> str:
    kind = request.POST.get("act", "")
    if kind == "reply":
        commented = find_commented([comment]).get(comment.pk)
        message = find_message(workspace=membership.workspace, message_id=commented.pk) if commented else None
        reply(membership=membership, comment=comment, message=message, words=request.POST.get("words", ""))
        return "Your reply is kept."
    if kind == "withdrawn":
        withdraw(membership=membership, comment=comment, reply_id=_read_reply(request))
        return "It is withdrawn; a trace remains."
    turn(membership=membership, comment=comment, kind=kind)
    return "The comment is resolved." if kind == "resolved" else "The comment is open again."


def _read_reply(request: HttpRequest) -> uuid.UUID | None:
    text = request.POST.get("reply", "")
    reply_id = parse_id(text)
    if text and reply_id is None:
        raise ValidationError("there is no such reply")
    return reply_id
