"""Queues of reviews: made, given another rubric, and closed; and what is taken out of one."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from typing import Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.utils import timezone

from inspector.accounts.models import Membership
from inspector.intake.text import make_storable
from inspector.search.language import QueryError
from inspector.search.selectors import narrow
from inspector.threads.models import Message

from ..rules import RULES
from ..trail import Thing, record_deed
from .tables import LONGEST_NAME, ReviewItem, ReviewQueue, Rubric

MOST_CRITERIA: Final = 12
LONGEST_CRITERION: Final = 200
LONGEST_ABOUT: Final = 2000
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
    """A new queue with its rubric, and nothing in it yet: see `filling`.

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
    _require_auditor(membership)
    name = make_storable(" ".join(name.split()))
    if not name or len(name) > LONGEST_NAME:
        raise ValidationError({"name": f"give the queue a name of at most {LONGEST_NAME} characters"})
    if ReviewQueue.objects.filter(workspace=membership.workspace_id, name=name, closed_at=None).exists():
        raise ValidationError({"name": "there is a queue of this name: choose another"})
    if len(about) > LONGEST_ABOUT:
        raise ValidationError({"about": f"say it in at most {LONGEST_ABOUT:,} characters"})
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
    if len(kept) > MOST_CRITERIA:
        raise ValidationError({"criteria": f"a rubric has at most {MOST_CRITERIA} criteria"})
    if any(len(each) > LONGEST_CRITERION for each in kept):
        raise ValidationError({"criteria": f"a criterion has at most {LONGEST_CRITERION} characters"})
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
    _require_auditor(membership)
    if item.workspace_id != membership.workspace_id:
        raise PermissionDenied("it is another workspace's")
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
    _require_auditor(membership)
    if queue.workspace_id != membership.workspace_id:
        raise PermissionDenied("it is another workspace's")
    return ReviewQueue.objects.select_for_update(no_key=True).get(pk=queue.pk)


def _require_auditor(membership: Membership) -> None:
    if not membership.is_auditor:
        raise PermissionDenied("only an auditor of this workspace works on its queues")
