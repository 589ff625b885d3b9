"""How a text gives itself away as CLowl: by the keys of its first object, looked for and not parsed."""

from __future__ import annotations

import re
from collections.abc import Set
from itertools import islice

from .._record import Candidate

VERSIONED = Candidate(dialect="clowl", score=0.98, why="an object with CLowl's version key")
_COORDINATED = Candidate(dialect="clowl", score=0.95, why="an object with the keys of the coordination envelope")
_SEMANTIC = Candidate(dialect="clowl", score=0.85, why="an object with the keys of CLowl-S")
_UNVERSIONED = Candidate(dialect="clowl", score=0.75, why="an object with CLowl's keys and no version")
_WITHIN = Candidate(dialect="clowl", score=0.6, why="an object with CLowl's version key within other text")

_VERSION_KEY = re.compile(r'"(?:clowl|cl)"[ \t\r\n]*+:')
_VERSION_NAMES = frozenset(('"clowl"', '"cl"'))
_HEAD = re.compile(r"\ufeff?(?>(?:[ \t\r\n]++|//[^\n]*+\n|```[a-z]*+[ \t\r]*+\n|\[(?=[ \t\r\n]*+\{))*)\{")
_WITHIN_TEXT = re.compile(r'\{[ \t\r\n]*+"(?:clowl|cl)"[ \t\r\n]*+:')
_MARKS = frozenset("{[/`\ufeff \t\r\n")
# So far into a text the keys of its first object are looked for at once; a version key may stand anywhere in it.
_NEAR = 4_096
# A string, as a key where a colon follows it, or what an object or a list begins and ends with.
_MARK = re.compile(r'"(?>(?:[^"\\]++|\\.)*)(?:"|\Z)(?:(?=[ \t\r\n]*+:)|(?P<value>))|[{}\[\]]', re.DOTALL)
# How many of these are passed to find keys that stand behind long values: an id of a megabyte is one or two.
_MOST_MARKS = 20_000


def sniff(wire: str) -> Candidate | None:
    """How much a text looks like CLowl: by the keys of its first object, or of one within other text."""
    if wire[:9] == '{"clowl":':
        return VERSIONED
    if wire[:1] in _MARKS and (head := _HEAD.match(wire)):
        return _sniff_object(wire, head.end())
    if '"clowl"' in wire or '"cl"' in wire:
        return _WITHIN if _WITHIN_TEXT.search(wire) else None
    return None


def _sniff_object(wire: str, start: int) -> Candidate | None:
    """By the keys of the object whose members begin at `start`."""
    version = _VERSION_KEY.search(wire)
    if version and "{" not in (before := wire[start : version.start()]) and "[" not in before:
        return VERSIONED
    if version and not _VERSION_NAMES.isdisjoint(_find_keys(wire, start, beside=True)):
        return VERSIONED
    return _judge(_find_keys(wire, start)) if '"p"' in wire or '"semantic"' in wire else None


def _judge(held: Set[str]) -> Candidate | None:
    if '"semantic"' in held and '"routing"' in held:
        return _COORDINATED
    if '"p"' not in held:
        return None
    if '"task"' in held and '"from"' in held and '"to"' in held and '"cid"' not in held:
        return _SEMANTIC
    count = sum(key in held for key in ('"from"', '"to"', '"cid"', '"body"', '"mid"'))
    return _UNVERSIONED if count >= 3 else None


def _find_keys(wire: str, start: int, *, beside: bool = False) -> set[str]:
    """The keys of that object itself, quotes included, however long the values between them are.

    With `beside`, those of the objects that follow it too.
    """
    keys: set[str] = set()
    depth = 0
    for found in islice(_MARK.finditer(wire, start), _MOST_MARKS):
        mark = found[0]
        if mark[0] == '"':
            if not depth and found["value"] is None and len(mark) < _NEAR:
                keys.add(mark)
        elif mark in "{[":
            depth += 1
        else:
            depth = max(-1, depth - 1)
            if depth < 0 and not beside:
                break
    return keys
