"""Telling: each statement in English, in the context of its conversation."""

from __future__ import annotations

from .._context import Context, Keys
from .._record import Message, Reading, Segment, Told
from .contexts import Standing
from .fields import build_tree
from .frames import frame, say_beside
from .glosses import gloss_part
from .reading import Parsed, read
from .remarks import note_settings
from .sayings import make_segment, make_segments, say_part
from .settings import Setting
from .statements import Part
from .words import Scope


def tell(reading: Reading, context: Context, keys: Keys) -> Told:
    """The record's messages with their English, and what they establish. Never raises for any reading."""
    parsed = reading.parsed
    if not isinstance(parsed, Parsed):
        parsed = read(reading.wire, reading.envelope).parsed
    if parsed.malformed is not None or not parsed.parts:
        return Told(reading=reading, messages=tuple(_tell_malformed(message, parsed) for message in reading.messages))
    standing = Standing(context, reading.version)
    scopes: list[Scope] = []
    told = []
    for part, settings, message in zip(parsed.parts, parsed.settings, reading.messages, strict=False):
        standing.establish(message, settings)
        scope = standing.scope(message.attributes.get("domain"))
        scopes.append(scope)
        told.append(_tell_message(parsed.text, part, settings, message, scope, standing))
    wire, parts, vocabulary = parsed.text, parsed.parts, standing.vocabulary
    settled = {**reading.__dict__}
    settled.pop("fields", None)
    settled["tree"] = lambda: build_tree(wire, parts, vocabulary, scopes)
    if reading.version or standing.is_declared:
        settled["vocabulary"] = vocabulary.release
    return Told.trust({"reading": Reading.trust(settled), "messages": tuple(told), "entries": tuple(standing.entries)})


def _tell_malformed(message: Message, parsed: Parsed) -> Message:
    note, wire = parsed.malformed, parsed.text
    said = [Segment(text="This cannot be read as Λ Lambda")]
    if note is not None:
        said.append(Segment(text=f": {note.text}", spans=(note.span,) if note.span else ()))
    said.append(Segment(text="."))
    if wire:
        whole = (0, 0, len(wire))
        also = (Segment(text=wire, spans=(whole,), basis="unknown"),)
        return message.replace(english=tuple(said), also=also, gloss=also)
    return message.replace(english=tuple(said))


def _tell_message(
    text: str, part: Part, settings: tuple[Setting, ...], message: Message, scope: Scope, standing: Standing
) -> Message:
    saying = say_part(text, part, settings, message, scope, standing)
    english = saying.english
    before, after = frame(saying.act, part, message)
    if before is not None:
        english = (make_segment(before), *english, make_segment(after)) if after else (make_segment(before), *english)
    told = {**message.__dict__, "english": english, "gloss": gloss_part(text, part, saying.gloss)}
    if settings or part.items or part.checksum or message.error is not None:
        told["also"] = make_segments(say_beside(part, settings, message, saying.said))
    notes = (*message.notes, *note_settings(settings, scope), *saying.notes)
    if notes:
        told["notes"] = notes
    return Message.trust(told)
