"""Conversations: the list, one with its transcript, and the verdict on it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages as flashes
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from inspector.accounts.models import Membership
from inspector.audit.models import Review
from inspector.audit.selectors import find_latest_reviews, is_current, list_reviews
from inspector.audit.services import give_verdict
from inspector.search.cursors import write_cursor
from inspector.threads.hidden import count_hidden, count_hidden_in
from inspector.threads.models import Conversation, Message
from inspector.threads.selectors import find_conversation, list_conversations, read_body, read_tree
from inspector.threads.summaries import Digest, find_openings, read_timeline, sum_up

from .agents import Cast
from .forms import ConversationFilter, VerdictForm
from .shell import read_number, read_place, render_page, within_workspace, write_query
from .told import is_named, list_notes, name_conversation, name_dialect, shorten, write_elapsed
from .transcript import make_anchor, make_rows

PAGE_ROWS = 50
WINDOW_ROWS = 100
MOST_TILES = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictLine:
    """A verdict as the page shows it; `is_outdated` where the conversation has changed since."""

    verdict: str
    reviewer: str
    created_at: datetime
    comment: str
    seen_messages: int
    is_outdated: bool


@require_GET
@within_workspace
def show_conversations(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The list of conversations, latest activity first, by keyset."""
    workspace = membership.workspace
    form = ConversationFilter(request.GET)
    filters = form.read()
    before = read_place(request, membership)
    found = list_conversations(workspace=workspace, before=before, limit=PAGE_ROWS + 1, **filters)
    page = found[:PAGE_ROWS]
    reviews = find_latest_reviews(conversation_ids=[conversation.pk for conversation in page])
    openings = find_openings(conversation_ids=[one.pk for one in page if not is_named(one)])
    cast = Cast()
    last = page[-1] if len(found) > PAGE_ROWS else None
    context = {
        "rows": [
            _make_row(conversation, cast, reviews.get(conversation.pk), workspace.slug, openings)
            for conversation in page
        ],
        "form": form,
        "is_filtered": bool(filters),
        "has_any": bool(page or filters or before),
        "hidden_count": count_hidden(workspace=workspace),
        "older_url": write_query(request, before=write_cursor((last.last_at, last.pk), workspace.pk))
        if last and last.last_at
        else None,
        "newest_url": write_query(request, before=None) if before else None,
    }
    return render_page(request, membership, "conversations/conversations.html", context, section="conversations")


def _make_row(
    conversation: Conversation, cast: Cast, review: Review | None, slug: str, openings: Mapping[uuid.UUID, str]
) -> dict[str, Any]:
    agents = conversation.agents[:MOST_TILES]
    return {
        "url": reverse("pages:conversation", args=[slug, conversation.pk]),
        "title": shorten(openings.get(conversation.pk) or name_conversation(conversation)),
        "native_id": conversation.native_id,
        "agents": cast.find_all(agents),
        "more_agents": len(conversation.agents) - len(agents),
        "dialects": ", ".join(name_dialect(dialect) for dialect in conversation.dialects),
        "state": conversation.state,
        "is_settled": conversation.is_settled,
        "last_at": conversation.last_at,
        "message_count": conversation.message_count,
        "severity": conversation.severity,
        "review": review.verdict if review else None,
        "reviewer": review.reviewer.get_username() if review else "",
    }


@require_GET
@within_workspace
def show_conversation(request: HttpRequest, membership: Membership, conversation_id: uuid.UUID) -> HttpResponse:
    """One conversation: its answers and a window of its transcript."""
    conversation = _find(membership, conversation_id)
    form = _make_verdict_form(membership, conversation)
    return _answer(request, membership, conversation, form)


@require_POST
@within_workspace
def review_conversation(request: HttpRequest, membership: Membership, conversation_id: uuid.UUID) -> HttpResponse:
    """An auditor's verdict on the conversation as it was shown."""
    conversation = _find(membership, conversation_id)
    if not membership.is_auditor:
        raise PermissionDenied
    form = VerdictForm(request.POST)
    if form.is_valid():
        try:
            give_verdict(
                membership=membership,
                conversation=conversation,
                verdict=form.cleaned_data["verdict"],
                comment=form.cleaned_data["comment"],
                seen=bytes.fromhex(form.cleaned_data["seen"]),
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            flashes.success(request, "Your verdict is kept, bound to what you saw.")
            return redirect("pages:conversation", membership.workspace.slug, conversation.pk)
    errors = [str(error) for name in form.errors for error in form.errors[name]]
    again = _make_verdict_form(membership, conversation, said=form.data)
    return _answer(request, membership, conversation, again, errors=errors, status=422)


def _find(membership: Membership, conversation_id: uuid.UUID) -> Conversation:
    conversation = find_conversation(workspace=membership.workspace, conversation_id=conversation_id)
    if conversation is None:
        raise Http404
    return conversation


def _make_verdict_form(
    membership: Membership, conversation: Conversation, *, said: Mapping[str, Any] | None = None
) -> VerdictForm | None:
    """An empty form, or the refused one: bound now to what this answer shows, so that the next try signs that."""
    if not membership.is_auditor or conversation.settled_digest is None:
        return None
    kept = {name: said.get(name, "") for name in ("verdict", "comment")} if said else {}
    return VerdictForm(initial={**kept, "seen": bytes(conversation.settled_digest).hex()})


def _answer(
    request: HttpRequest,
    membership: Membership,
    conversation: Conversation,
    verdict_form: VerdictForm | None,
    *,
    errors: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    workspace = membership.workspace
    address = reverse("pages:conversation", args=[workspace.slug, conversation.pk])
    is_tree = request.GET.get("order") != "time"
    offset = read_number(request, "offset")
    read_window = read_tree if is_tree else read_timeline
    window = read_window(conversation=conversation, offset=offset, limit=WINDOW_ROWS)
    digest = sum_up(conversation=conversation)
    cast = Cast(conversation.agents)
    numbers = [row.message.position + 1 for row in window.rows if row.message]
    context = {
        "conversation": _describe(conversation, find_openings(conversation_ids=[conversation.pk])),
        "answers": _make_answers(conversation, digest, workspace.slug),
        "views": [
            {"name": "Tree", "url": address, "is_current": is_tree, "count": None},
            {"name": "Timeline", "url": f"{address}?order=time", "is_current": not is_tree, "count": None},
        ],
        "cast": [
            {"mark": cast.find(name), "count": digest.senders.get(name, 0)} for name in conversation.agents[:MOST_TILES]
        ],
        "more_agents": max(0, len(conversation.agents) - MOST_TILES),
        "rows": make_rows(window.rows, workspace=workspace, conversation=conversation, cast=cast, is_tree=is_tree),
        "earlier_url": _write_offset(address, is_tree, window.previous_offset),
        "later_url": _write_offset(address, is_tree, window.next_offset),
        "shown": len(numbers),
        "hidden_count": count_hidden_in(conversation=conversation),
        "verdict_form": verdict_form,
        "verdict_errors": errors,
        "review_url": reverse("pages:review", args=[workspace.slug, conversation.pk]),
    }
    return render_page(
        request, membership, "conversation/conversation.html", context, section="conversations", status=status
    )


def _write_offset(address: str, is_tree: bool, offset: int | None) -> str | None:
    if offset is None:
        return None
    return f"{address}?offset={offset}" if is_tree else f"{address}?order=time&offset={offset}"


def _describe(conversation: Conversation, openings: Mapping[uuid.UUID, str]) -> dict[str, Any]:
    return {
        "title": shorten(
            name_conversation(conversation) if is_named(conversation) else openings.get(conversation.pk) or "Untitled"
        ),
        "native_id": conversation.native_id,
        "channel": conversation.channel.name,
        "state": conversation.state,
        "is_settled": conversation.is_settled,
        "settled_at": conversation.settled_at,
        "missing_count": conversation.missing_count,
        "message_count": conversation.message_count,
        "dialects": ", ".join(name_dialect(dialect) for dialect in conversation.dialects),
        "first_at": conversation.first_at,
    }


def _make_answers(conversation: Conversation, digest: Digest, slug: str) -> dict[str, Any]:
    names = {number: Message.Severity(number).label for number in digest.severities if number}
    elapsed = None
    if conversation.first_at and conversation.last_at:
        elapsed = conversation.last_at - conversation.first_at
    return {
        "asked": {
            "url": reverse("pages:message", args=[slug, digest.asked.pk]),
            "anchor": make_anchor(digest.asked.pk),
            "sentence": shorten(digest.asked.english, 120),
            "more": digest.asked_count - 1,
        }
        if digest.asked
        else None,
        "elapsed": write_elapsed(elapsed) if elapsed else "",
        "severities": [
            {"name": names[number], "count": count}
            for number, count in sorted(digest.severities.items(), reverse=True)
            if number
        ],
        "problems": [_name_problem(message, slug) for message in digest.gravest],
        "missing_count": conversation.missing_count,
        "failed_count": digest.failed_count,
        "malformed_count": digest.malformed_count,
        "reviews": _list_verdicts(conversation),
    }


def _name_problem(message: Message, slug: str) -> dict[str, str]:
    notes = list_notes(message, read_body(message))
    url = reverse("pages:message", args=[slug, message.pk])
    return {"url": url, "text": shorten(notes[0].text) if notes else "see the message"}


def _list_verdicts(conversation: Conversation) -> list[VerdictLine]:
    return [
        VerdictLine(
            verdict=review.verdict,
            reviewer=review.reviewer.get_username(),
            created_at=review.created_at,
            comment=review.comment,
            seen_messages=review.seen_messages,
            is_outdated=not is_current(review=review, conversation=conversation),
        )
        for review in list_reviews(conversation=conversation)[:50]
    ]
