"""Filling queues: by hand, by findings as soon as they are found, and by a search."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, cast

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Greatest
from django.utils import timezone

from inspector.accounts.models import Membership, User
from inspector.intake.text import make_storable
from inspector.search.selectors import fetch, narrow
from inspector.threads.models import Conversation

from ..findings.listing import list_here
from ..findings.tables import Finding
from ..rules import RULES
from .queues import Source, hold_queue, record_queue
from .tables import OPEN_STATES, ReviewItem, ReviewQueue

# A queue is filled with no more at once; who fills it again gets the next ones.
MOST_AT_ONCE: Final = 1000
PATIENCE_MS: Final = 5000
CLOSED: Final = "this queue is closed: open it again first"


@dataclass(frozen=True, slots=True)
class Filled:
    """How many conversations came into a queue, and how many were there already, or were there and are done."""

    added: int
    present: int
    # Whether there are more than came in at once.
    has_more: bool = False


@transaction.atomic
def fill_queue(
    *, queue: ReviewQueue, conversations: Collection[uuid.UUID], why: str, membership: Membership | None = None
) -> Filled:
    """Put conversations of its workspace into a queue; those that wait there already stay as they are.

    Args:
        queue: which; not closed.
        conversations: their ids; of another workspace's none are taken.
        why: why they are there, in words for whoever reviews them.
        membership: who puts them there; None for the product itself.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: for a closed queue, the standing one, or too many at once.
    """
    if membership is not None and (not membership.is_auditor or membership.workspace_id != queue.workspace_id):
        raise PermissionDenied("only an auditor of this workspace fills its queues")
    if len(conversations) > MOST_AT_ONCE:
        raise ValidationError(f"at most {MOST_AT_ONCE:,} conversations are put into a queue at once")
    queue = ReviewQueue.objects.select_for_update(no_key=True).get(pk=queue.pk)
    if queue.is_standing:
        raise ValidationError("this queue holds what is reviewed directly: give your verdict there")
    if queue.closed_at is not None:
        raise ValidationError(CLOSED)
    wanted = set(conversations)
    known = Conversation.objects.filter(workspace=queue.workspace_id, pk__in=wanted).order_by("pk")
    ids = list(known.values_list("pk", flat=True))
    waiting = set(
        ReviewItem.objects.filter(queue=queue, conversation__in=ids, state__in=OPEN_STATES).values_list(
            "conversation", flat=True
        )
    )
    fresh = [pk for pk in ids if pk not in waiting]
    make_items(queue, fresh, why, membership.user if membership else None)
    if fresh and membership:
        record_queue("queue.filled", membership, queue, fresh, added=len(fresh))
    return Filled(len(fresh), len(waiting))


def make_items(queue: ReviewQueue, conversations: Sequence[uuid.UUID], why: str, by: User | None) -> list[ReviewItem]:
    """Items of a queue for conversations that do not wait there; where one came in meanwhile, it stays that one."""
    now = timezone.now()
    return ReviewItem.objects.bulk_create(
        [
            ReviewItem(
                workspace_id=queue.workspace_id,
                queue=queue,
                conversation_id=conversation_id,
                needed=queue.reviewers,
                why=make_storable(why),
                added_by=by,
                added_at=now,
            )
            for conversation_id in conversations
        ],
        ignore_conflicts=True,
    )


@transaction.atomic
def fill_from_source(*, membership: Membership, queue: ReviewQueue) -> Filled:
    """Put into a queue what its findings or its search mean now, and what was never in it.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: for a queue that people fill, a closed one, or a search that takes too long.
    """
    queue = hold_queue(membership, queue)
    if queue.source == Source.FINDINGS:
        if queue.closed_at is not None:
            raise ValidationError(CLOSED)
        filled = _fill_by_findings([queue], None, membership)
        if filled.added:
            record_queue("queue.filled", membership, queue, added=filled.added)
        return filled
    if queue.source != Source.SEARCH:
        raise ValidationError("people fill this queue by hand: from the page of a conversation")
    # Every member sees what is in the queue, and by which search it came there.
    rows = narrow(workspace=membership.workspace, query=queue.query, zone=None, may_see_secrets=False)
    known = ReviewItem.objects.filter(queue=queue).values("conversation")
    fresh = rows.exclude(conversation__in=known).order_by().values_list("conversation", flat=True).distinct()
    found = fetch(fresh[: MOST_AT_ONCE + 1], PATIENCE_MS)
    if found is None:
        raise ValidationError("the search takes too long: make it narrower, by time or by agent")
    filled = fill_queue(
        queue=queue, conversations=sorted(found)[:MOST_AT_ONCE], why=f"found by {queue.query}", membership=membership
    )
    return Filled(filled.added, filled.present, has_more=len(found) > MOST_AT_ONCE)


def fill_by_findings(*, workspace_id: uuid.UUID, conversations: Collection[uuid.UUID]) -> None:
    """Put conversations into the queues whose findings they have; call in the transaction that wrote these."""
    queues = ReviewQueue.objects.filter(workspace=workspace_id, source=Source.FINDINGS, closed_at=None)
    _fill_by_findings(list(queues.order_by("pk")), conversations, None)


def _fill_by_findings(
    queues: Sequence[ReviewQueue], conversations: Collection[uuid.UUID] | None, membership: Membership | None
) -> Filled:
    """Add what has open findings and was not in a queue since they were found."""
    added = present = 0
    has_more = False
    for queue in queues:
        found = _find_with_findings(queue, conversations)
        ended = _find_ended(queue, found)
        fresh = [pk for pk, (at, _) in found.items() if _is_new(at, ended.get(pk, datetime.min.replace(tzinfo=UTC)))]
        has_more = has_more or len(fresh) > MOST_AT_ONCE
        fresh = sorted(fresh)[:MOST_AT_ONCE]
        present += len(found) - len(fresh)
        by_rules: dict[str, list[uuid.UUID]] = {}
        for pk in fresh:
            by_rules.setdefault(_name_rules(found[pk][1]), []).append(pk)
        for why, ids in by_rules.items():
            added += len(make_items(queue, ids, why, membership.user if membership else None))
    return Filled(added, present, has_more=has_more)


def _is_new(found_at: datetime, ended_at: datetime | None) -> bool:
    """Whether what was found is newer than the last review; while one is under way (None) it is part of that."""
    return ended_at is not None and found_at > ended_at


def _find_with_findings(
    queue: ReviewQueue, conversations: Collection[uuid.UUID] | None
) -> Mapping[uuid.UUID, tuple[datetime, list[str]]]:
    """The conversations that a queue means: when the latest of their findings came up, and by which rules."""
    every = Finding.objects.filter(workspace=queue.workspace_id, holds=True).values("conversation")
    among = cast("Collection[uuid.UUID]", every) if conversations is None else conversations
    rows = list_here(conversations=among).filter(workspace=queue.workspace_id, state=Finding.State.OPEN)
    rows = rows.filter(severity__gte=queue.severity)
    if queue.rules:
        rows = rows.filter(rule__in=queue.rules)
    found: dict[uuid.UUID, tuple[datetime, list[str]]] = {}
    # What became due after a review is as new as what was found after it.
    latest = Max(Greatest("found_at", "due_since"))
    for row in rows.values("conversation", "rule").annotate(latest=latest).order_by("conversation", "rule"):
        at, rules = found.get(row["conversation"], (row["latest"], []))
        found[row["conversation"]] = (max(at, row["latest"]), [*rules, row["rule"]])
    return found


def _find_ended(queue: ReviewQueue, conversations: Collection[uuid.UUID]) -> dict[uuid.UUID, datetime | None]:
    """Those of these conversations that were in a queue: since when they are out of it, None where they are in it."""
    rows = ReviewItem.objects.filter(queue=queue, conversation__in=list(conversations))
    # The latest item of each says it.
    return dict(rows.order_by("added_at", "pk").values_list("conversation", "ended_at"))


def _name_rules(rules: Sequence[str]) -> str:
    """Why it is here, in the words of the rules."""
    more = f"; and {len(rules) - 3} more" if len(rules) > 3 else ""
    return f"{'; '.join(RULES[code].title if code in RULES else code for code in rules[:3])}{more}"
