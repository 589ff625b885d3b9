"""Records of several lines in a log of lines: a JSON object printed over lines, or whatever a dialect opens.

A block is asked line by line until it ends. One that is cut short gives lines back; the one who opened it may not
open another within these, for it would only come to the same end, and a log of such lines stays linear.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from .._dialect import Block, no_block
from .._registry import all_dialects
from .brackets import ObjectBlock
from .prefixes import has_time
from .tape import Tape

JSON = "json"
_BLANK = " \t\r\f\v"


@cache
def _openers() -> tuple[tuple[str, Callable[[str], Block | None]], ...]:
    return tuple((dialect.slug, dialect.opens) for dialect in all_dialects() if dialect.opens is not no_block)


class Gathering:
    """A block under way: its opener, and where each of its lines ends.

    Offsets count in the stream. `ends` leave the line ends out; `second` is where the second line begins.
    """

    def __init__(self, opener: str, block: Block, first_end: int, next_start: int) -> None:
        self.opener = opener
        self.block = block
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
            if (options.prefixes and has_time(line)) or (verdict := self.block.feed(line)) == "not":
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


def open_block(line: str, barred: dict[str, int], position: int) -> tuple[str, Block] | None:
    """Who opens a block with this line, and the block. `barred` holds until which offset one may not open."""
    head = line.lstrip()[:1]
    if not head or (head.isascii() and head.isalnum() and "{" not in line):
        return None
    if head == "{" and barred.get(JSON, 0) <= position:
        found = ObjectBlock.open(line)
        if found:
            return (JSON, found)
    for slug, opens in _openers():
        if barred.get(slug, 0) <= position:
            block = opens(line)
            if block is not None:
                return slug, block
    return None
