"""The gloss of a tag: every field in wire order, word by word."""

from __future__ import annotations

from .._english import quote, say_name
from .._record import Basis, Segment
from .fields import Read, TagRead
from .tables import ACTS, FRAMES

_BETWEEN = Segment(text=" · ")


def gloss_tag(text: str, read: TagRead) -> tuple[Segment, ...]:
    """One segment a field, in wire order, with marks between."""
    segments: list[Segment] = []
    for field in read.fields:
        if segments:
            segments.append(_BETWEEN)
        basis: Basis = "exact" if field.role in ("used", "empty") else "unknown"
        spans = ((0, field.start, field.end),)
        segments.append(Segment.trust({"text": _gloss_field(text, field), "spans": spans, "basis": basis}))
    return tuple(segments)


def _gloss_field(text: str, field: Read) -> str:
    if field.role == "again":
        return f"{quote(text[field.start : field.end])} not used"
    label = field.slot.label if field.slot else f"unknown field {say_name(field.prefix)}"
    if field.role == "empty":
        return f"{label} without a value"
    if field.slot is None or field.role == "unread":
        return f"{label} {quote(field.written)}"
    if isinstance(field.value, str):
        return f"{label} {quote(field.value)}"
    number = field.value
    match field.slot.prefix:
        case "a" if number in ACTS:
            return ACTS[number].name
        case "f" if number in FRAMES:
            return FRAMES[number].name
        case "S":
            return f"from agent {number}"
        case "d":
            return f"to agent {number}"
    return f"{label} {number}"
