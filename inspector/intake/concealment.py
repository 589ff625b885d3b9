"""Concealment: the tokens of one record, where they stand in its layers, and its reading, text or values without them.

Reading is the one door through which a text comes into the product, so it is here that tokens are hidden: in every
name of every message, in notes, in the envelope, and as masked leaves of the field tree, by which pages, exports and
the API mask the wire itself. What telling adds is concealed after it. Everything later (columns, English, search,
titles, agents, tasks, exports) is made of what has been concealed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from dialects import MASK, Entry, Field, Layer, Note, NoteKind, Reading, Segment, Span, Told, get_dialect
from inspector.tokens import SHAPES, alias_of, find_tokens, has_hint, hide_tokens

from .models import Record
from .needles import HEAD, Needles

# A stretch that agrees with a token in so many letters and digits is a piece of it, wherever it was cut.
_TELLING: Final = 12
_CUT: Final = "…"
# Strings that a message is shown by, piece by piece: a token may lie across them.
_PIECES: Final = frozenset({"english", "gloss"})


@dataclass(eq=False)
class Secrets:
    """The tokens of one record: their texts, each with the name of its shape, and where they stand in its layers.

    `spans` has them by layer, in order and apart; `hidden` has with them the stretches of outer layers that unpack into
    one; `stands` has each with the name of its shape.
    """

    texts: dict[str, str]
    spans: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    hidden: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    stands: Sequence[tuple[Span, str]] = ()

    def hide(self, text: str) -> str:
        """The text without these tokens, also where it says them in other words or cut short."""
        if len(text) < HEAD:
            return text
        text = hide_tokens(_replace(text, self._tokens.find_whole(text)))
        return _replace(text, self._find_pieces(text))

    def hide_all(self, value: Any) -> Any:
        """A value, a container of values or a JSON type, each text in it without the tokens."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {self.hide_all(name): self.hide_all(inner) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.hide_all(inner) for inner in value)
        if hasattr(value, "given") and hasattr(value, "replace"):
            hidden = {
                name: self._hide_pieces(inner) if name in _PIECES else self.hide_all(inner)
                for name, inner in value.given().items()
            }
            return value.replace(**hidden)
        return value

    def _hide_pieces(self, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """A sentence in its segments; what of a token lies in several is hidden in all, and named in the first."""
        whole = "".join(segment.text for segment in segments)
        starts: list[int] = []
        at = 0
        for segment in segments:
            starts.append(at)
            at += len(segment.text)
        texts = [list(segment.text) for segment in segments]
        for start, end, alias in self._find_all(whole):
            for number, segment in enumerate(segments):
                first, last = max(start, starts[number]), min(end, starts[number] + len(segment.text))
                if first < last:
                    gone = range(first - starts[number], last - starts[number])
                    for place in gone:
                        texts[number][place] = ""
                    texts[number][gone[0]] = alias if first == start else ""
        hidden = []
        for segment, characters in zip(segments, texts, strict=True):
            text = "".join(characters)
            if text == segment.text and self._is_within(segment.spans):
                text = MASK if len(text) > 1 else text
            if text:
                hidden.append(segment if text == segment.text else segment.replace(text=text))
        return tuple(hidden)

    def _find_all(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where a text says a token in whatever way, with what stands for it; in order and apart."""
        found = [(token.start, token.end, text[token.start : token.end]) for token in find_tokens(text)]
        found += self._tokens.find_whole(text)
        found += self._find_pieces(text)
        reached = 0
        for start, end, token in sorted(found, key=lambda each: (each[0], -each[1])):
            if start >= reached:
                yield start, end, alias_of(token)
                reached = end

    def _is_within(self, spans: Iterable[Span]) -> bool:
        """Whether these characters are all of a token."""
        found = list(spans)
        return bool(found) and all(
            any(holds(each, span) for each in find_overlapping(self.spans.get(span[0], ()), span)) for span in found
        )

    @cached_property
    def _tokens(self) -> Needles:
        return Needles(self.texts)

    @cached_property
    def _letters(self) -> dict[str, str]:
        """The letters and digits alone of each token, small: what is left of it in words; with the token."""
        return {
            re.sub(r"[\W_]+", "", token).lower(): token
            for token in sorted(self.texts, key=lambda each: (len(each), each))
        }

    @cached_property
    def _pieces(self) -> Needles:
        return Needles(self._letters)

    def _find_pieces(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where a text says a token otherwise than it stands: its signs left out, or its beginning alone."""
        places = [at for at, sign in enumerate(text) if sign.isalnum()]
        small = "".join(text[at].lower()[:1] for at in places)
        reached = 0
        for at in self._pieces.find_places(small):
            if at < reached:
                continue
            length, letters = self._pieces.match(small, at)
            end = places[at + length - 1] + 1
            if length < _TELLING and text[end : end + 1] != _CUT:
                whole = self._pieces.find_beginning(small, at)
                if whole is None:
                    continue
                length, letters = len(whole), whole
            reached = at + length
            yield places[at], places[reached - 1] + 1, self._letters[letters]


NOTHING: Final = Secrets({})


def find_secrets(reading: Reading, around: str = "") -> Secrets:
    """What is to be hidden of a reading, `NOTHING` where there is nothing.

    It is found in the text and in every layer of it, in the names of the messages where a text may be written
    otherwise than it is meant (escapes), and in what stands around the text.
    """
    layers = reading.layers
    texts: dict[str, str] = {}
    is_escaped = False
    for layer in layers:
        is_escaped = is_escaped or may_be_escaped(layer.text)
        if has_hint(layer.text):
            for token in find_tokens(layer.text):
                texts.setdefault(layer.text[token.start : token.end], token.name)
    if is_escaped or (around and has_hint(around)):
        _find_in([*reading.messages, reading.envelope], texts)
    return locate_secrets(texts, layers) if texts else NOTHING


def may_be_escaped(text: str) -> bool:
    """Whether something in a text may be written otherwise than it is meant."""
    return "\\" in text or "%" in text


def locate_secrets(texts: dict[str, str], layers: Sequence[Layer]) -> Secrets:
    """Where these texts, each with the name of its shape, stand in the layers of a record."""
    needles = Needles(texts)
    stands: list[tuple[Span, str]] = []
    for layer in layers:
        found = {(start, end): texts[token] for start, end, token in needles.find_whole(layer.text)}
        # Where it has its shape it is a token, be it ever so short.
        found |= {(token.start, token.end): token.name for token in find_tokens(layer.text)}
        stands += (((layer.id, start, end), name) for (start, end), name in found.items())
    hidden: dict[int, list[Span]] = {layer.id: [] for layer in layers}
    for span, _ in stands:
        hidden[span[0]].append(span)
    spans = {layer: join_spans(found) for layer, found in hidden.items()}
    for layer in reversed(layers):
        if layer.of and hidden[layer.id]:
            hidden.setdefault(layer.of[0], []).append(layer.of)
    return Secrets(texts, spans, {layer: join_spans(found) for layer, found in hidden.items()}, stands)


def _find_in(values: Iterable[Any], texts: dict[str, str]) -> None:
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if len(value) >= HEAD and has_hint(value):
                for token in find_tokens(value):
                    texts.setdefault(value[token.start : token.end], token.name)
        elif isinstance(value, Mapping):
            stack += [*value, *value.values()]
        elif isinstance(value, (list, tuple)):
            stack += value
        elif hasattr(value, "given"):
            stack += vars(value).values()


def join_spans(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that share characters as one."""
    joined: list[Span] = []
    for layer, start, end in sorted(spans):
        if joined and start < joined[-1][2]:
            joined[-1] = (layer, joined[-1][1], max(end, joined[-1][2]))
        else:
            joined.append((layer, start, end))
    return joined


def _replace(text: str, found: Iterable[tuple[int, int, str]]) -> str:
    """The text with an alias in the place of each of these tokens, which are in order and apart."""
    pieces, at = [], 0
    for start, end, token in found:
        pieces += [text[at:start], alias_of(token)]
        at = end
    return "".join((*pieces, text[at:])) if pieces else text


def find_overlapping(spans: Sequence[Span], span: Span) -> Sequence[Span]:
    """Those of the spans of a layer, in order and apart, that share characters with this one."""
    _, start, end = span
    first = bisect_right(spans, start, key=lambda each: each[2])
    last = bisect_left(spans, end, key=lambda each: each[1])
    return spans[first:last]


def holds(outer: Span, inner: Span) -> bool:
    """Whether one span has every character of another."""
    return outer[0] == inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2]


def walk_fields(fields: Iterable[Field]) -> Iterator[Field]:
    """Every field of a tree."""
    stack = list(fields)
    while stack:
        each = stack.pop()
        yield each
        stack.extend(each.children)


def conceal_fields(fields: Iterable[Field], secrets: Secrets) -> tuple[Field, ...]:
    """The fields with the tokens as masked leaves; what encloses one names it by its alias."""
    return tuple(_conceal_field(each, secrets) for each in fields)


def _conceal_field(each: Field, secrets: Secrets) -> Field:
    if each.is_masked and not each.children:
        return each
    layer, start, end = each.span
    spans = find_overlapping(secrets.hidden.get(layer, ()), each.span)
    children = conceal_fields(each.children, secrets)
    shown: dict[str, Any] = {
        name: secrets.hide_all(getattr(each, name)) for name in ("name", "label", "raw", "value", "meaning")
    }
    if any(child.span[0] == layer for child in children):
        gone = [child.span for child in walk_fields(children) if child.is_masked and child.span[0] == layer]
        return each.replace(**shown | {"raw": _cut_raw(each, gone), "children": children})
    if not spans and (shown["value"], shown["raw"]) != (each.value, each.raw):
        # It is written otherwise than it is meant, by escapes: there is no telling which characters are the token.
        spans = [each.span]
    if not spans:
        return each.replace(**shown, children=children) if children != each.children else each.replace(**shown)
    if spans[0][1] <= start and end <= spans[0][2]:
        return each.replace(**shown | {"raw": MASK, "value": MASK, "children": children, "is_masked": True})
    pieces = tuple(_cut_leaf(each, spans))
    gone = [piece.span for piece in pieces if piece.is_masked]
    return each.replace(**shown | {"raw": _cut_raw(each, gone), "children": (*pieces, *children)})


def _cut_raw(each: Field, gone: Iterable[Span]) -> str:
    """The characters of a field with the mask in the place of each of these stretches."""
    _, first, last = each.span
    pieces, at = [], first
    for _, start, end in join_spans(gone):
        if len(each.raw) != last - first:
            return MASK  # What it has is no longer what stands there.
        pieces += [each.raw[at - first : start - first], MASK]
        at = end
    return "".join((*pieces, each.raw[at - first :])) if pieces else each.raw


def _cut_leaf(each: Field, spans: Iterable[Span]) -> Iterator[Field]:
    """The pieces of a leaf: what stands around the tokens as it is, each token masked."""
    layer, start, end = each.span
    at = start
    for _, first, last in spans:
        first, last = max(first, start), min(last, end)
        if at < first:
            yield _cut_piece(each, at, first)
        yield Field(name="secret", label="token", raw=MASK, value=MASK, span=(layer, first, last), is_masked=True)
        at = last
    if at < end:
        yield _cut_piece(each, at, end)


def _cut_piece(each: Field, start: int, end: int) -> Field:
    layer, first, _ = each.span
    raw = each.raw[start - first : end - first]
    name = each.name if each.name in ("syntax", "unread") else "text"
    return Field(name=name, label="text", raw=raw, value=raw, span=(layer, start, end))


IN_CLEAR: Final = NoteKind(
    code="inspector.token-in-clear",
    severity="warning",
    group="security",
    about="What looks like a secret stands in the message in clear. It is masked here, and the record keeps it.",
)
NAMES: Final = tuple(shape.name for shape in SHAPES)


def conceal_reading(reading: Reading, *, around: str = "") -> Reading:
    """The reading without tokens; the same one where it holds none.

    Args:
        reading: as a dialect read it, its envelope applied.
        around: what the log and its delivery say around the text, as JSON.
    """
    secrets = find_secrets(reading, around)
    return reading if secrets is NOTHING else _conceal(reading, secrets)


def may_hold_secret(wire: str, around: str, *, dialect: str) -> bool:
    """Whether anything of a record may be masked; where it says no, nothing is. Cheap, for it reads nothing.

    It asks for less than `find_secrets` does of the one layer that is there, and for what the dialect masks by itself.

    Args:
        wire: the text.
        around: what the log and its delivery say around the text, as JSON.
        dialect: the slug of the one in which the text would be read.
    """
    spoken = get_dialect(dialect)
    return has_hint(wire) or may_be_escaped(wire) or has_hint(around) or spoken.packs(wire) or spoken.masks(wire)


def may_be_masked(reading: Reading) -> bool:
    """Whether the field tree of a concealed reading may have masked leaves; where it says no, it has none.

    The tree, which costs much more than the reading, is not asked for.
    """
    return _secrets_of(reading) is not NOTHING or get_dialect(reading.dialect).masks(reading.wire)


class ConcealedReading(Reading):
    """A reading whose tokens are hidden; it knows them, so that what is told of it can be concealed too."""

    _carried = frozenset({"_secrets"})


def _secrets_of(reading: Reading) -> Secrets:
    found: Secrets = vars(reading).get("_secrets", NOTHING)
    return found


def _conceal(reading: Reading, secrets: Secrets) -> Reading:
    fields = reading.fields
    plain: Reading = reading.plain() if hasattr(reading, "plain") else reading
    given = {name: value for name, value in vars(plain).items() if name in Reading._names}
    for name in ("messages", "notes", "envelope", "footer", "version", "vocabulary", "candidates"):
        given[name] = secrets.hide_all(getattr(plain, name))
    if not any(note.code == IN_CLEAR.code for note in given["notes"]):
        given["notes"] = (*given["notes"], *_note_clear(reading, secrets))
    given["tree"] = lambda: conceal_fields(fields, secrets)
    return ConcealedReading.trust({**given, "_secrets": secrets})


def _note_clear(reading: Reading, secrets: Secrets) -> Iterator[Note]:
    """A note for each kind of token in clear. What a dialect has a place for, and masks itself, is not in clear."""
    known: dict[int, list[Span]] = {}
    for each in walk_fields(reading.fields):
        if each.is_masked and not each.children:
            known.setdefault(each.span[0], []).append(each.span)
    joined = {layer: join_spans(spans) for layer, spans in known.items()}
    for name in NAMES:
        places = [span for span, shape in secrets.stands if shape == name]
        seen = [
            span
            for span in places
            if not any(holds(each, span) for each in find_overlapping(joined.get(span[0], ()), span))
        ]
        if seen or (not places and name in secrets.texts.values()):
            yield IN_CLEAR.note(f"looks like an exposed {name}", min(seen) if seen else None)


def conceal_told(told: Told, reading: Reading) -> Told:
    """What was told of a concealed reading, the tokens hidden in it and in what was opened on the way.

    Telling may have settled on another reading of the same text, or on another tree of it: that is concealed too.
    """
    secrets = _secrets_of(reading)
    texts: dict[str, str] = {}
    for layer in told.layers:
        if has_hint(layer.text):
            texts |= {layer.text[each.start : each.end]: each.name for each in find_tokens(layer.text)}
    if secrets is NOTHING and not texts:
        return told
    whole = locate_secrets(secrets.texts | texts, (*reading.layers, *told.layers))
    return told.replace(
        reading=told.reading if told.reading is reading else _conceal(told.reading, whole),
        messages=whole.hide_all(told.messages),
        fields=conceal_fields(told.fields, whole),
        notes=whole.hide_all(told.notes),
        entries=whole.hide_all(told.entries),
    )


def conceal_around(reading: Reading, around: str) -> str:
    """What stands around the text of a concealed reading, as JSON, without its tokens."""
    secrets = _secrets_of(reading)
    if not around or secrets is NOTHING:
        return around
    said = json.loads(around)
    hidden = secrets.hide_all(said)
    return around if hidden == said else json.dumps(hidden, sort_keys=True, separators=(",", ":"))


def hide_entry(reading: Reading, entry: Entry) -> Entry:
    """What a record establishes, without its tokens."""
    secrets = _secrets_of(reading)
    return (
        entry
        if secrets is NOTHING
        else entry.replace(name=secrets.hide(entry.name), value=secrets.hide_all(entry.value))
    )


def has_tokens(record: Record) -> bool:
    """Whether the bytes of a record hold a token anywhere, also where no message is made of them."""
    text = bytes(record.source).decode("utf-8", "replace")
    return bool(find_tokens(text)) or (has_hint(record.envelope) and bool(find_tokens(record.envelope)))
