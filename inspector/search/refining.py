"""Refining a query: the parts of it that hold together, as they are written: each can be shown, taken away, or given
more values; of a query that finds nothing, those without which it would find something; and facets, how the newest
messages that a query means are spread over a few names, counted apart from the page.
"""

from __future__ import annotations

import re
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final, NamedTuple

from django.db.models import IntegerField, Value

from inspector.accounts.models import Workspace
from inspector.search.registry import ALIASES
from inspector.threads.agents import KnownNames, load_labels
from inspector.threads.models import Message
from inspector.threads.terms import fold

from .language import Term, list_tokens, quote
from .registry import list_tallies
from .selectors import fetch, narrow, read_query

_SIGNS: Final = ',():*<>"'
_LEFT_BEFORE: Final = re.compile(r"(?:^|\s)(?:AND|&&)$")
_LEFT_BEHIND: Final = re.compile(r"^(?:AND|&&)\s+")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a query: one term, a group in parentheses, or the whole where `OR` stands between its terms.

    `name` is empty for words and groups; `value` is what stands behind the name, else the stretch without its minus.
    """

    start: int
    end: int
    name: str
    value: str
    is_negated: bool


def cut_parts(query: str) -> list[Part]:
    """The parts of a query that can be understood, in their order.

    Raises:
        QueryError: for one that cannot.
    """
    read_query(query)
    if _is_any(query):
        return [Part(0, len(query), "", query.strip(), is_negated=False)]
    parts: list[Part] = []
    depth, start, sign_end = 0, -1, -1
    for kind, found in list_tokens(query):
        if depth == 0 and kind == "and":
            continue
        if start < 0:
            start, sign_end = found.start(), found.end() if kind == "not" else -1
        depth += (kind == "open") - (kind == "close")
        if kind in ("term", "close") and depth == 0:
            name = (found["name"] or "") if kind == "term" else ""
            is_negated = sign_end >= 0
            value = query[sign_end if is_negated else start : found.end()].lstrip()[len(name) + bool(name) :]
            parts.append(Part(start, found.end(), name, value, is_negated))
            start = -1
    return parts


def _is_any(query: str) -> bool:
    """Whether `OR` stands between its parts, outside of parentheses."""
    depth = 0
    for kind, _ in list_tokens(query):
        depth += (kind == "open") - (kind == "close")
        if kind == "or" and depth == 0:
            return True
    return False


def take_away(query: str, part: Part) -> str:
    """The query without this part, and without an `AND` that joined it alone."""
    before = _LEFT_BEFORE.sub("", query[: part.start].rstrip()).rstrip()
    behind = query[part.end :].lstrip()
    return f"{before} {behind if before else _LEFT_BEHIND.sub('', behind)}".strip()


@dataclass(frozen=True, slots=True)
class Choice:
    """What a query chooses of a name whose values can be combined: its part, and the values as they are written."""

    part: Part
    values: tuple[str, ...]

    @property
    def folded(self) -> frozenset[str]:
        """The values as they are compared."""
        return frozenset(fold(value) for value in self.values)


def find_choice(query: str, name: str) -> Choice | None:
    """The one part of a query that chooses values of this name; None where it has none, or says it in another way.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    tree = read_query(query)
    tops = [part for part in tree.parts if isinstance(part, Term)]
    terms = [term for term in tops if term.name and ALIASES.get(term.name, term.name) == name]
    if len(terms) != 1 or terms[0].is_negated or terms[0].operator or terms[0].is_prefix:
        return None
    (term,) = terms
    found = [part for part in cut_parts(query) if part.start == term.start]
    return Choice(found[0], term.values) if found else None


def choose(query: str, name: str, value: str) -> str:
    """The query with one more value of a name: beside what it chooses of the name already, else as one more part."""
    choice = find_choice(query, name)
    if choice is None:
        written = write_term(name, (value,))
        if written in query.split():
            return query
        return f"({query}) {written}" if _is_any(query) else f"{query} {written}".strip()
    if fold(value) in choice.folded:
        return query
    return _put(query, choice, name, (*choice.values, value))


def unchoose(query: str, name: str, value: str) -> str:
    """The query without a value that it chooses of a name."""
    choice = find_choice(query, name)
    if choice is None:
        return query
    kept = tuple(one for one in choice.values if fold(one) != fold(value))
    return _put(query, choice, name, kept) if kept else take_away(query, choice.part)


def _put(query: str, choice: Choice, name: str, values: tuple[str, ...]) -> str:
    return query[: choice.part.start] + write_term(name, values) + query[choice.part.end :]


def write_term(name: str, values: tuple[str, ...]) -> str:
    """A name with its values as a query has them."""
    return f"{name}:{','.join(_write_value(value) for value in values)}"


def can_be_asked(value: str) -> bool:
    """Whether a query can name this value."""
    return bool(value.strip())


def _write_value(value: str) -> str:
    is_plain = not any(sign in _SIGNS or sign.isspace() for sign in value) and not value.startswith(("=", "-"))
    return value if is_plain and "||" not in value and "&&" not in value else quote(value)


PATIENCE_MS: Final = 700
# Of a longer query the first so many parts are left away, each by itself.
MAX_PARTS: Final = 8


def find_droppable(
    *, workspace: Workspace, query: str, zone: tzinfo | None = None, may_see_secrets: bool = False
) -> list[Part]:
    """The parts of a query without which, each by itself, it finds something; one statement.

    None where that takes longer than a reader would wait.

    Args:
        query: in the search language.
        zone: whose days the days of the query are; UTC where none is given.
        may_see_secrets: as in `selectors.search`.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    parts = cut_parts(query)[:MAX_PARTS]
    if len(parts) < 2:
        return []
    sides = []
    for number, part in enumerate(parts):
        rows = narrow(workspace=workspace, query=take_away(query, part), zone=zone, may_see_secrets=may_see_secrets)
        sides.append(rows.order_by().values_list(Value(number, output_field=IntegerField()))[:1])
    found = fetch(sides[0].union(*sides[1:], all=True), PATIENCE_MS)
    return [parts[number] for (number,) in sorted(found or ())]


# So many messages are counted, and so many values of a name are shown.
COUNTED: Final = 2000
SHOWN: Final = 8

FACETS_PATIENCE_MS: Final = 1500

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
    until = time.monotonic() + FACETS_PATIENCE_MS / 1000
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
