"""A tag over several lines of a text log: a quoted text may hold line breaks, and a separator may end a line."""

from __future__ import annotations

from typing import Literal

from .notes import UNCLOSED_QUOTE
from .parsing import parse_record
from .tags import SPACES, Tag, find_tags

# A tag that is still open after so many lines, or characters, was cut: nothing more is taken into it.
_MOST_LINES = 100
_MOST_CHARACTERS = 65_536


class OpenTag:
    """The block of a tag whose first line leaves it open.

    Cut before it is complete, it is its first line alone: the lines after it may be records of their own.
    """

    lines_if_cut: int | None = 1

    def __init__(self, line: str) -> None:
        self._lines = [line]
        self._length = len(line)
        self.is_complete = False

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether the next line continues the tag. A line that is a tag by itself does not."""
        self._length += len(line) + 1
        if len(self._lines) >= _MOST_LINES or self._length > _MOST_CHARACTERS or _is_record(line):
            return "not"
        text = "\n".join((*self._lines, line))
        tag = _open_tag(text)
        if tag and not _goes_on(text, tag):
            return "not"
        self._lines.append(line)
        self.is_complete = tag is None
        return "last" if self.is_complete else "more"


def opens(line: str) -> OpenTag | None:
    """The block that a line opens, or None where its tags are closed or its last one is merely cut off."""
    if "@" not in line:
        return None
    tag = _open_tag(line)
    return OpenTag(line) if tag and _goes_on(line, tag) else None


def _open_tag(text: str) -> Tag | None:
    tags = find_tags(text)
    return tags[-1] if tags and tags[-1].fault else None


def _goes_on(text: str, tag: Tag) -> bool:
    """Whether an open tag may go on in the next line: within quotes, or after a separator."""
    return tag.fault is UNCLOSED_QUOTE or (tag.end == len(text) and text.rstrip(SPACES).endswith("|"))


def _is_record(line: str) -> bool:
    record = parse_record(line)
    return bool(record.tags) and record.error is None and not record.prose
