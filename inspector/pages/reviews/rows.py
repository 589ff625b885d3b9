"""Items of a queue as lines of a page: the conversation, how far it is, and who holds it; and whether a verdict still
holds, in words: what differs from what was signed, with links to the messages that do. What is blind stays so.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.urls import reverse
from django.utils import timezone

from inspector.accounts.models import Membership, User, Workspace
from inspector.audit.findings.selectors import OpenCount, count_open_in
from inspector.audit.models import Review, ReviewItem
from inspector.audit.reviews.bindings import Change, Place, SignOff, Standing, find_places, find_sign_offs
from inspector.audit.reviews.selectors import MINE, SECOND
from inspector.ledger.proofs import find_changed, say_changed
from inspector.ledger.proofs import find_places as find_entered
from inspector.threads.models import Message

from ..findings.rows import title_conversation
from ..shown.told import find_openings_of, name_dialect, write_elapsed

# How many messages of a kind are linked to.
MAX_LINKED: Final = 5
_WORDS: Final = {
    "bytes": ("{} has different raw bytes", "{} have different raw bytes"),
    "decoder": ("{} was decoded by another decoder", "{} were decoded by another decoder"),
    "english": ("{} has different English", "{} have different English"),
    "beside": (
        "the details of {} have changed",
        "the details of {} have changed",
    ),
    "came": ("{} arrived since", "{} arrived since"),
    "gone": ("{} is withdrawn or gone", "{} are withdrawn or gone"),
}
_UNKNOWN: Final = "The conversation was processed again; the comparison follows in a moment."
_INEXACT: Final = "Verdicts of that time do not record which messages were seen, so the difference is unknown."
HOLDS, STALE, UNKNOWN = "holds", "stale", "unknown"


def say_standing(standing: Standing, found: Mapping[Place, Message], workspace: Workspace) -> dict[str, Any]:
    """How a verdict stands, for a page.

    Args:
        standing: of the verdict.
        found: the messages that its changes name, as far as they are shown.
    """
    if not standing.is_exact:
        return {"lines": (), "state": STALE, "hint": _INEXACT}
    if not standing.changes:
        return (
            {"lines": (), "hint": "", "state": HOLDS}
            if standing.is_known
            else {"lines": (), "state": UNKNOWN, "hint": _UNKNOWN}
        )
    lines = []
    for kind, change in standing.changes.items():
        messages = [found[place] for place in change.places if place in found][:MAX_LINKED]
        urls = tuple(reverse("pages:message", args=[workspace.slug, message.pk]) for message in messages)
        lines.append((write_change(kind, change), urls, max(0, change.count - len(urls)) if urls else 0))
    return {"state": STALE, "lines": tuple(lines), "hint": "" if standing.is_known else _UNKNOWN}


def write_change(kind: str, change: Change) -> str:
    """A change in words: `2 messages came since`."""
    if kind not in _WORDS:
        return "the messages are in another order"
    one, many = _WORDS[kind]
    words = one.format("1 message") if change.count == 1 else many.format(f"{change.count:,} messages")
    return f"{words}: {_name_decoders(change.decoders)}" if change.decoders else words


def _name_decoders(decoders: Sequence[tuple[str, str]]) -> str:
    """Which decoders it was then, and which it is now."""
    named = [f"{_name_decoder(then)} then, {_name_decoder(now)} now" for then, now in decoders[:MAX_LINKED]]
    return "; ".join([*named, *(["and others"] if len(decoders) > MAX_LINKED else [])])


def _name_decoder(decoder: str) -> str:
    """A decoder in words, from `dialect version`."""
    dialect, _, version = decoder.partition(" ")
    return f"{name_dialect(dialect)} by decoder {version}"


def list_reasons(standing: Standing) -> Sequence[str]:
    """In which ways what was signed differs by now, in words; of a verdict that does not say it, that it does."""
    if not standing.is_exact:
        return ("changed since it was signed",)
    return [write_change(kind, change) for kind, change in standing.changes.items()]


def name_standing(standing: Standing) -> str:
    """A standing in one word: `holds`, `stale` or `unknown`."""
    if standing.is_stale:
        return STALE
    return HOLDS if standing.is_known else UNKNOWN


def describe_verdicts(
    reviews: Sequence[Review],
    standings: Mapping[uuid.UUID, Standing],
    *,
    workspace: Workspace,
    known: Sequence[Message] = (),
) -> list[dict[str, Any]]:
    """Verdicts on a conversation as a page shows them, each with how it stands.

    Args:
        reviews: with their reviewers, items, queues and rubrics.
        standings: by review id.
        known: messages that are shown and loaded already, so that these are not asked for again.
    """
    places = {place for each in standings.values() for change in each.changes.values() for place in change.places}
    found = {(message.record_id, message.part): message for message in known}
    found.update(find_places(places=places - found.keys(), workspace=workspace))
    changed = find_changed("verdict", [review.pk for review in reviews]) if reviews else {}
    entered = find_entered("verdict", [review.pk for review in reviews]) if reviews else {}
    return [
        {
            "row": review,
            "changed": say_changed("verdict", changed[review.pk]) if review.pk in changed else "",
            "answers": list(zip(review.rubric.criteria, review.answers, strict=True)) if review.rubric else [],
            "rubric": review.rubric.number if review.rubric else None,
            "digest": bytes(review.binding.digest).hex() if review.binding else "",
            "place": entered.get(review.pk),
            "standing": say_standing(standings[review.pk], found, workspace),
            "queue": "" if review.item.queue.is_standing else review.item.queue.name,
        }
        for review in reviews
    ]


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
