"""Facets: how the newest messages that a query means are spread over a few names. Counted apart from the page."""

from __future__ import annotations

import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final, NamedTuple

from inspector.accounts.models import Workspace
from inspector.threads.agents.names import KnownNames, load_labels
from inspector.threads.models import Message
from inspector.threads.rendering.terms import fold

from .parts import find_choice, take_away
from .registry import list_tallies
from .selectors import fetch, narrow

# So many messages are counted, and so many values of a name are shown.
COUNTED: Final = 2000
SHOWN: Final = 8
PATIENCE_MS: Final = 1500
SEVERITY_NAMES: Final = {value: label for value, label in Message.Severity.choices if value}


@dataclass(frozen=True, slots=True)
class Count:
    """A value, and how many of the counted messages choosing it finds; of one that is not chosen beside others that
    are, how many more.

    `called` says of agents who among these bears another name on the wire and is only called so: (name, dialect, in
    how many).
    """

    value: str
    count: int
    is_chosen: bool
    called: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Facet:
    """One name and its commonest values with their numbers; `more` is how many other values there are.

    Where the query chooses of it already, it `adds`: it is counted as if nothing were chosen of it. `is_all` says
    whether every message was counted, else the newest.
    """

    name: str
    values: tuple[Count, ...]
    more: int
    adds: bool
    is_all: bool


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

    Args:
        query: in the search language.
        zone: whose days the days of the query are.
        may_see_secrets: whether the reader may see masked characters.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    until = time.monotonic() + PATIENCE_MS / 1000
    tallies = list_tallies()

    def read(asked: str) -> list[Row] | None:
        left_ms = int((until - time.monotonic()) * 1000)
        if left_ms <= 0:
            return None
        rows = narrow(workspace=workspace, query=asked, zone=zone, may_see_secrets=may_see_secrets)
        ordered = rows.order_by("-order_time", "-id").values_list(*_COLUMNS, *tallies.values())
        found = fetch(ordered[: COUNTED + 1], left_ms)
        if found is None:
            return None
        width = len(_COLUMNS)
        return [Row._make((*each[:width], dict(zip(tallies, each[width:], strict=True)))) for each in found]

    found = read(query)
    if found is None:
        return None
    known = KnownNames(load_labels(workspace_id=workspace.pk))
    facets = []
    for name in (*_NAMES, *tallies):
        choice = find_choice(query, name)
        wider = read(take_away(query, choice.part)) if choice else None
        rows = found if wider is None else wider
        tally = _Tally(choice.values if choice else ())
        for row in rows[:COUNTED]:
            tally.add(_find_values(row, name, known))
        # What is not chosen is counted among more than was found, or else not at all.
        facet = tally.make_facet(name, is_all=len(rows) <= COUNTED, has_others=choice is None or wider is not None)
        facets.append(facet)
    shown = tuple(facet for facet in facets if facet.values)
    return Facets(shown, min(len(found), COUNTED), len(found) <= COUNTED)


class Row(NamedTuple):
    """What is counted of a message."""

    dialect: str
    performative: str | None
    severity: int
    channel_id: uuid.UUID
    sender: str
    receivers: list[str]
    is_broadcast: bool
    tallied: Mapping[str, Sequence[str]]


_COLUMNS: Final = ("dialect", "performative", "severity", "channel", "sender", "receivers", "is_broadcast")
_NAMES: Final = ("dialect", "performative", "from", "to", "severity")


class _Value(NamedTuple):
    """What a message holds under a name: as pages show it, all it is found by (folded), and as the wire says it."""

    shown: str
    found_by: frozenset[str]
    name: str
    dialect: str = ""


def _find_values(row: Row, name: str, known: KnownNames) -> Iterator[_Value]:
    if name in ("from", "to"):
        broadcast = ("*",) if row.is_broadcast else ()
        said = (row.sender,) if name == "from" else (*row.receivers, *broadcast)
        for each in dict.fromkeys(said):
            if each:
                where = (row.channel_id, row.dialect, each)
                yield _Value(known.show(*where), known.find(*where), each, row.dialect)
        return
    if name in row.tallied:
        for value in row.tallied[name]:
            yield _Value(value, frozenset((fold(value),)), value)
        return
    value = {
        "dialect": row.dialect,
        "performative": row.performative or "malformed",
        "severity": SEVERITY_NAMES.get(row.severity, ""),
    }[name]
    if value:
        yield _Value(value, frozenset((fold(value),)), value)


class _Tally:
    """Counts the values of a name, each in as many messages as its condition finds."""

    def __init__(self, chosen: Iterable[str]) -> None:
        self._chosen = {fold(value): value for value in chosen}
        self._spelled: dict[str, Counter[str]] = defaultdict(Counter)
        self._counts: Counter[str] = Counter()
        self._called: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)

    def add(self, values: Iterable[_Value]) -> None:
        """What one message holds."""
        called: dict[str, tuple[str, str]] = {}
        own: set[str] = set()
        found: set[str] = set()
        for value in values:
            self._spelled[fold(value.shown)][value.shown] += 1
            own.add(fold(value.name))
            found |= value.found_by
            called |= dict.fromkeys(value.found_by, (value.name, value.dialect))
        if not self._chosen.keys().isdisjoint(found):
            # It is found already: another value that holds it finds nothing more.
            found &= self._chosen.keys()
        self._counts.update(found)
        # A message in which somebody bears the name is not found for the sake of who is only called so.
        for text in found - own:
            self._called[text][called[text]] += 1

    def make_facet(self, name: str, *, is_all: bool, has_others: bool) -> Facet:
        """What is chosen, and the commonest of what pages show."""
        others = self._spelled.keys() - self._chosen.keys() if has_others else set()
        ranked = sorted((text for text in others if self._counts[text]), key=lambda text: (-self._counts[text], text))
        values = tuple(self._count(text) for text in (*self._chosen, *ranked[:SHOWN]))
        return Facet(name, values, max(0, len(ranked) - SHOWN), adds=bool(self._chosen), is_all=is_all)

    def _count(self, text: str) -> Count:
        spelled = self._spelled.get(text)
        value = min(spelled.items(), key=lambda item: (-item[1], item[0]))[0] if spelled else self._chosen[text]
        called = tuple((said, dialect, count) for (said, dialect), count in self._called[text].most_common())
        return Count(value, self._counts[text], text in self._chosen, called)
