"""A text as parts, its tags and the prose around them; and as a field tree: one node a tag, one leaf a field, marks and
prose between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .._record import Field, Note, leaf, tile
from .fields import Read, TagRead, read_tag
from .tables import ACTS, AGENTS, FRAMES, MAX_TAGS, NO_TAG, TOO_MANY_TAGS
from .tags import SEPARATORS, SPACES, find_tags


class Prose(NamedTuple):
    """A stretch of text around the tags, white space at its ends left out."""

    start: int
    end: int


class Record(NamedTuple):
    """A text as parsed: its parts in order, the note that makes it malformed if one does, and other notes on it."""

    parts: tuple[Prose | TagRead, ...]
    error: Note | None
    notes: tuple[Note, ...]

    @property
    def tags(self) -> tuple[TagRead, ...]:
        """The tags among the parts."""
        return tuple(part for part in self.parts if isinstance(part, TagRead))

    @property
    def prose(self) -> tuple[Prose, ...]:
        """The prose among the parts."""
        return tuple(part for part in self.parts if isinstance(part, Prose))


def parse_record(text: str) -> Record:
    """The parts of a text. Prose counts where it is more than marks that set tags apart. Never raises; linear."""
    found = find_tags(text)
    notes: tuple[Note, ...] = ()
    if len(found) > MAX_TAGS:
        found = found[:MAX_TAGS]
        rest = (0, found[-1].end, len(text))
        notes = (TOO_MANY_TAGS.note(f"only the first {MAX_TAGS} tags are read: the rest is kept as text", rest),)
    parts: list[Prose | TagRead] = []
    at = 0
    for tag in found:
        parts.extend(_find_prose(text, at, tag.start))
        parts.append(read_tag(text, tag))
        at = tag.end
    parts.extend(_find_prose(text, at, len(text)))
    if not found:
        return Record(tuple(parts), NO_TAG.note("there is no nSLIP tag in the text", (0, 0, len(text))), notes)
    marked = (note for part in parts if isinstance(part, TagRead) for note in part.notes)
    return Record(tuple(parts), next((note for note in marked if note.severity == "error"), None), notes)


def _find_prose(text: str, start: int, end: int) -> tuple[Prose, ...]:
    between = text[start:end]
    if SEPARATORS.issuperset(between):
        return ()
    return (Prose(end - len(between.lstrip(SPACES)), start + len(between.rstrip(SPACES))),)


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
