"""The palette: pages, saved searches, conversations, agents, rules and deliveries by letters, and what an id names.

Everything in it can be reached without it too; each question of it is bounded, however large the workspace is.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, JsonResponse
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.audit.rules import RULES
from inspector.characters import spell_hidden
from inspector.intake.selectors import list_deliveries
from inspector.search.aids import Found, find_by_native_id, find_by_uuid, list_busiest, list_recent, list_saved
from inspector.threads.models import Conversation

from .findings import link_rule
from .shell import within_workspace
from .shown.told import find_openings_of, link_search, name_conversation, name_delivery, shorten

MAX_CHARACTERS: Final = 200
MAX_ITEMS: Final = 20
MAX_DELIVERIES: Final = 20
_HASH: Final = re.compile(r"[0-9a-fA-F]{64}")

# Who may see a page: everybody, or owners and auditors.
PAGES: Final = (
    ("Overview", "overview", False),
    ("Conversations", "conversations", False),
    ("Traces", "traces", False),
    ("Search", "search", False),
    ("Findings", "findings", False),
    ("Reviews", "reviews", False),
    ("Exports", "exports", False),
    ("Agents", "agents", False),
    ("Who talks with whom", "agents-graph", False),
    ("Translator", "translator", False),
    ("Upload", "upload", True),
    ("Deliveries", "deliveries", False),
    ("Dead letters", "dead-letters", False),
    ("Keyring", "keyring", True),
    ("Audit log", "trail", True),
    ("Settings", "settings", False),
    ("Alerts", "alerts", True),
    ("Your account", "account", False),
)
GLOSSARY: Final = "Glossary"


@dataclass(frozen=True, slots=True)
class Item:
    """One place to go: what it is called, of what kind it is, and where it is."""

    title: str
    kind: str
    url: str


@within_workspace("GET")
def suggest_places(request: HttpRequest, membership: Membership) -> JsonResponse:
    """Places to go for some letters, the best first, as JSON; for none the pages and what moved last."""
    typed = request.GET.get("q", "").strip()[:MAX_CHARACTERS]
    items = [*_find_named(membership, typed), *rank_items(typed, _list_places(membership))][:MAX_ITEMS]
    if typed:
        items.append(Item(f"Search for {typed}", "search", link_search(membership.workspace.slug, typed)))
    spelled = [{"title": spell_hidden(each.title), "kind": spell_hidden(each.kind), "url": each.url} for each in items]
    return JsonResponse({"items": spelled})


def _list_places(membership: Membership) -> Iterator[Item]:
    workspace = membership.workspace
    slug = workspace.slug
    for title, name, is_for_auditors in PAGES:
        if membership.is_auditor or not is_for_auditors:
            yield Item(title, "page", reverse(f"pages:{name}", args=[slug]))
    yield Item(GLOSSARY, "page", reverse("pages:glossary", args=[slug, "clowl"]))
    for saved in list_saved(membership=membership):
        yield Item(saved.name, "saved search", link_search(slug, saved.query))
    for pk, title in _title_conversations(list_recent(workspace=workspace)).items():
        yield Item(title, "conversation", reverse("pages:conversation", args=[slug, pk]))
    for agent_id, called, name, channel in list_busiest(workspace=workspace):
        title = f"{called} {name}" if called and called != name else name
        yield Item(shorten(title, 80), f"agent in {channel}", reverse("pages:agent", args=[slug, agent_id]))
    for rule in RULES.values():
        yield Item(rule.title, "rule", link_rule(slug, rule))
    for delivery in list_deliveries(workspace=workspace, limit=MAX_DELIVERIES):
        title = shorten(name_delivery(delivery), 80)
        kind = f"delivery of {delivery.received_at:%Y-%m-%d %H:%M} UTC"
        yield Item(title, kind, reverse("pages:delivery", args=[slug, delivery.pk]))


def _title_conversations(conversations: Sequence[Conversation]) -> dict[uuid.UUID, str]:
    """What the list of conversations says of each: its subject, and its id where that is another."""
    openings = find_openings_of(conversations)
    titles = {}
    for each in conversations:
        title = shorten(openings.get(each.pk) or name_conversation(each), 80)
        titles[each.pk] = title if each.native_id in ("", title) else f"{title} {shorten(each.native_id, 40)}"
    return titles


def _find_named(membership: Membership, typed: str) -> list[Item]:
    """What an id, as we or as a wire has it, or the hash of a delivery names exactly."""
    if not typed:
        return []
    workspace = membership.workspace
    found: Iterable[Found]
    try:
        found = find_by_uuid(workspace=workspace, wanted=uuid.UUID(typed))
    except ValueError:
        digest = bytes.fromhex(typed) if _HASH.fullmatch(typed) else None
        found = find_by_native_id(workspace=workspace, native_id=typed, digest=digest)
    named = [each.id for each in found if each.kind == "conversation"]
    titles = _title_conversations(list_recent(workspace=workspace, among=named)) if named else {}
    return [
        Item(
            titles.get(each.id) or shorten(each.title, 80),
            each.kind,
            reverse(f"pages:{each.kind}", args=[workspace.slug, each.id]),
        )
        for each in found
    ]


def rank_items(typed: str, items: Iterable[Item]) -> list[Item]:
    """The items whose titles hold the letters in their order, the best fit first; all for none."""
    if not typed:
        return list(items)
    ranked = [(rank, at, item) for at, item in enumerate(items) if (rank := rank_title(typed, item.title)) is not None]
    return [item for _, _, item in sorted(ranked, key=lambda each: (-each[0], each[1]))]


def rank_title(typed: str, title: str) -> int | None:
    """How well letters fit a title; None where it does not hold them in their order.

    Letters that stand together count more, those that begin a word most; of two alike the shorter title is better.
    """
    wanted = [letter for letter in typed.casefold() if not letter.isspace()]
    text = title.casefold()
    together = "".join(typed.casefold().split())
    if together and together in "".join(text.split()):
        begins = text.startswith(typed.casefold()) or f" {typed.casefold()}" in text
        return 1000 + 100 * begins - len(text)
    score, at, run = 0, 0, 0
    for letter in wanted:
        place = text.find(letter, at)
        if place < 0:
            return None
        run = run + 1 if place == at else 0
        score += 3 + 2 * run + (4 if place == 0 or not text[place - 1].isalnum() else 0) - min(place - at, 8)
        at = place + 1
    return score - len(text) // 8
