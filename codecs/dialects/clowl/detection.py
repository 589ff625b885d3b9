"""How a text gives itself away as CLowl, and where an object that a log spreads over several lines ends."""

from __future__ import annotations

import re
from collections.abc import Set
from itertools import islice
from typing import Literal

from .._dialect import Block
from .._record import Candidate
from .parts import OPENER, RULES

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
_MAX_MARKS = 20_000


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
    for found in islice(_MARK.finditer(wire, start), _MAX_MARKS):
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


# A message over more lines than this is taken as cut; the framer bounds its bytes.
MAX_LINES = 20_000

_TOKEN = re.compile(r'"(?>(?:[^"\\]++|\\.)*)("?)|([{\[])|([}\]])|([^\s"{}\[\]])', re.DOTALL)
_OPENS = re.compile(r'[ \t]*+(?:\[[ \t]*+)?(?:\{[ \t]*+(?:"|\Z)|\Z)')
_STARTS_ANEW = re.compile(r'\{[ \t]*+"(?:clowl|cl)"[ \t]*+:')
_VALUE_STARTS = frozenset('"{[-0123456789tfn')


def open_block(line: str) -> Block | None:
    """The block that a line opens: an object or list left open, a comment before an object, or a code fence."""
    text = line.strip()
    if text.startswith("```"):
        return _Fence() if text[3:].strip().lower() in ("", "json", "clowl") else None
    if text.startswith("//"):
        return _Object(is_comment=True)
    if not text or text[0] not in "{[" or not _OPENS.match(text):
        return None
    block = _Object()
    block.scan(text)
    return None if block.is_complete or block.is_broken else block


class _Object:
    """Brackets and strings counted line by line; a line that JSON does not allow here is not part of the object."""

    def __init__(self, *, is_comment: bool = False) -> None:
        self.is_complete = is_comment
        self.lines_if_cut: int | None = None
        self.is_broken = False
        self._is_comment = is_comment
        self._open: list[str] = []
        self._last = ""
        self._lines = 1

    def scan(self, line: str) -> None:
        """Count the brackets of a line."""
        for found in _TOKEN.finditer(line):
            if found[2]:
                self._open.append(found[2])
                self._last = found[2]
            elif found[3]:
                if not self._open:
                    self.is_broken = True
                    return
                self._open.pop()
                self._last = found[3]
            elif found[4]:
                self._last = found[4]
            else:
                # A JSON string ends on the line on which it began: an open one was cut.
                self.is_broken = not found[1]
                self._last = '"'
            if len(self._open) > RULES.max_depth:
                self.is_broken = True
        self.is_complete = not self._open and not self.is_broken

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether this next line belongs to the object."""
        text = line.strip()
        if self._is_comment:
            return self._feed_comment(text)
        if not text:
            return "more"
        if self.is_broken or self._lines >= MAX_LINES or not self._may_follow(text):
            return "not"
        self._lines += 1
        self.scan(text)
        return "last" if self.is_complete else "more"

    def _feed_comment(self, text: str) -> Literal["more", "last", "not"]:
        if text.startswith("//"):
            return "more"
        if not OPENER.match(text) and text != "{":
            return "not"
        self._is_comment = False
        self.scan(text)
        return "last" if self.is_complete else "more"

    def _may_follow(self, text: str) -> bool:
        """Whether JSON may go on with this line, after the last character and within the innermost bracket."""
        first, inside = text[0], self._open[-1] if self._open else ""
        if inside == "{":
            if self._last == ":":
                return first in _VALUE_STARTS
            if self._last in "{,":
                return first == '"' or (first == "}" and self._last == "{")
            return first in ",}:"
        if _STARTS_ANEW.match(text) and self._last not in "[,":
            return False
        if self._last in "[,":
            return first in _VALUE_STARTS or first == "]"
        return first in ",]"


class _Fence:
    """A code fence: the record ends with the fence's own closing line."""

    def __init__(self) -> None:
        self.is_complete = False
        self.lines_if_cut: int | None = 1
        self._lines = 1

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether this next line belongs to the fence."""
        self._lines += 1
        if line.strip() == "```":
            self.is_complete, self.lines_if_cut = True, None
            return "last"
        return "more" if self._lines < MAX_LINES else "not"
