"""The gloss: code by code in the order of the wire, each with its plain meaning and its characters."""

from __future__ import annotations

from .._record import Segment, Span
from .contents import cite, name
from .payloads import Payload
from .statements import Part, Statement
from .tables import DOMAINS, ERRORS, MODIFIER_MEANINGS, MODIFIERS, PREFIXES, STATUSES, SUBTYPES
from .trees import say_action

_BETWEEN = " · "


def gloss_statement(statement: Statement, wire: str) -> tuple[Segment, ...]:
    """The gloss of one message; human text glosses as itself."""
    pieces: list[tuple[str, Span, bool]] = []
    if statement.text is not None:
        words = "text after 👽" if statement.kind == "text" else "text"
        pieces.append((words, (0, *statement.text), True))
    elif statement.kind == "response":
        status = STATUSES.get(statement.status)
        _add_code(pieces, statement, 0, f"^{statement.status}", status.name if status else None)
    elif statement.kind == "error":
        _add_code(pieces, statement, 0, f"!E{statement.error}", ERRORS.get(statement.error))
        if statement.subtype:
            meaning = SUBTYPES.get(statement.subtype) if statement.error == "2" else None
            _add_code(pieces, statement, 1, statement.subtype, meaning)
    else:
        domain = DOMAINS.get(statement.domain)
        meaning = f"{domain.name} {domain.meaning}" if domain else None
        _add_code(pieces, statement, 0, statement.domain, meaning)
        _add_code(pieces, statement, 1, statement.action, say_action(statement))
        for digit, at in statement.modifiers:
            pieces.append((f"{digit} {MODIFIER_MEANINGS[MODIFIERS[digit]]}", (0, at, at + 1), True))
    for part in statement.parts:
        if part.end > part.start:
            words, is_known = _gloss_part(part, wire)
            pieces.append((words, (0, part.start, part.end), is_known))
    return tuple(
        Segment(text=(_BETWEEN if place else "") + words, spans=(span,), basis="exact" if is_known else "unknown")
        for place, (words, span, is_known) in enumerate(pieces)
    )


def _add_code(
    pieces: list[tuple[str, Span, bool]], statement: Statement, index: int, code: str, meaning: str | None
) -> None:
    span = (0, *statement.codes[index])
    pieces.append((f"{name(code)} {meaning or '(not in the table)'}", span, meaning is not None))


def _gloss_part(part: Part, wire: str) -> tuple[str, bool]:
    written = name(wire[part.start : part.end])
    if part.payload is not None:
        return _gloss_payload(part.payload)
    if part.aim is not None:
        return f"{written} {part.aim.meaning}", True
    if part.role == "identifier":
        return f"{written} identifier", True
    if part.time is not None:
        return f"{written} time, {part.time.moment.kind}", part.time.moment.kind != "unread"
    if part.condition is not None:
        moment = part.condition.moment
        words = f"{moment.kind} {part.condition.relation or ''}".strip() if part.condition.subject else "unread"
        return f"{written} condition, {words}", part.condition.subject is not None
    return f"{written} not in the grammar" if part.role == "unknown" else written, part.role != "unknown"


def _gloss_payload(payload: Payload) -> tuple[str, bool]:
    row = next((row for row in PREFIXES.values() if row[0] == payload.kind), None)
    if row is None:
        return f"payload with an unknown prefix, {len(payload.written)} characters", False
    if payload.kind == "encrypted":
        size = f", {payload.size_bytes} bytes" if payload.size_bytes is not None else ""
        return f"payload, {row[2]}{size}", True
    if payload.text is None:
        return f"payload, {row[2]}, not readable", False
    return f"payload, {row[2]}: {cite(payload.text)}", True
