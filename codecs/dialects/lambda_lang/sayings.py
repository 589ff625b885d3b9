"""What one statement says: its words in segments, its gloss, atom by atom in the order of the wire, and the notes that
its words earn.

Agents say the same short things again and again: acknowledgements, states, requests. What a statement says depends on
its own characters, the vocabulary, the active domains and the definitions of its words alone, so a short one is told
once and kept for the next time, its spans counted from its own start.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .._record import Entry, Message, Note, Segment, Span
from .acts import Acts
from .contexts import Setting, Standing
from .doubts import find_weakness, note_doubts
from .marks import read_nodes
from .nodes import Node, Piece
from .protocol import ACKS, FLOOR, TYPES, Act
from .reading import find_failure
from .remarks import note_words
from .statements import Item, Part
from .vocabulary import load_vocabulary
from .words import Scope

_DOT = Segment(text=" · ")


def gloss_part(text: str, part: Part, statement: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """A statement with what stands around it as its literal meanings joined by `·`, each with its place."""
    if not part.items and not part.checksum:
        return statement
    said: list[Segment] = []
    for item in part.items:
        said += (_gloss_item(text, item), _DOT)
    said += statement
    if part.checksum:
        start, end, count = part.checksum
        if statement:
            said.append(_DOT)
        said.append(_make(f"checksum {count}", (0, start, end)))
    elif not statement:
        said.pop()
    return tuple(said)


def gloss_statement(text: str, part: Part, nodes: Sequence[Node]) -> tuple[Segment, ...]:
    """The type and the body alone."""
    said: list[Segment] = []
    if part.symbol:
        said += (_make(_gloss_symbol(part), (0, *part.symbol_at)), _DOT)
    if not nodes and part.body[1] > part.body[0]:
        said += (_make(text[part.body[0] : part.body[1]], (0, *part.body)), _DOT)
    for node in nodes:
        if node.kind not in ("space", "domain"):
            said += (_gloss_node(node), _DOT)
    return tuple(said[:-1])


def _make(text: str, span: Span) -> Segment:
    return Segment.trust({"text": text, "spans": (span,)})


def _gloss_item(text: str, item: Item) -> Segment:
    return _make(text[item.start : item.end], (0, item.start, item.end))


def _gloss_symbol(part: Part) -> str:
    if part.form == "floor":
        return FLOOR[part.symbol].name
    if part.form == "ack":
        act = ACKS.get(part.symbol)
        return act.name if act else f"acknowledged part {part.symbol[2:]}"
    name = TYPES[part.symbol[0]].name
    return name if len(part.symbol) == 1 else f"{name} ({part.symbol})"


def _gloss_node(node: Node) -> Segment:
    says = node.says
    if node.entry is not None:
        says = f"{node.text} means {says}"
        return Segment(text=says, spans=(node.span,), source=node.entry.source)
    if node.basis == "exact":
        return _make(says, node.span)
    return Segment(text=says, spans=(node.span,), basis=node.basis)


# A longer statement is hardly said twice; so many are kept.
_MAX_KEPT_LENGTH = 120
_MAX_KEPT = 1024
_NEAR = 64
_RUN = re.compile(r"[a-z]+")
_REPEATED = frozenset({"statement", "offer", "untyped", "ack", "error", "floor"})
_NOT_PARSED = frozenset({"table", "sealed"})


class Saying(NamedTuple):
    """What is said, glossed and noted; `said` are the settings that the words have covered."""

    act: Act
    english: tuple[Segment, ...]
    gloss: tuple[Segment, ...]
    notes: tuple[Note, ...]
    said: frozenset[str] = frozenset()
    weakness: Note | None = None


def say_part(
    text: str, part: Part, settings: tuple[Setting, ...], message: Message, scope: Scope, standing: Standing
) -> Saying:
    """What a statement says."""
    start, end = part.symbol_at[0], part.body[1]
    is_short = part.form in _REPEATED and end - start <= _MAX_KEPT_LENGTH
    if is_short and not any(setting.kind == "handshake" for setting in settings):
        key = _Key(
            text[start:end],
            part.form,
            part.symbol,
            part.body[0] - start,
            message.sender is not None,
            standing.is_declared,
            scope.vocabulary.release,
            scope.domains,
            () if scope.is_plain else _find_defined(text[start:end], message.part, standing),
        )
        if start == 0:
            return _say_again(key)
        return _say_behind(key, start) if start <= _NEAR else _shift(_say_again(key), start)
    nodes = read_nodes(text, *part.body, scope) if part.form not in _NOT_PARSED else []
    acts = Acts(text, part, settings, message, scope, nodes, lambda entry: standing.say_origin(entry, message.part))
    return _make_saying(acts, note_words(part, nodes, scope, is_declared=standing.is_declared))


class _Defined(NamedTuple):
    """A word of a statement that a sender has defined, with all that is told of its definition."""

    word: str
    value: str
    origin: str
    source: tuple[Any, int] | None
    position: int | None


def _find_defined(text: str, part: int, standing: Standing) -> tuple[_Defined, ...]:
    """The definitions that may bear on a statement: of its words, and of what a tense or an aspect leaves of them."""
    found = []
    for run in dict.fromkeys(_RUN.findall(text)):
        for word in dict.fromkeys((run, run[1:], run[:-1], run[1:-1])):
            entry = standing.find_definition(word) if word else None
            if entry is not None:
                origin = standing.say_origin(entry, part)
                found.append(_Defined(word, str(entry.value), origin, entry.source, entry.position))
    return tuple(found)


class _Key(NamedTuple):
    """All that what a short statement says depends on; only whether somebody speaks it matters of who does."""

    text: str
    form: str
    symbol: str
    body: int
    is_spoken: bool
    is_declared: bool
    release: str
    domains: tuple[str, ...]
    defined: tuple[_Defined, ...]


@lru_cache(maxsize=_MAX_KEPT)
def _say_behind(key: _Key, start: int) -> Saying:
    """The same behind a label, an address or a header, which most statements of a conversation have alike."""
    return _shift(_say_again(key), start)


@lru_cache(maxsize=_MAX_KEPT)
def _say_again(key: _Key) -> Saying:
    """What a statement says by itself."""
    text, form, symbol, body, is_spoken, is_declared, release, domains, defined = key
    part = Part((), form, symbol, (0, len(symbol)), (body, len(text)))
    entries = {
        one.word: Entry(kind="def", name=one.word, value=one.value, source=one.source, position=one.position)
        for one in defined
    }
    origins = {one.word: one.origin for one in defined}
    scope = Scope(load_vocabulary(release), domains)
    if entries:
        scope = scope._replace(find_definition=entries.get)
    nodes = read_nodes(text, body, len(text), scope)
    error = find_failure(text[body:]) if form == "error" else None
    message = Message(sender="someone" if is_spoken else None, error=error)
    acts = Acts(text, part, (), message, scope, nodes, lambda entry: origins[entry.name])
    return _make_saying(acts, note_words(part, nodes, scope, is_declared=is_declared))


def _make_saying(acts: Acts, notes: list[Note]) -> Saying:
    act, pieces = acts.tell()
    open_notes = note_doubts(acts.part, acts.nodes)
    gloss = gloss_statement(acts.text, acts.part, acts.nodes)
    weakness = find_weakness(acts.part, acts.nodes)
    return Saying(act, make_segments(pieces), gloss, (*open_notes, *notes, *acts.notes), frozenset(acts.said), weakness)


def make_segments(pieces: Sequence[Piece]) -> tuple[Segment, ...]:
    """Pieces as the record has them."""
    return tuple([make_segment(piece) for piece in pieces if piece.text])


def make_segment(piece: Piece) -> Segment:
    """One piece as the record has it."""
    if piece.source is None and piece.basis == "exact":
        return Segment.trust({"text": piece.text, "spans": piece.spans})
    return Segment.trust({"text": piece.text, "spans": piece.spans, "basis": piece.basis, "source": piece.source})


def _shift(saying: Saying, by: int) -> Saying:
    """The same with every span moved to where the statement stands."""
    act, english, gloss, notes, said, weakness = saying
    return Saying(
        act,
        tuple([_shift_segment(segment, by) for segment in english]),
        tuple([_shift_segment(segment, by) for segment in gloss]),
        tuple([_shift_note(note, by) for note in notes]),
        said,
        None if weakness is None else _shift_note(weakness, by),
    )


def _shift_segment(segment: Segment, by: int) -> Segment:
    spans = segment.spans
    if not spans:
        return segment
    moved = tuple([(layer, start + by, end + by) for layer, start, end in spans])
    return Segment.trust({**segment.__dict__, "spans": moved})


def _shift_note(note: Note, by: int) -> Note:
    if note.span is None:
        return note
    layer, start, end = note.span
    return Note.trust({**note.__dict__, "span": (layer, start + by, end + by)})
