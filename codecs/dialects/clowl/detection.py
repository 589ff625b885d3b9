"""How a text gives itself away as CLowl: by the keys of its first object, looked for and not parsed."""

from __future__ import annotations

import re

from .._record import Candidate

VERSIONED = Candidate(dialect="clowl", score=0.98, why="an object with CLowl's version key")
_COORDINATED = Candidate(dialect="clowl", score=0.95, why="an object with the keys of the coordination envelope")
_SEMANTIC = Candidate(dialect="clowl", score=0.85, why="an object with the keys of CLowl-S")
_UNVERSIONED = Candidate(dialect="clowl", score=0.75, why="an object with CLowl's keys and no version")
_WITHIN = Candidate(dialect="clowl", score=0.6, why="an object with CLowl's version key within other text")

_VERSION_KEY = re.compile(r'"(?:clowl|cl)"[ \t\r\n]*+:')
_HEAD = re.compile(r"\ufeff?(?>(?:[ \t\r\n]++|//[^\n]*+\n|```[a-z]*+[ \t\r]*+\n|\[(?=[ \t\r\n]*+\{))*)\{")
_WITHIN_TEXT = re.compile(r'\{[ \t\r\n]*+"(?:clowl|cl)"[ \t\r\n]*+:')
_MARKS = frozenset("{[/`\ufeff \t\r\n")
# So far into a text the keys of its first object are looked for; a version key may stand anywhere in it.
_NEAR = 4_096


def sniff(wire: str) -> Candidate | None:
    """How much a text looks like CLowl: by the keys of its first object, or of one within other text."""
    if wire[:9] == '{"clowl":':
        return VERSIONED
    if wire[:1] in _MARKS and _HEAD.match(wire):
        return _sniff_object(wire)
    if '"clowl"' in wire or '"cl"' in wire:
        return _WITHIN if _WITHIN_TEXT.search(wire) else None
    return None


def _sniff_object(wire: str) -> Candidate | None:
    if _VERSION_KEY.search(wire):
        return VERSIONED
    near = wire[:_NEAR]
    if '"semantic"' in near and '"routing"' in near:
        return _COORDINATED
    if '"p"' not in near:
        return None
    if '"task"' in near and '"from"' in near and '"to"' in near and '"cid"' not in near:
        return _SEMANTIC
    held = sum(key in near for key in ('"from"', '"to"', '"cid"', '"body"', '"mid"'))
    return _UNVERSIONED if held >= 3 else None
