"""What one statement says: its words in segments, its gloss, and the notes that its words earn.

Agents say the same short things again and again: acknowledgements, states, requests. Without a definition in force
what a statement says depends on its own characters, the vocabulary and the active domains alone, so a short one is
told once and kept. Its spans count from its own start and are moved to where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from .._record import Message, Note, Segment, Span
from .acts import Acts
from .contexts import Standing
from .glosses import gloss_statement
from .nodes import read_nodes
from .protocol import Act
from .reading import find_failure
from .remarks import note_words
from .settings import Setting
from .statements import Part
from .units import Piece
from .vocabulary import load_vocabulary
from .words import Scope

# A longer statement is hardly said twice; so many are kept.
_LONGEST_KEPT = 120
_MOST_KEPT = 1024
_REPEATED = frozenset({"statement", "offer", "untyped", "ack", "error", "floor"})
_NOT_PARSED = frozenset({"table", "sealed"})


class Saying(NamedTuple):
    """What is said, glossed and noted; `said` are the settings that the words have covered."""

    act: Act
    english: tuple[Segment, ...]
    gloss: tuple[Segment, ...]
    notes: tuple[Note, ...]
    said: frozenset[str] = frozenset()


def say_part(
    text: str, part: Part, settings: tuple[Setting, ...], message: Message, scope: Scope, standing: Standing
) -> Saying:
    """What a statement says."""
    start, end = part.symbol_at[0], part.body[1]
    is_plain = scope.is_plain and part.form in _REPEATED and end - start <= _LONGEST_KEPT
    if is_plain and not any(setting.kind == "handshake" for setting in settings):
        saying = _say_again(
            text[start:end],
            part.form,
            part.symbol,
            part.body[0] - start,
            message.sender is not None,
            standing.is_declared,
            scope.vocabulary.release,
            scope.domains,
        )
        return _shift(saying, start) if start else saying
    nodes = read_nodes(text, *part.body, scope) if part.form not in _NOT_PARSED else []
    acts = Acts(text, part, settings, message, scope, nodes, standing)
    return _make_saying(acts, note_words(part, nodes, scope, is_declared=standing.is_declared))


@lru_cache(maxsize=_MOST_KEPT)
def _say_again(
    text: str,
    form: str,
    symbol: str,
    body: int,
    is_spoken: bool,
    is_declared: bool,
    release: str,
    domains: tuple[str, ...],
) -> Saying:
    """A plain statement by itself; only whether somebody speaks it matters of who does."""
    part = Part((), form, symbol, (0, len(symbol)), (body, len(text)))
    scope = Scope(load_vocabulary(release), domains)
    nodes = read_nodes(text, body, len(text), scope)
    error = find_failure(text[body:]) if form == "error" else None
    message = Message(sender="someone" if is_spoken else None, error=error)
    acts = Acts(text, part, (), message, scope, nodes, None)
    return _make_saying(acts, note_words(part, nodes, scope, is_declared=is_declared))


def _make_saying(acts: Acts, notes: list[Note]) -> Saying:
    act, pieces = acts.tell()
    if acts.minus is not None:
        notes.append(acts.minus)
    gloss = gloss_statement(acts.text, acts.part, acts.nodes)
    return Saying(act, make_segments(pieces), gloss, tuple(notes), frozenset(acts.said))


def make_segments(pieces: Sequence[Piece]) -> tuple[Segment, ...]:
    """Pieces as the record has them."""
    return tuple([make_segment(piece) for piece in pieces if piece.text])


def make_segment(piece: Piece) -> Segment:
    """One piece as the record has it."""
    if piece.source is None and piece.basis == "exact":
        return Segment.trust({"text": piece.text, "spans": piece.spans})
    return Segment.trust({"text": piece.text, "spans": piece.spans, "basis": piece.basis, "source": piece.source})


def _shift(saying: Saying, by: int) -> Saying:
    return saying._replace(
        english=tuple([_shift_segment(segment, by) for segment in saying.english]),
        gloss=tuple([_shift_segment(segment, by) for segment in saying.gloss]),
        notes=tuple([note.replace(span=_shift_span(note.span, by)) if note.span else note for note in saying.notes]),
    )


def _shift_segment(segment: Segment, by: int) -> Segment:
    if not segment.spans:
        return segment
    return Segment.trust({**segment.__dict__, "spans": tuple([_shift_span(span, by) for span in segment.spans])})


def _shift_span(span: Span, by: int) -> Span:
    return (span[0], span[1] + by, span[2] + by)
