"""Items of a queue as lines of a page: the conversation, how far it is, and who holds it. What is blind stays so."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import Membership, User, Workspace
from inspector.audit.findings.selectors import OpenCount, count_open_in
from inspector.audit.models import ReviewItem
from inspector.audit.reviews.bindings import SignOff, find_sign_offs
from inspector.audit.reviews.selectors import MINE, SECOND

from ..findings.rows import title_conversation
from ..shown.told import find_openings_of, write_elapsed
from .words import list_reasons, name_standing

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
