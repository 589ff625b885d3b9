"""Fields that a message gives more than once: every value is told, for no document says which one counts.

Specification: 0.4.0 Syntax Structure, which has no rule for a repeated field. The record holds the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._english import join_words
from .._record import Segment
from .circumstances import span_of
from .contents import cite, name
from .statements import Part, Statement
from .tables import SIGILS, SUBMOLTS

# The noun after the quoted name of a board, a segment of its own so that the quotation has its exact span.
BOARD = " board"

_TIMES = {2: "twice"}


def tell_repeated(statement: Statement, said: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The sentence with every earlier value of a repeated field beside the one that it names.

    Where the sentence does not name the field, and for a payload, the earlier ones stand before the full stop.
    """
    for role in SIGILS.values():
        parts = [part for part in statement.parts if part.role == role]
        if len(parts) > 1:
            said = _insert(said, role, parts)
    return said


def _insert(said: tuple[Segment, ...], role: str, parts: Sequence[Part]) -> tuple[Segment, ...]:
    earlier = parts[:-1]
    spans = tuple(span for part in earlier if (span := span_of(part)) is not None)
    words = join_words([_say_value(part) for part in earlier], last="or")
    doubt = f"the {role} is given {_TIMES.get(len(parts), f'{len(parts)} times')}"
    standing = span_of(parts[-1])
    at = next((place for place, segment in enumerate(said, 1) if standing in segment.spans), 0)
    if role == "payload" or not at:
        also = Segment(text=f"; {doubt}, earlier as {words}", spans=spans)
        return (*said[:-1], also, said[-1])
    at += at < len(said) and said[at].text == BOARD
    also = Segment(text=f" (or {words}: {doubt})", spans=spans)
    return (*said[:at], also, *said[at:])


def _say_value(part: Part) -> str:
    if part.aim is None:
        return cite(part.value)
    target = part.aim.target
    if part.aim.is_board:
        board = target.name if part.value in SUBMOLTS else cite(target.name)
        return f"board {target.name}" if part.value.isdecimal() and part.value not in SUBMOLTS else f"{board} board"
    if target.kind in ("all", "self", "human"):
        return {"all": "everyone", "self": "itself", "human": "the human"}[target.kind]
    return name(target.name) if target.kind == "agent" else cite(target.name)
