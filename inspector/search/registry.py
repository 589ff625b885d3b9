"""What can be searched by name: the exact terms of messages, and conditions that other apps register."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inspector.threads.searchable import SEARCHABLE, SearchableTerm

from .language import Term

Condition = tuple[str, list[object]]


@dataclass(frozen=True, slots=True)
class SearchableCondition:
    """A name whose condition is SQL over the message `message`; `write` gives the SQL and its parameters."""

    name: str
    about: str
    values: tuple[str, ...] | None
    write: Callable[[Term], Condition]


_TERMS: dict[str, SearchableTerm] = {term.name: term for term in SEARCHABLE}
_CONDITIONS: dict[str, SearchableCondition] = {}


def register(condition: SearchableCondition) -> None:
    """Add a name from an app above search.

    Raises:
        ValueError: for a name that exists; a mistake that stops the start.
    """
    if condition.name in _TERMS or condition.name in _CONDITIONS:
        raise ValueError(f"{condition.name}: is already a name of the search language")
    _CONDITIONS[condition.name] = condition


def find_term(name: str) -> SearchableTerm | None:
    """The exact term of that name, or None."""
    return _TERMS.get(name)


def get_condition(name: str) -> SearchableCondition:
    """The registered condition of that name."""
    return _CONDITIONS[name]


def names() -> dict[str, str]:
    """Every name with what it means, in the order of their registration."""
    terms = {term.name: term.about for term in _TERMS.values()}
    return terms | {condition.name: condition.about for condition in _CONDITIONS.values()}
