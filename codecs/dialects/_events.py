"""Server-sent events in one text: where the JSON of each event stands.

Specification: HTML Living Standard, 9.2.6. Data that stand on several lines are not put together.
"""

from __future__ import annotations

import re
from typing import Final, Literal

# The data of an event that begin as JSON does; a byte order mark may stand before the first.
_DATA: Final = re.compile(r"^\ufeff?data:[ \t]*+(?!\[DONE\])([{\[][^\r\n]*+)", re.MULTILINE)
# What says of an event what it is, before its data.
_HEAD: Final = re.compile(r"(?:event|id|retry):")
_LINE: Final = re.compile(r"[^\r\n]++")
# What is no text of its own: white space, fields beside data, comments, the mark of the end, and what should be JSON.
_MUTE: Final = re.compile(r"\ufeff?(?:[ \t]*+|(?:event|id|retry)?:.*+|data:[ \t]*+(?:[{\[].*+)?)", re.DOTALL)


def find_data(text: str) -> list[tuple[int, int]] | None:
    """The stretches [start, end) of the data that begin as JSON does; None where the text is no stream of events.

    Beside several there may be other text, such as the head of an answer; beside a single one only what is mute.
    """
    found = [data.span(1) for data in _DATA.finditer(text)] if "data:" in text else []
    if len(found) == 1:
        start, end = found[0]
        return found if is_mute(text[:start]) and is_mute(text[end:]) else None
    return found or None


def is_mute(text: str) -> bool:
    """Whether a stretch beside data that were read holds no text."""
    return all(_MUTE.fullmatch(line[0]) for line in _LINE.finditer(text))


class OpenEvent:
    """The block of an event in a log of lines: its name or number, and the line of its data."""

    lines_if_cut: int | None = 1

    def __init__(self) -> None:
        self.is_complete = False

    @classmethod
    def open(cls, line: str) -> OpenEvent | None:
        """The block that a line opens, or None where it is no field before data."""
        return cls() if _HEAD.match(line) else None

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether the next line is another field, the data, or neither."""
        self.is_complete = _DATA.match(line) is not None
        return "last" if self.is_complete else "more" if _HEAD.match(line) else "not"
