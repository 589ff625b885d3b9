"""The parts of a query that hold together, as they are written: each can be shown, taken away, or given more values;
and of a query that finds nothing, those without which it would find something.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from django.db.models import IntegerField, Value

from inspector.accounts.models import Workspace
from inspector.search.registry import ALIASES
from inspector.threads.rendering.terms import fold

from .language import Term, list_tokens, quote
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
