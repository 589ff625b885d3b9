"""How a text gives itself away as nSLIP, and where a tag that a log spreads over several lines ends."""

from __future__ import annotations

import re
from typing import Literal

from .._record import Candidate
from .fields import TagRead
from .parsing import parse_record
from .tables import HEADER, UNCLOSED_QUOTE
from .tags import OPENER, SEPARATORS, SPACES, Tag, find_tags, has_header

_WHOLE = Candidate(dialect="nslip", score=0.99, why="the text is a nSLIP tag with its complete header")
_LEGACY = Candidate(dialect="nslip", score=0.97, why="the text is a nSLIP tag with the lower-case header of v0.0")
_SEVERAL = Candidate(dialect="nslip", score=0.97, why="the text is nothing but nSLIP tags")
_PARTIAL = Candidate(dialect="nslip", score=0.9, why="the text is a nSLIP tag without its complete header")
_OPEN = Candidate(dialect="nslip", score=0.9, why="the text starts as a nSLIP tag that is not closed")
_AMONG_PROSE = Candidate(dialect="nslip", score=0.8, why="a nSLIP tag stands among other text")
_PARTIAL_AMONG_PROSE = Candidate(dialect="nslip", score=0.6, why="part of a nSLIP header stands among other text")
_OPEN_AMONG_PROSE = Candidate(dialect="nslip", score=0.6, why="a nSLIP tag among other text is not closed")
# A tag without its header is a guess that the conversation may settle.
_SHAPE = Candidate(dialect="nslip", score=0.4, why="the text has the shape of a nSLIP tag, but not its header")

# Nearly every tag is written like this; the pattern spares them the full parse.
_NUMBER = r"[0-9A-Za-z]{1,10}+"
USUAL = re.compile(rf"@a[0-9A]\|f[0-4]\|c({_NUMBER})\|S{_NUMBER}\|d{_NUMBER}\|T{_NUMBER}(?:\|[gkprqsuet]|#)", re.ASCII)

# A text is judged by its beginning, unless a tag opens there whose header goes on behind an endless number.
_JUDGED = 65_536


def sniff(wire: str) -> Candidate | None:
    """The candidate with its score and reason, or None where no tag opens."""
    if "@" not in wire:
        return None
    if wire[-1] == "#" and USUAL.match(wire) and wire.count("@") == 1:
        return _WHOLE
    found = _judge(wire[:_JUDGED])
    if found is not None or len(wire) <= _JUDGED:
        return found
    openers = OPENER.finditer(wire, 0, _JUDGED)
    return _judge(wire) if any(has_header(wire, opener.start()) for opener in openers) else None


def _judge(text: str) -> Candidate | None:
    record = parse_record(text)
    tags = record.tags
    if not tags:
        return None
    is_whole = not record.prose
    if tags[-1].tag.fault:
        if is_whole or SEPARATORS.issuperset(text[: tags[0].tag.start]):
            return _OPEN
        return _OPEN_AMONG_PROSE if _is_complete(tags[-1]) else None
    if not has_header(text, tags[0].tag.start):
        return _SHAPE
    if not all(_is_complete(tag) for tag in tags):
        return _PARTIAL if is_whole else _PARTIAL_AMONG_PROSE
    if not is_whole:
        return _AMONG_PROSE
    if len(tags) > 1:
        return _SEVERAL
    return _LEGACY if tags[0].is_legacy else _WHOLE


def _is_complete(tag: TagRead) -> bool:
    return tag.used().keys() >= set(HEADER)


# A tag that is still open after so many lines, or characters, was cut: nothing more is taken into it.
_MAX_LINES = 100
_MAX_CHARACTERS = 65_536


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
        if len(self._lines) >= _MAX_LINES or self._length > _MAX_CHARACTERS or _is_record(line):
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
