"""How a text gives itself away as SLIP, and where a message that begins with its thought ends."""

from __future__ import annotations

import re
from typing import Literal

from .._record import Candidate
from .lines import CHOSEN, OPENING, THOUGHT, Line, parse_record
from .tables import FORCES, NEWEST


def _make(score: float, why: str) -> Candidate:
    return Candidate(dialect="slip", score=score, why=why)


_WHOLE = _make(0.99, "the text is nothing but lines of SLIP with acts of its tables")
_AMONG_PROSE = _make(0.8, "a line of SLIP with an act of its tables stands among other text")
_OWN_ACT = _make(0.6, "the text has a line of SLIP whose act may be an installation's own")
# A line that is cut is a guess that the conversation may settle; a sentence that begins so is likelier prose.
_SHAPE = _make(0.4, "the text begins as a line of SLIP and ends before its act")
_LOOSE = _make(0.25, "a line begins as SLIP, but goes on as prose may")

# What no word of a sentence looks like: a name of two words in one, or a number of a table.
_COINED = re.compile(r"[A-Z][a-z]++[A-Z0-9][A-Za-z0-9]*+\Z|0x[0-9A-Fa-f]{1,8}\Z")
_CUT = re.compile(r"[\w-]++(?>(?:[.\s]++[\w-]++)*)\s*+\Z")
# A text is judged by its beginning.
_JUDGED = 65_536


def sniff(wire: str) -> Candidate | None:
    """The candidate with its score and reason, or None where no line opens."""
    if "SLIP" not in wire:
        return None
    text = wire[:_JUDGED]
    record = parse_record(text)
    if not record.lines:
        return None
    if record.error:
        is_alone = len(record.parts) == 1 and record.lines[0].version in ("v1", NEWEST)
        return _SHAPE if is_alone and _CUT.match(text.strip()) else _LOOSE
    if any(_is_known(line) for line in record.lines):
        return _WHOLE if len(record.lines) == len(record.parts) else _AMONG_PROSE
    return _OWN_ACT if any(_COINED.match(line.pieces["act"].value) for line in record.lines) else _LOOSE


def _is_known(line: Line) -> bool:
    return line.anchor is not None or (line.version == NEWEST and line.pieces["act"].value in FORCES)


class OpenThought:
    """The block of a thought or a choice, which the line of the message ends.

    Cut before it is complete, it is its first line alone: what follows is no part of it.
    """

    lines_if_cut: int | None = 1

    def __init__(self, line: str) -> None:
        self._has_choice = CHOSEN.match(line) is not None
        self.is_complete = False

    def feed(self, line: str) -> Literal["more", "last", "not"]:
        """Whether the next line is the choice, the message itself, or neither."""
        if OPENING.match(line):
            self.is_complete = True
            return "last"
        if self._has_choice or not CHOSEN.match(line):
            return "not"
        self._has_choice = True
        return "more"


def opens(line: str) -> OpenThought | None:
    """The block that a line opens, or None where it is neither a thought nor a choice."""
    return OpenThought(line) if THOUGHT.match(line) or CHOSEN.match(line) else None
