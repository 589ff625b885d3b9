"""A CLowl object that a text log spreads over several lines: where it ends, and when it was cut short."""

from __future__ import annotations

import re
from typing import Literal

from .._dialect import Block
from .parts import OPENER, RULES

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
