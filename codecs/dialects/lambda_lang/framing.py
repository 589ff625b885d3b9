"""Blocks over several lines: a `{…}` that stays open, and a table whose rows follow."""

from __future__ import annotations

import re
from typing import Literal

from .._dialect import Block

# A block that is not closed after so many lines is not one.
MAX_LINES = 400
_OPENS = re.compile(
    r"\s*(?:[A-Za-z][\w\-]{0,63}(?:[ \t]*->[ \t]*(?:[A-Za-z][\w\-]{0,63}|\*))?:[ \t]+)?"
    r"(?:@\S+[ \t]*)?(?:[?!.~<>][A-Za-z0-9/*$^_\-:]{0,80})?"
    r"\{\s*(?:[a-z]\w{0,31}\s*:(?!//).*)?\Z"
)
_BRACE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')


def _count_braces(line: str) -> int:
    return sum({"{": 1, "}": -1}.get(found[0], 0) for found in _BRACE.finditer(line))


class BraceBlock:
    """A statement whose braces are still open at the end of its first line."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.lines = 1
        self.is_complete = False
        # An unclosed block is its first line alone: the lines after it are records of their own.
        self.lines_if_cut: int | None = 1

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether the next line belongs to the block."""
        self.lines += 1
        if self.lines > MAX_LINES:
            return "not"
        self.depth += _count_braces(line)
        if self.depth <= 0:
            self.is_complete = True
            return "last"
        return "more"


class TableBlock:
    """A table whose rows may stand on lines of their own."""

    is_complete = True
    lines_if_cut: int | None = None

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Rows begin and end with double bars."""
        row = line.strip()
        return "more" if row.startswith("||") and row.endswith("||") and len(row) > 4 else "not"


def open_block(line: str) -> Block | None:
    """The block that a line opens, or None: a brace of this dialect left open, or a table."""
    row = line.strip()
    if row.startswith("||") and row.endswith("||") and len(row) > 4:
        return TableBlock()
    if "{" not in row:
        return None
    depth = _count_braces(row)
    if depth <= 0 or not _OPENS.match(row):
        return None
    # A bare brace is JSON more often than not: without a type it must name its first key, unquoted.
    if row.startswith("{") and not re.match(r"\{\s*[a-z]\w{0,31}\s*:", row):
        return None
    return BraceBlock(depth)
