"""How a text gives itself away as CLowl: by the keys of its first object, looked for and not parsed."""

from __future__ import annotations

import re
from collections.abc import Container

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
# So far into a text the keys of its first object are looked for at once; a version key may stand anywhere in it.
_NEAR = 4_096
# What a string or an object begins and ends with; what ends a string, and what is taken for text within one.
_MARK = re.compile(r'["{}\[\]]')
_WITHIN_STRING = re.compile(r'["\\]')
_COLON = re.compile(r"[ \t\r\n]*+:")
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
    if _VERSION_KEY.search(wire):
        return VERSIONED
    found = _judge(wire[:_NEAR])
    if found is not None or len(wire) <= _NEAR or not ('"p"' in wire or '"semantic"' in wire):
        return found
    return _judge(_find_keys(wire, start))


def _judge(held: Container[str]) -> Candidate | None:
    if '"semantic"' in held and '"routing"' in held:
        return _COORDINATED
    if '"p"' not in held:
        return None
    if '"task"' in held and '"from"' in held and '"to"' in held and '"cid"' not in held:
        return _SEMANTIC
    count = sum(key in held for key in ('"from"', '"to"', '"cid"', '"body"', '"mid"'))
    return _UNVERSIONED if count >= 3 else None


def _find_keys(wire: str, start: int) -> set[str]:
    """The keys of that object itself, quotes included, however long the values between them are."""
    keys: set[str] = set()
    depth, opened, at = 0, -1, start
    for _ in range(_MOST_MARKS):
        mark = (_MARK if opened < 0 else _WITHIN_STRING).search(wire, at)
        if mark is None:
            break
        at = mark.end()
        if opened >= 0 and mark[0] == "\\":
            at += 1
        elif opened >= 0:
            if not depth and at - opened < _NEAR and _COLON.match(wire, at):
                keys.add(wire[opened:at])
            opened = -1
        elif mark[0] == '"':
            opened = mark.start()
        else:
            depth += 1 if mark[0] in "{[" else -1
            if depth < 0:
                break
    return keys
