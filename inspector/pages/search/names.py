"""For what a hit of `from:` or `to:` is found, where it is not its name on the wire: who is only called so, by whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from inspector.search.language import Term
from inspector.search.parts import can_be_asked, find_choice, write_term
from inspector.search.terms import ALIASES
from inspector.threads.rendering.terms import fold

from ..agents.marks import AgentMark
from ..shown.told import Line

SIDES: Final = ("from", "to")
Asked = Mapping[str, frozenset[str]]


def read_asked(terms: Iterable[Term]) -> Asked:
    """The names that a query asks for on either side, as they are compared."""
    found: dict[str, set[str]] = {side: set() for side in SIDES}
    for term in terms:
        side = ALIASES.get(term.name or "", term.name or "")
        if side in found and not (term.is_negated or term.operator or term.is_prefix):
            found[side].update(fold(value) for value in term.values)
    return {side: frozenset(names) for side, names in found.items()}


def list_called(line: Line, asked: Asked) -> list[AgentMark]:
    """Who in a line is called by a name that was asked for, and bears another."""
    marks = {"from": [line.sender] if line.sender else [], "to": line.receivers}
    return [
        mark
        for side in SIDES
        for mark in dict.fromkeys(marks[side])
        if mark.label and fold(mark.label) in asked[side] and fold(mark.name) not in asked[side]
    ]


def describe_literal(query: str, asked: Asked) -> list[dict[str, Any]]:
    """For each side that is asked for: the same query for those alone who bear the names on the wire themselves."""
    found = []
    for side in SIDES:
        choice = find_choice(query, side) if asked[side] else None
        if choice is None or not all(map(can_be_asked, choice.values)):
            continue
        literal = write_term(side, choice.values).replace(":", ":=", 1)
        start, end = choice.part.start, choice.part.end
        found.append({"literal": literal, "query": query[:start] + literal + query[end:]})
    return found
