"""The search language: words, phrases and `name:value`, each with its place, and errors that suggest. No database.

    refactor "exact phrase" pre* dialect:nslip,clowl from:oscar -reviewed:yes

Terms are ANDed; `-` before a term means not. A comma gives alternatives of one name. `*` after a word is a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

MOST_CHARACTERS: Final = 2000
MOST_TERMS: Final = 40
_TOKEN: Final = re.compile(r'\s+|(-?)(?:([^\s":]+):)?(?:"([^"]*)("?)|([^\s"]+))?')


class QueryError(Exception):
    """A query that cannot be understood: the sentence says what was meant, `start` and `end` where it stands.

    `instead`, where something near is known, is what could stand there in its place.
    """

    def __init__(self, text: str, start: int, end: int, instead: str = "") -> None:
        super().__init__(text)
        self.start = start
        self.end = end
        self.instead = instead


@dataclass(frozen=True, slots=True)
class Term:
    """One term: words (name is None) or a name with its alternatives; where it stands in the query."""

    name: str | None
    values: tuple[str, ...]
    is_negated: bool
    is_phrase: bool
    is_prefix: bool
    start: int
    end: int


def parse(text: str, *, names: Mapping[str, str] | Iterable[str]) -> tuple[Term, ...]:
    """The terms of a query.

    Args:
        text: the query as typed.
        names: the names that may be filtered by.

    Raises:
        QueryError: for an unknown name, an empty value, an open quotation mark, or too long a query.
    """
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"a query has at most {MOST_CHARACTERS} characters", MOST_CHARACTERS, len(text))
    known = list(names)
    terms: list[Term] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.end() == at:
            raise QueryError(f"{text[at]!r} cannot stand here", at, at + 1)
        if not found[0].isspace():
            terms.append(_make_term(found, known))
        at = found.end()
    if len(terms) > MOST_TERMS:
        raise QueryError(f"a query has at most {MOST_TERMS} terms", terms[MOST_TERMS].start, len(text))
    return tuple(terms)


def _make_term(found: re.Match[str], known: list[str]) -> Term:
    minus, name, quoted, closing, bare = found.groups()
    start, end = found.span()
    if quoted is not None and not closing:
        raise QueryError('the quotation mark is not closed: add " at the end of the phrase', start, end)
    if name is not None and name not in known:
        close = get_close_matches(name.casefold(), known, n=1)
        hint = f"did you mean {close[0]}:?" if close else f"names are {', '.join(known)}"
        instead = found[0].replace(f"{name}:", f"{close[0]}:", 1) if close else ""
        raise QueryError(f"there is no {name}: to search by; {hint}", start, end, instead)
    value = quoted if quoted is not None else bare
    if not value:
        raise QueryError(f"{name}: needs a value" if name else "a minus needs a term after it", start, end)
    is_prefix = quoted is None and value.endswith("*") and len(value) > 1
    if is_prefix:
        value = value[:-1]
    values = tuple(part for part in value.split(",") if part) if name and quoted is None else (value,)
    if not values:
        raise QueryError(f"{name}: needs a value", start, end)
    return Term(name, values, bool(minus), quoted is not None, is_prefix, start, end)


def check_value(term: Term, allowed: Iterable[str]) -> None:
    """Refuse a value that can never be found.

    Raises:
        QueryError: for a value that is not allowed, with the nearest one that is.
    """
    choices = list(allowed)
    for value in term.values:
        if value.casefold() not in choices:
            close = get_close_matches(value.casefold(), choices, n=1)
            hint = f"did you mean {close[0]}?" if close else f"values are {', '.join(choices)}"
            sign = "-" if term.is_negated else ""
            better = ",".join(close[0] if one == value else one for one in term.values) if close else ""
            instead = f"{sign}{term.name}:{better}" if close else ""
            raise QueryError(f"{term.name}: has no {value!r}; {hint}", term.start, term.end, instead)
