"""One item of a queue: its conversation in the middle, the queue beside it, and the rubric with the verdict."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import sort_by_message, survey_open
from inspector.audit.models import Review, ReviewItem
from inspector.audit.reviews import queues, verdicts
from inspector.audit.reviews.bindings import find_standings, list_item_reviews
from inspector.audit.reviews.queues import find_rubric
from inspector.audit.reviews.selectors import list_beside, survey_item
from inspector.audit.reviews.verdicts import MAX_COMMENT_LENGTH
from inspector.database import or_404
from inspector.threads.models import Conversation
from inspector.threads.selectors import read_beginning
from inspector.threads.timeline import find_later

from ..agents.marks import cast_conversation
from ..conversations.frame import write_edge
from ..conversations.transcript import make_rows
from ..findings.rows import describe_findings, title_conversation
from ..shell import render_page, require_auditor, within_workspace
from ..shown.told import find_openings_of
from .rows import describe_beside, describe_lease, describe_verdicts, is_free

WINDOW_ROWS: Final = 50
MAX_FINDINGS: Final = 8
_ACTS: Final[Mapping[str, tuple[Callable[..., Any], str]]] = {
    "claim": (verdicts.claim, "You hold it for half an hour. Nobody else can give a verdict on it meanwhile."),
    "renew": (verdicts.renew, "You hold it for another half hour."),
    "release": (verdicts.release, "Given back: anybody may take it."),
    "withdraw": (verdicts.withdraw_verdict, "Your verdict is withdrawn. Take it again to give another."),
    "remove": (queues.remove_item, "Taken out of the queue."),
    "again": (
        verdicts.review_again,
        "It waits to be reviewed again. The current sign-off stays in force until then.",
    ),
}


@within_workspace("GET")
def show_item(request: HttpRequest, membership: Membership, item_id: uuid.UUID) -> HttpResponse:
    """An item with its transcript, its verdicts as far as the reader may know them, and the form for one's own."""
    return _answer(request, membership, open_item(membership, item_id))


@within_workspace("POST")
def act_on_item(request: HttpRequest, membership: Membership, item_id: uuid.UUID) -> HttpResponse:
    """Take an item, hold it longer, give it back, withdraw one's verdict, take it out, or have it reviewed again."""
    item = open_item(membership, item_id)
    require_auditor(membership)
    act, words = _ACTS.get(request.POST.get("act", ""), (None, ""))
    if act is None:
        return _answer(request, membership, item, errors=["Choose what is to be done."])
    try:
        made = act(membership=membership, item=item)
    except ValidationError as error:
        return _answer(request, membership, open_item(membership, item_id), errors=error.messages)
    flashes.success(request, words)
    if act is queues.remove_item:
        return redirect("pages:queue", membership.workspace.slug, item.queue_id)
    target = made.pk if isinstance(made, ReviewItem) else item.pk
    return redirect("pages:review-item", membership.workspace.slug, target)


@within_workspace("POST")
def judge_item(request: HttpRequest, membership: Membership, item_id: uuid.UUID) -> HttpResponse:
    """The verdict of whoever holds the item."""
    item = open_item(membership, item_id)
    require_auditor(membership)
    criteria = item.rubric.criteria if item.rubric else []
    try:
        review = verdicts.judge_item(
            membership=membership,
            item=item,
            verdict=_read_verdict(request),
            comment=request.POST.get("comment", ""),
            seen=_read_seen(request),
            answers=[request.POST.get(f"answer-{number}", "") for number in range(len(criteria))],
        )
    except ValidationError as error:
        return _answer(request, membership, open_item(membership, item_id), errors=error.messages)
    flashes.success(request, _say_outcome(review.item))
    return redirect("pages:review-item", membership.workspace.slug, item.pk)


def open_item(membership: Membership, item_id: uuid.UUID) -> ReviewItem:
    """The item of the reader's workspace. Http404 where there is none."""
    return or_404(survey_item(workspace=membership.workspace, item_id=item_id))


def _read_verdict(request: HttpRequest) -> str:
    verdict = request.POST.get("verdict", "")
    if not verdict:
        raise ValidationError("Choose a verdict.")
    return verdict


def _read_seen(request: HttpRequest) -> bytes:
    try:
        return bytes.fromhex(request.POST.get("seen", ""))
    except ValueError:
        return b""


def _say_outcome(item: ReviewItem) -> str:
    if item.state == ReviewItem.State.SETTLED:
        return "Signed off, bound to what you saw."
    if item.state == ReviewItem.State.DISPUTED:
        return "You and the other reviewer differ. Both verdicts are open now, and a third person decides."
    return "Your verdict is kept. Nobody sees it until the second reviewer has spoken; until then you can withdraw it."


def _answer(
    request: HttpRequest, membership: Membership, item: ReviewItem, *, errors: Sequence[str] = ()
) -> HttpResponse:
    """The page; of an item that was loaded by `open_item`."""
    workspace, conversation = membership.workspace, item.conversation
    # Before somebody has spoken there is nothing that could be told.
    has_verdicts = item.state not in (ReviewItem.State.WAITING, ReviewItem.State.REMOVED)
    reviews = list_item_reviews(item=item, reader_id=membership.user_id) if has_verdicts else []
    standings = find_standings(reviews=reviews, conversation=conversation, is_compared=True)
    own = next((review for review in reviews if review.reviewer_id == membership.user_id), None)
    lease = describe_lease(item, membership.user)
    form = _make_form(request, item, conversation, errors) if lease and lease["is_mine"] and item.is_open else None
    rows = read_beginning(conversation=conversation, limit=WINDOW_ROWS)
    messages = [row.message for row in rows if row.message]
    later = find_later(messages)
    beside = list_beside(queue=item.queue, reader=membership.user)
    around = [each.conversation_id for group in beside for each in group]
    counts, findings = survey_open(conversation=conversation, beside=around)
    openings = find_openings_of([conversation, *(each.conversation for group in beside for each in group)])
    carrying = [review for review in reviews if review.verdict == item.verdict]
    is_held_by_another = lease is not None and not lease["is_over"] and not lease["is_mine"]
    may_claim = membership.is_auditor and item.is_open and own is None and not is_held_by_another
    context = {
        "item": {
            "title": title_conversation(conversation, openings),
            "row": item,
            "is_hidden": vars(item).get("is_hidden", False),
            "verdict": "" if vars(item).get("is_hidden") else item.verdict,
            "is_stale": any(standings[review.pk].is_stale for review in carrying),
        },
        "queue": item.queue,
        "conversation": conversation,
        "lease": lease,
        "reviews": describe_verdicts(reviews, standings, workspace=workspace, known=messages),
        "own": own,
        "may_claim": may_claim,
        "may_remove": membership.is_auditor and item.state == ReviewItem.State.WAITING and not is_held_by_another,
        "may_withdraw": own is not None and item.state == ReviewItem.State.SECOND,
        "may_ask_again": membership.is_auditor
        and item.state == ReviewItem.State.SETTLED
        and not item.queue.is_standing
        and item.queue.closed_at is None,
        "may_go_on": membership.is_auditor and form is None and not may_claim and any(map(is_free, beside[1])),
        "form": form,
        "unsent": _find_unsent(request) if errors and form is None else None,
        "rubric": item.rubric or find_rubric(queue=item.queue),
        "errors": errors,
        "findings": describe_findings(findings[:MAX_FINDINGS]),
        "more_findings": max(0, counts[conversation.pk].count - MAX_FINDINGS) if findings else 0,
        "rows": make_rows(
            rows,
            workspace=workspace,
            conversation=conversation,
            cast=cast_conversation(conversation),
            is_tree=False,
            findings=sort_by_message(findings, messages),
        ),
        "more_count": max(0, conversation.message_count - WINDOW_ROWS),
        "more_after": write_edge(conversation, later) if later else "",
        "beside": describe_beside(item, beside, membership, openings, counts),
    }
    status = 422 if errors else 200
    return render_page(request, membership, "reviews/item.html", context, section="reviews", status=status)


def _make_form(
    request: HttpRequest, item: ReviewItem, conversation: Conversation, errors: Sequence[str]
) -> dict[str, Any]:
    """The rubric and the verdict to fill in; what was refused stands as it was filled in."""
    said = request.POST if errors else {}
    criteria = item.rubric.criteria if item.rubric else []
    return {
        "seen": bytes(conversation.settled_digest or b"").hex(),
        "criteria": [
            {"name": f"answer-{number}", "text": criterion, "answer": said.get(f"answer-{number}", "")}
            for number, criterion in enumerate(criteria)
        ],
        "answers": Review.Answer.choices,
        "verdicts": Review.Verdict.choices,
        "verdict": said.get("verdict", ""),
        "comment": said.get("comment", ""),
    }


def _find_unsent(request: HttpRequest) -> dict[str, str] | None:
    """What was filled in where it can no longer be sent, so that it is not lost; None where nothing was written."""
    verdict, comment = request.POST.get("verdict", ""), request.POST.get("comment", "").strip()
    named = Review.Verdict(verdict).label if verdict in Review.Verdict.values else ""
    return {"verdict": named, "comment": comment[:MAX_COMMENT_LENGTH]} if named or comment else None
