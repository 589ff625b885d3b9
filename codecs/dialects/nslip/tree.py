"""The field tree of a record: one node a tag, one leaf a field, marks and prose between them."""

from __future__ import annotations

from collections.abc import Iterator

from .._record import Field
from .._scan import leaf, tile
from .fields import Read, TagRead
from .parsing import Prose, parse_record
from .tables import ACTS, AGENTS, FRAMES
from .tags import SEPARATORS

_SYNTAX = SEPARATORS | frozenset("@#|")


def grow_tree(text: str) -> tuple[Field, ...]:
    """The tree over the whole text."""
    record = parse_record(text)
    if not record.tags:
        return (leaf("unread", "not understood", text, 0, len(text)),) if text else ()
    fields = [_grow_prose(text, part) if isinstance(part, Prose) else _grow_tag(text, part) for part in record.parts]
    return tile(fields, text, syntax=_SYNTAX)


def _grow_prose(text: str, part: Prose) -> Field:
    return leaf("prose", "text around the tags", text, part.start, part.end, value=text[part.start : part.end])


def _grow_tag(text: str, read: TagRead) -> Field:
    tag = read.tag
    return Field(
        name="message",
        label="nSLIP message",
        raw=text[tag.start : tag.end],
        span=(0, tag.start, tag.end),
        children=tuple(field for one in read.fields for field in _grow_field(text, one)),
    )


def _grow_field(text: str, read: Read) -> Iterator[Field]:
    name = read.slot.field if read.slot else "unknown"
    yield leaf(name, _label(read), text, read.start, read.rest, value=read.value, meaning=_mean(read))
    if read.rest < read.end:
        yield leaf("unread", "not understood", text, read.rest, read.end)


def _label(read: Read) -> str:
    if read.slot is None:
        return f"unknown field {read.prefix}"
    return f"{read.slot.label} again" if read.role == "again" else read.slot.label


# What the field means where its value was not read.
_UNUSED = {
    "again": "not used: the field stood before",
    "unread": "not understood: kept as it is written",
    "empty": "no value is given",
}


def _mean(read: Read) -> str | None:
    if read.slot is None or read.role != "used":
        return _UNUSED[read.role]
    if isinstance(read.value, str):
        return read.slot.use
    number = read.value
    match read.slot.prefix:
        case "a":
            return (
                f"{ACTS[number].name}: {ACTS[number].use}" if number in ACTS else "an act that the table does not hold"
            )
        case "f":
            return (
                f"{FRAMES[number].name}: {FRAMES[number].use}"
                if number in FRAMES
                else "a frame that the table does not hold"
            )
        case "S" | "d" if str(number) in AGENTS:
            return f"agent {number}, the {AGENTS[str(number)]} by convention"
    return f"{read.slot.label} {number}"
