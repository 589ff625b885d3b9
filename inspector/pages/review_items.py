"""Items of a queue: as lines of a page, and one with its conversation in the middle, the queue beside it, and the
rubric with the verdict. What is blind stays so.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import Membership, User, Workspace
from inspector.audit.findings.selectors import OpenCount, count_open_in, sort_by_message, survey_findings
from inspector.audit.models import Review, ReviewItem
from inspector.audit.reviews import queues, verdicts
from inspector.audit.reviews.bindings import SignOff, find_sign_offs, find_standings, list_item_reviews
from inspector.audit.reviews.queues import find_rubric
from inspector.audit.reviews.selectors import MINE, SECOND, list_beside, survey_item
from inspector.audit.reviews.verdicts import MAX_COMMENT_LENGTH
from inspector.database import or_404
from inspector.threads.models import Conversation
from inspector.threads.selectors import read_beginning
from inspector.threads.timeline import find_later

from .conversations.frame import describe_verdicts, list_reasons, name_standing, write_edge
from .conversations.transcript import make_rows
from .shell import render_page, require_auditor, within_workspace
from .shown.agents import cast_conversation
from .shown.findings import describe_findings, title_conversation
from .shown.told import find_openings_of, write_elapsed

Beside = tuple[Sequence[ReviewItem], Sequence[ReviewItem]]


def make_item_rows(items: Sequence[ReviewItem], workspace: Workspace, reader: User) -> list[dict[str, Any]]:
    """The lines of items, each loaded with its conversation and holder as `selectors.list_items` does."""
    openings = find_openings_of(item.conversation for item in items)
    findings = count_open_in(conversation_ids=list({item.conversation_id for item in items})) if items else {}
    settled = [item.conversation for item in items if item.state == ReviewItem.State.SETTLED]
    sign_offs = find_sign_offs(conversations=settled) if settled else {}
    return [make_row(item, workspace, reader, openings, findings, sign_offs) for item in items]


def make_row(
    item: ReviewItem,
    workspace: Workspace,
    reader: User,
    openings: Mapping[uuid.UUID, str],
    findings: Mapping[uuid.UUID, OpenCount],
    sign_offs: Mapping[uuid.UUID, SignOff],
) -> dict[str, Any]:
    """The line of an item; the last three by conversation."""
    is_hidden = vars(item).get("is_hidden", False)
    sign_off = sign_offs.get(item.conversation_id)
    return {
        "title": title_conversation(item.conversation, openings),
        # Two of one name are told apart by these.
        "item": item,
        "findings": findings.get(item.conversation_id),
        # What is signed off beside a blind review keeps its verdict to itself until that is done.
        "verdict": "" if is_hidden else item.verdict,
        # Of an item that a later one superseded, that one says it.
        "standing": name_standing(sign_off.standing) if sign_off and sign_off.at == item.ended_at else "",
        "reasons": list_reasons(sign_off.standing) if sign_off and sign_off.at == item.ended_at else (),
        "lease": describe_lease(item, reader),
        "has_spoken": vars(item).get("has_spoken", False),
        "waits": write_elapsed(timezone.now() - item.added_at),
    }


def describe_lease(item: ReviewItem, reader: User) -> dict[str, Any] | None:
    """Who holds an item, whether it is the reader, until when, and whether that is past; None where nobody does."""
    if item.holder is None or item.held_until is None:
        return None
    return {
        "holder": item.holder.get_username(),
        "is_mine": item.holder_id == reader.pk,
        "until": item.held_until,
        "is_over": not item.is_held,
        "left": _write_left(item.held_until),
    }


def _write_left(until: datetime) -> str:
    minutes = int((until - timezone.now()).total_seconds() // 60)
    return f"{minutes} min left" if minutes > 0 else "less than a minute left"


def is_free(item: ReviewItem) -> bool:
    """Whether somebody who has not spoken on an item may take it."""
    return item.is_open and not item.is_held


def describe_beside(
    item: ReviewItem,
    beside: Beside,
    membership: Membership,
    openings: Mapping[uuid.UUID, str],
    findings: Mapping[uuid.UUID, OpenCount],
) -> dict[str, Any]:
    """The queue beside its item: what is the reader's, what needs another auditor, and what waits.

    Args:
        item: as `survey_item` gives it.
        beside: as `list_beside` gives it.
        openings, findings: of the conversations of all these.
    """
    mine, others = beside
    workspace, reader = membership.workspace, membership.user
    needing = [each for each in others if each.state != ReviewItem.State.WAITING]
    waiting = [each for each in others if each.state == ReviewItem.State.WAITING]
    address = reverse("pages:queue", args=[workspace.slug, item.queue_id])
    return {
        "groups": [
            (title, [make_row(each, workspace, reader, openings, findings, {}) for each in items], url)
            for title, items, url in (
                ("Mine", mine, f"{address}?show={MINE}"),
                ("Needs another auditor", needing, f"{address}?show={SECOND}"),
                ("Waiting", waiting, address),
            )
            if items
        ],
        "settled": vars(item)["settled_count"],
        "open": vars(item)["open_count"],
        "done_url": f"{address}?show=done",
        "all_url": address,
        "item_id": item.pk,
    }


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


@within_workspace("GET", of=survey_item)
def show_item(request: HttpRequest, membership: Membership, item: ReviewItem) -> HttpResponse:
    """An item with its transcript, its verdicts as far as the reader may know them, and the form for one's own."""
    return _answer(request, membership, item)


@within_workspace("POST", of=survey_item)
def act_on_item(request: HttpRequest, membership: Membership, item: ReviewItem) -> HttpResponse:
    """Take an item, hold it longer, give it back, withdraw one's verdict, take it out, or have it reviewed again."""
    require_auditor(membership)
    act, words = _ACTS.get(request.POST.get("act", ""), (None, ""))
    if act is None:
        return _answer(request, membership, item, errors=["Choose what is to be done."])
    try:
        made = act(membership=membership, item=item)
    except ValidationError as error:
        return _answer(request, membership, _find_again(membership, item), errors=error.messages)
    flashes.success(request, words)
    if act is queues.remove_item:
        return redirect("pages:queue", membership.workspace.slug, item.queue_id)
    target = made.pk if isinstance(made, ReviewItem) else item.pk
    return redirect("pages:review-item", membership.workspace.slug, target)


@within_workspace("POST", of=survey_item)
def judge_item(request: HttpRequest, membership: Membership, item: ReviewItem) -> HttpResponse:
    """The verdict of whoever holds the item."""
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
        return _answer(request, membership, _find_again(membership, item), errors=error.messages)
    flashes.success(request, _say_outcome(review.item))
    return redirect("pages:review-item", membership.workspace.slug, item.pk)


def _find_again(membership: Membership, item: ReviewItem) -> ReviewItem:
    """The item as it is now, which may be otherwise than when its page was sent."""
    return or_404(survey_item(workspace=membership.workspace, item_id=item.pk))


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
    """The page; of an item as `survey_item` gives it."""
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
    counts, findings, decided = survey_findings(conversation=conversation, beside=around)
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
        "decided": describe_findings(decided[:MAX_FINDINGS]),
        "has_more_decided": len(decided) > MAX_FINDINGS,
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
