"""What a message carries beyond its sentence, each in a short phrase with its characters."""

from __future__ import annotations

from .._record import Message, Segment
from .circumstances import code_span
from .contents import cite, is_too_long_to_cite
from .statements import Statement
from .tables import MODIFIER_MEANINGS, MODIFIERS, SIGILS


def tell_rest(statement: Statement, message: Message) -> tuple[Segment, ...]:
    """What the message carries beyond its sentence, each in a short phrase."""
    rest: list[Segment] = []
    if statement.kind == "statement":
        rest.extend(_rest_of_modifiers(statement))
    for part in statement.parts:
        span = (0, part.start, part.end)
        if part.role == "unknown":
            words = f"a field outside the grammar: {cite(part.value)}"
            rest.append(Segment(text=words, spans=(span,), basis="unknown"))
        elif part.role == "empty":
            role = SIGILS.get(part.value, "field")
            rest.append(Segment(text=f"an empty {role}", spans=(span,)))
    payload = statement.payload
    if payload is not None and is_too_long_to_cite(payload):
        rest.append(
            Segment(text=f"payload as written: {cite(payload.written)}", spans=(payload.span,), basis="unknown")
        )
    if statement.kind == "error" and statement.error == "0" and not statement.parts:
        rest.append(Segment(text="no details are given", spans=(code_span(statement, 0),)))
    return tuple(rest)


def _rest_of_modifiers(statement: Statement) -> list[Segment]:
    kind = statement.payload.kind if statement.payload else None
    rest = []
    for digit, at in statement.modifiers:
        is_marked = (digit == "7" and kind == "encrypted") or (digit == "8" and kind == "zlib")
        if digit == "0" or is_marked:
            words = f"modifier {digit}: {MODIFIER_MEANINGS[MODIFIERS[digit]]}"
            rest.append(Segment(text=words, spans=((0, at, at + 1),)))
    return rest
