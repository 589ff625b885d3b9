"""A text as parts: its tags, and the prose around them."""

from __future__ import annotations

from typing import NamedTuple

from .._record import Note
from .fields import TagRead, read_tag
from .notes import NO_TAG, TOO_MANY_TAGS
from .tables import MAX_TAGS
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
