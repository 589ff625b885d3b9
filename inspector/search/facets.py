"""Facets: how the newest messages that a query means are spread over a few names. Counted apart from the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from inspector.accounts.models import Workspace
from inspector.threads.models import Message

from .selectors import fetch, narrow

# So many messages are counted, and so many values of a name are shown.
COUNTED: Final = 2000
SHOWN: Final = 8
PATIENCE_MS: Final = 1500
SEVERITY_NAMES: Final = {value: label for value, label in Message.Severity.choices if value}


@dataclass(frozen=True, slots=True)
class Facet:
    """One name and its commonest values with their numbers; `more` is how many other values there are."""

    name: str
    values: tuple[tuple[str, int], ...]
    more: int


@dataclass(frozen=True, slots=True)
class Facets:
    """What was counted: every facet, over how many messages, and whether these are all."""

    facets: tuple[Facet, ...]
    counted: int
    is_all: bool


def count_facets(
    *, workspace: Workspace, query: str, zone: tzinfo | None = None, may_see_secrets: bool = False
) -> Facets | None:
    """The facets of a query, or None where counting takes longer than a reader would wait.

    None too where `raw:` asks for characters and the reader may not see masked ones: a count would tell of these.

    Args:
        workspace: whose messages.
        query: in the search language.
        zone: whose days the days of the query are.
        may_see_secrets: whether the reader may see masked characters.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    rows, needles = narrow(workspace=workspace, query=query, zone=zone, may_see_secrets=may_see_secrets)
    if needles:
        return None
    names = ("dialect", "performative", "sender", "receivers", "severity")
    found = fetch(rows.order_by("-order_time", "-id").values_list(*names)[: COUNTED + 1], PATIENCE_MS)
    if found is None:
        return None
    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("dialect", "performative", "from", "to", "severity")
    }
    for dialect, performative, sender, receivers, severity in found[:COUNTED]:
        counts["dialect"][dialect] += 1
        counts["performative"][performative or "malformed"] += 1
        if sender:
            counts["from"][sender] += 1
        counts["to"].update(name for name in receivers if name)
        if severity:
            counts["severity"][SEVERITY_NAMES[severity]] += 1
    facets = tuple(_make_facet(name, counter) for name, counter in counts.items() if counter)
    return Facets(facets, min(len(found), COUNTED), len(found) <= COUNTED)


def _make_facet(name: str, counter: Counter[str]) -> Facet:
    ranked = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return Facet(name, tuple(ranked[:SHOWN]), max(0, len(ranked) - SHOWN))
