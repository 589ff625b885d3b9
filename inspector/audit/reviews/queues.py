"""Queues of reviews: made, closed, given another rubric, and filled by hand, by findings and by a search."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Greatest
from django.utils import timezone

from inspector.accounts.models import Membership, User
from inspector.database import make_storable
from inspector.search.language import QueryError
from inspector.search.selectors import fetch, narrow
from inspector.threads.models import Conversation, Message
from inspector.trail.services import Thing, record_deed

from ..findings.selectors import list_here
from ..models.findings import Finding
from ..models.reviews import MAX_NAME_LENGTH, OPEN_STATES, ReviewItem, ReviewQueue, Rubric
from ..rules import RULES, name_rule

MAX_CRITERIA: Final = 12
MAX_CRITERION_LENGTH: Final = 200
MAX_ABOUT_LENGTH: Final = 2000
STANDING_NAME: Final = "Reviewed directly"
NO_REMOVAL: Final = "somebody has spoken on it: it can be finished, and not be taken out"

Source = ReviewQueue.Source


@transaction.atomic
def create_queue(
    *,
    membership: Membership,
    name: str,
    about: str = "",
    reviewers: int = 1,
    criteria: Sequence[str] = (),
    source: str = Source.HAND,
    rules: Collection[str] = (),
    severity: int = 0,
    query: str = "",
) -> ReviewQueue:
    """A new queue with its rubric, and nothing in it yet: see `fill_queue`.

    Args:
        membership: who makes it: an owner or an auditor.
        name: what it is called, once in the workspace.
        about: what it is for.
        reviewers: how many have to say the same of each conversation, 1 or 2.
        criteria: what is to be answered of each.
        source: one of `ReviewQueue.Source`.
        rules: for findings: of which rules; none are all.
        severity: for findings: at least so grave.
        query: for a search: what it finds, in the search language.

    Raises:
        PermissionDenied: for a viewer.
        ValidationError: for what cannot be so, by the name of the argument.
    """
    membership.require_auditor(membership.workspace_id, "works on its queues")
    name = make_storable(" ".join(name.split()))
    if not name or len(name) > MAX_NAME_LENGTH:
        raise ValidationError({"name": f"give the queue a name of at most {MAX_NAME_LENGTH} characters"})
    if ReviewQueue.objects.filter(workspace=membership.workspace_id, name=name, closed_at=None).exists():
        raise ValidationError({"name": "there is a queue of this name: choose another"})
    if len(about) > MAX_ABOUT_LENGTH:
        raise ValidationError({"about": f"say it in at most {MAX_ABOUT_LENGTH:,} characters"})
    if reviewers not in (1, 2):
        raise ValidationError({"reviewers": "one or two review a conversation"})
    if source not in Source.values:
        raise ValidationError({"source": f"a queue is filled by one of {', '.join(Source.values)}"})
    if source == Source.FINDINGS:
        _check_findings(rules, severity)
    if source == Source.SEARCH:
        _check_query(membership, query)
    queue = ReviewQueue.objects.create(
        workspace_id=membership.workspace_id,
        name=name,
        about=make_storable(about.strip()),
        reviewers=reviewers,
        source=source,
        rules=sorted(set(rules)) if source == Source.FINDINGS else [],
        severity=severity if source == Source.FINDINGS else 0,
        query=make_storable(query.strip()) if source == Source.SEARCH else "",
        created_by=membership.user,
    )
    Rubric.objects.create(queue=queue, number=1, criteria=check_criteria(criteria), by=membership.user)
    record_queue("queue.made", membership, queue, source=source, reviewers=reviewers)
    return queue


def _check_findings(rules: Collection[str], severity: int) -> None:
    unknown = sorted(set(rules) - set(RULES))
    if unknown:
        raise ValidationError({"rules": f"there is no rule {unknown[0][:60]!r}"})
    if severity not in Message.Severity.values:
        raise ValidationError({"severity": "a severity is info, notice, warning or error"})


def _check_query(membership: Membership, query: str) -> None:
    if not query.strip():
        raise ValidationError({"query": "say what is to be searched for"})
    try:
        narrow(workspace=membership.workspace, query=query, zone=None, may_see_secrets=False)
    except QueryError as error:
        raise ValidationError({"query": str(error)}) from error


def check_criteria(criteria: Sequence[str]) -> list[str]:
    """The criteria of a rubric as they are kept.

    Raises:
        ValidationError: for too many, too long ones, or one that is named twice.
    """
    kept = [make_storable(" ".join(each.split())) for each in criteria if each.strip()]
    if len(kept) > MAX_CRITERIA:
        raise ValidationError({"criteria": f"a rubric has at most {MAX_CRITERIA} criteria"})
    if any(len(each) > MAX_CRITERION_LENGTH for each in kept):
        raise ValidationError({"criteria": f"a criterion has at most {MAX_CRITERION_LENGTH} characters"})
    if len({each.casefold() for each in kept}) < len(kept):
        raise ValidationError({"criteria": "each criterion stands once"})
    return kept


@transaction.atomic
def change_rubric(*, membership: Membership, queue: ReviewQueue, criteria: Sequence[str], expected: int) -> Rubric:
    """Give a queue another rubric: a new version. What was said under earlier ones stays under them.

    Args:
        expected: the number of the version that was shown to whoever changes it.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: for what is no rubric, the same one, or where somebody changed it meanwhile.
    """
    queue = hold_queue(membership, queue)
    latest = find_rubric(queue=queue)
    number = latest.number if latest else 0
    if number != expected:
        raise ValidationError("somebody changed the rubric since you opened it: look at it again")
    kept = check_criteria(criteria)
    if latest is not None and kept == latest.criteria:
        raise ValidationError({"criteria": "this is the rubric as it stands"})
    rubric = Rubric.objects.create(queue=queue, number=number + 1, criteria=kept, by=membership.user)
    record_queue("rubric.changed", membership, queue, version=rubric.number, criteria=kept)
    return rubric


def find_rubric(*, queue: ReviewQueue) -> Rubric | None:
    """The version of a queue's rubric that holds, or None where it never had one."""
    return Rubric.objects.filter(queue=queue).order_by("-number").first()


@transaction.atomic
def close_queue(*, membership: Membership, queue: ReviewQueue, is_closed: bool) -> None:
    """Let nothing more come into a queue, or let it come again. What is in it can be finished.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: for the standing queue, which is always there.
    """
    queue = hold_queue(membership, queue)
    if queue.is_standing:
        raise ValidationError("this queue holds what is reviewed directly, and is always open")
    ReviewQueue.objects.filter(pk=queue.pk).update(closed_at=timezone.now() if is_closed else None)
    record_queue("queue.closed" if is_closed else "queue.opened", membership, queue)


@transaction.atomic
def remove_item(*, membership: Membership, item: ReviewItem) -> None:
    """Take a conversation out of a queue, as long as nobody has spoken on it.

    Raises:
        PermissionDenied: for a viewer or a stranger.
        ValidationError: where somebody has spoken, or somebody else holds it.
    """
    membership.require_auditor(item.workspace_id, "works on its queues")
    item = ReviewItem.objects.select_for_update(no_key=True).get(pk=item.pk)
    if item.state != ReviewItem.State.WAITING:
        raise ValidationError(NO_REMOVAL)
    if item.is_held and item.holder_id != membership.user_id:
        raise ValidationError("somebody else has claimed it: ask them to release it")
    ReviewItem.objects.filter(pk=item.pk).update(
        state=ReviewItem.State.REMOVED, ended_at=timezone.now(), holder=None, held_until=None
    )
    record_deed(
        "review.removed",
        workspace_id=item.workspace_id,
        by=membership,
        on=Thing("review", item.pk, item.conversation.native_id),
        about=[item.conversation_id],
    )


def get_standing_queue(*, workspace_id: uuid.UUID) -> ReviewQueue:
    """The queue of what is reviewed directly, made where the workspace has none yet."""
    queue, _ = ReviewQueue.objects.get_or_create(
        workspace_id=workspace_id, is_standing=True, defaults={"name": STANDING_NAME}
    )
    return queue


def record_queue(
    code: str, membership: Membership, queue: ReviewQueue, about: Collection[uuid.UUID] = (), **details: object
) -> None:
    """Leave a deed about a queue in the trail; the last statement of its transaction."""
    record_deed(
        code,
        workspace_id=queue.workspace_id,
        by=membership,
        on=Thing("queue", queue.pk, queue.name),
        about=about,
        details=details,
    )


def hold_queue(membership: Membership, queue: ReviewQueue) -> ReviewQueue:
    """The queue as it stands, locked until the transaction ends.

    Raises:
        PermissionDenied: for a viewer or a stranger.
    """
    membership.require_auditor(queue.workspace_id, "works on its queues")
    return ReviewQueue.objects.select_for_update(no_key=True).get(pk=queue.pk)


# A queue is filled with no more at once; who fills it again gets the next ones.
MAX_AT_ONCE: Final = 1000
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
    if membership is not None:
        membership.require_auditor(queue.workspace_id, "fills its queues")
    if len(conversations) > MAX_AT_ONCE:
        raise ValidationError(f"at most {MAX_AT_ONCE:,} conversations are put into a queue at once")
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
    found = fetch(fresh[: MAX_AT_ONCE + 1], PATIENCE_MS)
    if found is None:
        raise ValidationError("the search takes too long: make it narrower, by time or by agent")
    filled = fill_queue(
        queue=queue, conversations=sorted(found)[:MAX_AT_ONCE], why=f"found by {queue.query}", membership=membership
    )
    return Filled(filled.added, filled.present, has_more=len(found) > MAX_AT_ONCE)


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
        # Since when each is out of it, None where it is in it, as its latest item says. What was found is new after the
        # last review; while one is under way it is part of that.
        rows = ReviewItem.objects.filter(queue=queue, conversation__in=list(found)).order_by("added_at", "pk")
        ended = dict(rows.values_list("conversation", "ended_at"))
        fresh = [pk for pk, (at, _) in found.items() if pk not in ended or ((end := ended[pk]) and at > end)]
        has_more = has_more or len(fresh) > MAX_AT_ONCE
        fresh = sorted(fresh)[:MAX_AT_ONCE]
        present += len(found) - len(fresh)
        by_rules: dict[str, list[uuid.UUID]] = {}
        for pk in fresh:
            by_rules.setdefault(_name_rules(found[pk][1]), []).append(pk)
        for why, ids in by_rules.items():
            added += len(make_items(queue, ids, why, membership.user if membership else None))
    return Filled(added, present, has_more=has_more)


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


def _name_rules(rules: Sequence[str]) -> str:
    """Why it is here, in the words of the rules."""
    more = f"; and {len(rules) - 3} more" if len(rules) > 3 else ""
    return f"{'; '.join(map(name_rule, rules[:3]))}{more}"
