"""Whether a verdict still holds, in words: what differs from what was signed, and links to the messages that do."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.urls import reverse

from inspector.accounts.models import Workspace
from inspector.audit.models import Review
from inspector.audit.reviews.bindings import Change, Place, Standing, find_places
from inspector.ledger.places import find_places as find_entered
from inspector.ledger.selectors import find_changed, say_changed
from inspector.threads.models import Message

from ..shown.told import name_dialect

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
