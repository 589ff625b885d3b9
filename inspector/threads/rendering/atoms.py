"""The exact terms of a message: every name of its record with its value, its notes, its glyphs.

What is text for people (English, gloss, content) is found by words instead, except for short values in content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dialects import Message, Reading

from . import terms

# A message of many values has its first ones in the index; all of them stand on its page.
MAX_VALUES: Final = 120
MAX_VALUE_CHARACTERS: Final = 120
MAX_DEPTH: Final = 4

# Names that stand in the index under a name of their own, and those that are no fact but a way of telling.
_SINGLE: Final = ("sender", "native_act", "conversation_id", "trace_id", "task_id", "message_id", "topic", "status")
_MORE: Final = (
    *("object_id", "parent_id", "parent_task_id", "correlation_id", "result_id", "delegation", "frame"),
    *("turn", "run", "progress", "score"),
)
_LISTS: Final = {"modifiers": "modifier", "capabilities": "capability", "path": "path"}
# Names whose presence alone is worth asking for.
PRESENT: Final = (
    *("deadline", "schedule", "condition", "error", "progress", "priority", "score", "parent_id", "content"),
    "references",
)


def make_atoms(reading: Reading, message: Message, texts: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    """The exact terms of a message, in order.

    Args:
        reading: its record.
        message: as told.
        texts: what its words are taken from; their glyphs are terms too.
        given: the message's names that are not absent.
    """
    found = {terms.term("dialect", reading.dialect)}
    found.add(terms.term("performative", message.performative or "malformed"))
    for name in _SINGLE:
        value = getattr(message, name)
        if value not in (None, ""):
            found.add(terms.term(name, value))
    found.update(terms.term("receiver", name) for name in message.receivers)
    if message.broadcast:
        found.add(terms.term("receiver", "*"))
    for count, (name, value) in enumerate(_list_more(reading, message, given)):
        if count == MAX_VALUES:
            break
        found.add(terms.term(name, value if len(value) <= MAX_VALUE_CHARACTERS else value[:MAX_VALUE_CHARACTERS]))
    found.update(f"glyph={glyph}" for glyph in terms.find_glyphs(reading.wire, *texts))
    return sorted(found)


def _list_more(reading: Reading, message: Message, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The other names of the record with their values."""
    for name in PRESENT:
        if name in given:
            yield "has", name
    for name, value in (("version", reading.version), ("vocabulary", reading.vocabulary)):
        if value:
            yield name, value
    for name in _MORE:
        if name in given:
            yield name, write_value(given[name])
    for name, atom in _LISTS.items():
        for value in given.get(name, ()):
            yield atom, str(value)
    yield from _list_groups(message, given)
    notes = (*message.notes, *(reading.notes if message.part == 1 else ()))
    for note in {note.code: note for note in notes}.values():
        yield "note", note.code
        yield "group", note.group
    for name in ("attributes", "content"):
        if isinstance(given.get(name), Mapping):
            yield from flatten(name, given[name])


def _list_groups(message: Message, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names that hold a value of several names each."""
    if message.target is not None:
        yield "target", message.target.name
    if message.priority is not None:
        yield "priority", write_value(message.priority.raw if message.priority.rank is None else message.priority.rank)
    if message.error is not None:
        for name in ("code", "retryable", "cause"):
            value = getattr(message.error, name)
            if value is not None:
                yield f"error.{name}", write_value(value)
    for definition in message.defines:
        yield "defines", definition.name
    for reference in message.references:
        if reference.ref:
            yield "reference", reference.ref
    if "security" in given:
        for name in ("encrypted", "opened", "session", "verified"):
            value = getattr(message.security, name)
            if value not in (None, False):
                yield f"security.{name}", write_value(value)
        for claim in message.security.claims:
            yield "security.claim", claim


def write_value(value: Any) -> str:
    """A value as it is compared: JSON's words for truth, numbers without a fraction of zero."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def flatten(name: str, value: Any) -> Iterable[tuple[str, str]]:
    """The single values below a name, each with its path: `attributes.det`, `content.items`."""
    stack: list[tuple[str, Any, int]] = [(name, value, 0)]
    while stack:
        path, held, depth = stack.pop()
        if isinstance(held, Mapping):
            if depth < MAX_DEPTH:
                stack.extend((f"{path}.{inner}", each, depth + 1) for inner, each in reversed(list(held.items())))
        elif isinstance(held, (list, tuple)):
            if depth < MAX_DEPTH:
                stack.extend((path, each, depth + 1) for each in reversed(held))
        elif held is not None and held != "" and len(path) <= MAX_VALUE_CHARACTERS:
            yield path, write_value(held)
