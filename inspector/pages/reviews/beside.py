"""What stands around an item of a review: the queue beside it."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.audit.findings.selectors import OpenCount
from inspector.audit.models import ReviewItem
from inspector.audit.reviews.selectors import MINE, SECOND
from inspector.threads.models import Conversation
from inspector.threads.selectors import find_openings

from ..shown.told import is_named
from .rows import make_row

Beside = tuple[Sequence[ReviewItem], Sequence[ReviewItem]]


def find_openings_of(conversations: Collection[Conversation]) -> dict[uuid.UUID, str]:
    """What those of these conversations that have no name open with; asks for nothing where all have one."""
    unnamed = {conversation.pk for conversation in conversations if not is_named(conversation)}
    return find_openings(conversation_ids=sorted(unnamed)) if unnamed else {}


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
