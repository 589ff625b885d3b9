"""Telling: each statement in English, in the context of its conversation."""

from __future__ import annotations

from collections.abc import Sequence

from .._context import Context, Keys
from .._record import Message, Note, Reading, Segment, Span, Told
from .acts import Acts
from .contexts import Standing
from .fields import build_tree
from .glosses import gloss_part
from .nodes import read_nodes
from .reading import Parsed, read
from .remarks import note_words
from .settings import Setting
from .statements import Part
from .units import Piece
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
    settled = reading.replace(
        vocabulary=vocabulary.release if reading.version or standing.is_declared else reading.vocabulary,
        tree=lambda: build_tree(wire, parts, vocabulary, scopes),
    )
    return Told(reading=settled, messages=tuple(told), entries=tuple(standing.entries))


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
    nodes = read_nodes(text, *part.body, scope) if part.form not in ("table", "sealed") else []
    acts = Acts(text, part, settings, message, scope, nodes, standing)
    english, also = acts.tell()
    notes: list[Note] = [*message.notes, *note_words(part, nodes, settings, scope, standing)]
    if acts.minus is not None:
        notes.append(acts.minus)
    return message.replace(
        english=_make_segments(english),
        also=_make_segments(also),
        gloss=gloss_part(text, part, nodes),
        notes=tuple(notes),
    )


def _make_segments(pieces: Sequence[Piece]) -> tuple[Segment, ...]:
    return tuple(_make_segment(piece) for piece in pieces if piece.text)


def _make_segment(piece: Piece) -> Segment:
    spans: tuple[Span, ...] = tuple(span for span in piece.spans if span is not None)
    if piece.source is None and piece.basis == "exact":
        return Segment(text=piece.text, spans=spans)
    return Segment(text=piece.text, spans=spans, basis=piece.basis, source=piece.source)
