"""Where a JSON value ends: strings and brackets are followed, nothing is parsed, no byte is looked at twice."""

from __future__ import annotations

import re
from typing import Any, Literal

_OPENING = frozenset(b"{[")
_QUOTE, _BACKSLASH = b'"\\'
# Whole strings, and runs without any quote or bracket.
_OUTSIDE = re.compile(rb'(?>(?:[^"{}\[\]]++|"(?>(?:[^"\\]++|\\.)*)")*)', re.DOTALL)
_INSIDE = re.compile(rb'(?>(?:[^"\\]++|\\.)*)', re.DOTALL)

_OUTSIDE_TEXT = re.compile(r'(?>(?:[^"{}\[\]]++|"(?>(?:[^"\\\n]++|\\.)*)")*)')
_OPENED_BY = {"}": "{", "]": "["}
_VALUE_STARTS = frozenset('"{[-0123456789tfnNI')


class Brackets:
    """The way through one value's bytes, in as many steps as they come in. Brackets of both kinds count alike."""

    def __init__(self, depth: int = 0, *, in_string: bool = False) -> None:
        self.depth = depth
        self.in_string = in_string

    def scan(self, buffer: bytearray, start: int) -> tuple[int, bool]:
        """From `start`: the index reached, and whether the value ends there."""
        at, size = start, len(buffer)
        while at < size:
            if self.in_string:
                at = _INSIDE.match(buffer, at).end()  # type: ignore[union-attr]  # it matches the empty string
                if at >= size or buffer[at] == _BACKSLASH:
                    break
                at += 1
                self.in_string = False
                if not self.depth:
                    return at, True
                continue
            at = _OUTSIDE.match(buffer, at).end()  # type: ignore[union-attr]
            if at >= size:
                break
            byte = buffer[at]
            at += 1
            if byte == _QUOTE:
                self.in_string = True
            elif byte in _OPENING:
                self.depth += 1
            else:
                self.depth -= 1
                if self.depth <= 0:
                    return at, True
        return at, False

    def to_state(self) -> dict[str, Any]:
        """The way so far as JSON types."""
        return {"depth": self.depth, "in_string": self.in_string}


def is_object(line: str) -> bool:
    """Whether a line is one JSON object by its brackets, with at most a comma behind it."""
    block = ObjectBlock.open(line)
    return block is not None and block.is_complete


class ObjectBlock:
    """A JSON object in a log of lines: on one line, or printed over several.

    A next line belongs to it only where JSON could go on that way, so that an object cut short does not swallow
    the records after it.
    """

    lines_if_cut: int | None = 1

    def __init__(self) -> None:
        self.is_complete = False
        self._stack: list[str] = []
        self._last = ""

    @classmethod
    def open(cls, line: str) -> ObjectBlock | None:
        """The block that a line opens, or None where no JSON object begins like this."""
        text = line.lstrip()
        block = cls()
        second = text[1:2].strip() or text[1:].lstrip()[:1]
        if text[:1] != "{" or second not in ('"', "}", "") or not block._scan(line):
            return None
        return block

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether this next line goes on with the object, ends it, or cannot be part of it."""
        head = line.lstrip()[:1]
        if not head:
            return "more"
        if not self._may_go_on(head) or not self._scan(line):
            return "not"
        return "last" if self.is_complete else "more"

    def _may_go_on(self, head: str) -> bool:
        if self._stack[-1] == "[":
            return head in _VALUE_STARTS or head in "],"
        return head in '"},:' or (self._last == ":" and head in _VALUE_STARTS)

    def _scan(self, line: str) -> bool:
        """Follow a line; False where it leaves a string open, closes the wrong bracket or goes on behind the object."""
        at, size = 0, len(line)
        stack = self._stack
        while at < size:
            at = _OUTSIDE_TEXT.match(line, at).end()  # type: ignore[union-attr]
            if at >= size:
                break
            character = line[at]
            at += 1
            if character == '"':
                return False
            if character in "{[":
                stack.append(character)
            else:
                if stack.pop() != _OPENED_BY[character]:
                    return False
                if not stack:
                    self.is_complete = line[at:].strip() in ("", ",")
                    return self.is_complete
        stripped = line.rstrip()
        self._last = stripped[-1:] or self._last
        return True
