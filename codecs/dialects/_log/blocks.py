"""Blocks of a text log: where brackets close, and how lines gather until a record is whole.

A block is asked line by line until it ends. One that is cut short gives lines back. A block of the same opener
within these ends before the next line that could open one, for it would only come to the same end: so each line is
fed a bounded number of times, and a log of lines that open and never close stays linear. An object or a tag that is
open ends before a line that is a whole JSON object from its first character on: that is the next record.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

from .._dialect import Block, all_dialects, no_block
from .._events import OpenEvent
from .envelopes import has_time
from .tape import Tape

_OPENING = frozenset(b"{[")
_QUOTE, _BACKSLASH = b'"\\'
# Whole strings, and runs without any quote or bracket.
_OUTSIDE = re.compile(rb'(?>(?:[^"{}\[\]]++|"(?>(?:[^"\\]++|\\.)*)")*)', re.DOTALL)
_INSIDE = re.compile(rb'(?>(?:[^"\\]++|\\.)*)', re.DOTALL)

_OUTSIDE_TEXT = re.compile(r'(?>(?:[^"{}\[\]]++|"(?>(?:[^"\\\n]++|\\.)*)")*)')
_OPENED_BY = {"}": "{", "]": "["}
# A word in capitals and a colon: what a model writes before its message.
_MARK = re.compile(r"\s*+[A-Z]{3,16}+: ")
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


JSON = "json"
Opens = Callable[[str], Block | None]
_BLANK = " \t\r\f\v"


@cache
def _openers() -> tuple[tuple[str, Opens], ...]:
    return tuple((dialect.slug, dialect.opens) for dialect in all_dialects() if dialect.opens is not no_block)


_EVENTS: tuple[tuple[str, Opens], ...] = (("event", OpenEvent.open),)
_BRACED: tuple[tuple[str, Opens], ...] = ((JSON, ObjectBlock.open),)


class Opened(NamedTuple):
    """A block, who opened it, and the test for the line it must end before, if there is one.

    `is_message` where it opens as a message does: no fence and no comment, before which an object is the next record.
    """

    opener: str
    block: Block
    stops_at: Opens | None
    is_message: bool


class Gathering:
    """A block under way: its opener, and where each of its lines ends.

    Offsets count in the stream. `ends` leave the line ends out; `second` is where the second line begins.
    """

    def __init__(self, opened: Opened, first_end: int, next_start: int) -> None:
        self.opener = opened.opener
        self.block = opened.block
        self._stops_at = opened.stops_at
        self._is_message = opened.is_message
        self.ends = [first_end]
        self.second = self.next = next_start
        # Blank lines at the end are not the block's until a line follows them.
        self._full = 1

    def gather(self, tape: Tape, *, is_last: bool) -> int | None:
        """How many lines the block has, or None where more must be fed to tell."""
        options = tape.options
        buffer, base = tape.buffer, tape.offset
        start_of_block = tape.position
        while len(self.ends) < options.max_block_lines:
            start = self.next - base
            end = buffer.find(b"\n", max(start, tape.scanned))
            if end < 0:
                tape.scanned = len(buffer)
                if not is_last:
                    # A line that alone reaches over the limit cannot be part of the block.
                    is_over = base + len(buffer) - start_of_block > options.max_record_bytes + 1
                    return self._cut() if is_over else None
                if start >= len(buffer):
                    break
                end = len(buffer)
            stop = end - 1 if end > start and buffer[end - 1] == 13 else end
            if base + stop - start_of_block > options.max_record_bytes:
                break
            try:
                line = buffer[start:stop].decode()
            except UnicodeDecodeError:
                break
            if (options.prefixes and has_time(line)) or (self._stops_at and self._stops_at(line)):
                break
            if self._is_message and line[:1] == "{" and line[-1] == "}" and is_object(line):
                break
            verdict = self.block.feed(line)
            if verdict == "not":
                break
            self.ends.append(base + stop)
            self.next = base + end + 1
            if line.strip(_BLANK):
                self._full = len(self.ends)
            if verdict == "last":
                return len(self.ends)
        return self._cut()

    def _cut(self) -> int:
        if self.is_whole:
            return self._full
        return max(1, min(self.block.lines_if_cut or 1, self._full))

    @property
    def is_whole(self) -> bool:
        """Whether the lines so far make a record; else another may open a block in their place."""
        return self.block.is_complete or self.block.lines_if_cut is None


def open_block(line: str, cut: dict[str, int], failed: dict[str, int], position: int) -> Opened | None:
    """The block that the line at this offset opens, or None.

    Args:
        line: the line, without its prefix.
        cut: up to which offset a block of an opener was cut short.
        failed: who opened a block with this very line and was cut short.
        position: the offset.
    """
    head = line.lstrip()[:1]
    is_event = OpenEvent.open(line) is not None
    if not head or (head.isascii() and head.isalnum() and "{" not in line and not _MARK.match(line) and not is_event):
        return None
    for opener, opens in _EVENTS if is_event else (_BRACED if head == "{" else ()) + _openers():
        block = None if opener in failed else opens(line)
        if block is not None:
            return Opened(opener, block, opens if cut.get(opener, 0) > position else None, head in "{@")
    return None
