"""Comments: writing one about characters, what is done about it, its address, and the list of a workspace's."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.audit.comments import (
    MAX_WORDS_LENGTH,
    TOO_LARGE,
    Quote,
    find_comment,
    find_commented,
    list_comments,
    quote_of,
    reply,
    turn,
    withdraw,
    write_comment,
)
from inspector.audit.models.reviews import Comment
from inspector.database import or_404
from inspector.intake.readings import mask_layers
from inspector.threads.models import Message
from inspector.threads.selectors import find_conversation, find_message, has_record, load_records, unfold

from ..findings.rows import title_conversation
from ..messages.views import get_message
from ..shell import cut_page, read_id, read_place, render_page, require_auditor, turn_pages, within_workspace
from ..shown.fields import MAX_SHOWN_RECORD_BYTES, write_offsets
from ..shown.markup import shorten_name
from ..shown.told import find_openings_of, shorten
from .comment_rows import link_comment, may_see_words

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
    before = read_place(request, membership)
    found = list_comments(
        workspace=workspace,
        state="" if state == ALL else state,
        conversation=conversation,
        after=before,
        limit=PAGE_ROWS + 1,
    )
    page, last = cut_page(found, PAGE_ROWS)
    context = {
        "rows": _make_rows(page, membership),
        "state": state,
        "states": STATES.items(),
        "conversation": conversation,
        "conversation_title": title_conversation(conversation, {}) if conversation else "",
        **turn_pages(request, membership, (last.created_at, last.pk) if last else None),
    }
    return render_page(request, membership, "comments/comments.html", context, section="comments")


def _make_rows(comments: Sequence[Comment], membership: Membership) -> list[dict[str, Any]]:
    messages = find_commented(comments)
    load_records(messages=list(messages.values()), max_bytes=MAX_SHOWN_RECORD_BYTES)
    openings = find_openings_of(message.conversation for message in messages.values())
    return [_make_row(comment, messages.get(comment.pk), openings, membership) for comment in comments]


def _make_row(
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
        "conversation_id": message.conversation_id,
    }


def _quote(comment: Comment, message: Message) -> Quote:
    if not has_record(message):
        return Quote(text="", more=0, is_masked=True, why_none=TOO_LARGE)
    return quote_of(comment, message.record.wire_text, mask_layers(unfold(message=message))[0])


@within_workspace("POST")
def write(request: HttpRequest, membership: Membership, message_id: uuid.UUID) -> HttpResponse:
    """A comment on characters of a message; a refusal gives the form back as it was filled in."""
    message = get_message(membership, message_id)
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


@within_workspace("GET")
def show_comment(request: HttpRequest, membership: Membership, comment_id: uuid.UUID) -> HttpResponse:
    """The lasting address of a comment: to where it stands today, beside its message."""
    comment = get_comment(membership, comment_id)
    return redirect(_find_place(comment, membership))


def _find_place(comment: Comment, membership: Membership) -> str:
    slug = membership.workspace.slug
    message = find_commented([comment]).get(comment.pk)
    return link_comment(comment, message, slug) if message else f"{reverse('pages:comments', args=[slug])}?state=all"


@within_workspace("POST")
def act(request: HttpRequest, membership: Membership, comment_id: uuid.UUID) -> HttpResponse:
    """What is done about a comment: `act` is reply, resolved, reopened or withdrawn."""
    comment = get_comment(membership, comment_id)
    require_auditor(membership)
    try:
        words = _act(request, membership, comment)
    except ValidationError as error:
        flashes.error(request, f"Nothing was changed: {' '.join(error.messages)}.")
    else:
        flashes.success(request, words)
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
    try:
        return uuid.UUID(text) if text else None
    except ValueError as error:
        raise ValidationError("there is no such reply") from error


def get_comment(membership: Membership, comment_id: uuid.UUID) -> Comment:
    """The comment of that id in the reader's workspace. Http404 where there is none."""
    return or_404(find_comment(workspace=membership.workspace, comment_id=comment_id))
