"""Concealment: the tokens of one record, where they stand in its layers, and any text, value or field tree without
them.

Many texts are looked for at once (`Needles`), in time that grows with the text and not with how many they are. By
fields whose tokens are masked leaves, pages, exports and the API mask the wire itself.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from typing import Any, Final

from dialects import MASK, Field, Layer, Message, Reading, Segment, Span
from inspector.tokens import alias_of, find_tokens, has_hint, hide_tokens

# In so many characters a place has to agree before it is looked at closely: no needle is shorter.
HEAD: Final = 6
# By so many characters it is sorted in; what agrees further is compared one by one.
_WINDOW: Final = 512
# So few heads are sought one after the other, which is quicker than a look at every place.
_FEW: Final = 8


class Needles:
    """Texts to be found. Those shorter than `HEAD` are left out.

    Args:
        needles: in any order.
    """

    def __init__(self, needles: Iterable[str]) -> None:
        self._sorted = sorted({needle for needle in needles if len(needle) >= HEAD})
        self._heads = {needle[:HEAD] for needle in self._sorted}
        self._beginnings = list(self._find_beginnings())

    def find_whole(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, needle) of every needle in the text, in order and apart; of those at one place the longest."""
        reached = 0
        for at in self.find_places(text):
            if at >= reached:
                needle = self.find_beginning(text, at)
                if needle is not None:
                    reached = at + len(needle)
                    yield at, reached, needle

    def find_places(self, text: str) -> Iterator[int]:
        """Where a text agrees with the head of a needle, in order."""
        if len(self._heads) <= _FEW:
            yield from merge(*(find_every(text, head) for head in self._heads))
            return
        for at in range(len(text) - HEAD + 1):
            if text[at : at + HEAD] in self._heads:
                yield at

    def match(self, text: str, at: int) -> tuple[int, str]:
        """In how many characters such a place agrees with the needle that it agrees with longest, and that needle."""
        length, place = self._match(text, at)
        return length, self._sorted[place]

    def find_beginning(self, text: str, at: int) -> str | None:
        """The longest needle that stands whole at this place of the text."""
        _, place = self._match(text, at)
        while place >= 0:
            if text.startswith(self._sorted[place], at):
                return self._sorted[place]
            place = self._beginnings[place]
        return None

    def _find_beginnings(self) -> Iterator[int]:
        """For each needle the place of the longest other one that it begins with; -1 where there is none."""
        open_places: list[int] = []
        for place, needle in enumerate(self._sorted):
            while open_places and not needle.startswith(self._sorted[open_places[-1]]):
                open_places.pop()
            yield open_places[-1] if open_places else -1
            open_places.append(place)

    def _match(self, text: str, at: int) -> tuple[int, int]:
        """As `match`, with the needle by its place."""
        window = text[at : at + _WINDOW]
        place = bisect_right(self._sorted, window)
        found = max((_agree(text, at, self._sorted[near]), near) for near in (place - 1, place) if self._has(near))
        # Of those that agree in the whole window each may go on further.
        while self._has(place) and len(window) == _WINDOW and self._sorted[place].startswith(window):
            found = max(found, (_agree(text, at, self._sorted[place]), place))
            place += 1
        return found

    def _has(self, place: int) -> bool:
        return 0 <= place < len(self._sorted)


def find_every(text: str, part: str) -> Iterator[int]:
    """Where a part begins in a text, also within itself."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _agree(text: str, at: int, needle: str) -> int:
    """In how many characters a place of a text agrees with a needle."""
    if text.startswith(needle, at):
        return len(needle)
    low, high = 0, len(needle)
    while high - low > 1:
        middle = (low + high) // 2
        if text.startswith(needle[:middle], at):
            low = middle
        else:
            high = middle
    return low


# A stretch that agrees with a token in so many letters and digits is a piece of it, wherever it was cut.
_TELLING: Final = 12
_CUT: Final = "…"
# Strings that a message is shown by, piece by piece: a token may lie across them.
_PIECES: Final = frozenset({"english", "gloss"})


@dataclass(eq=False)
class Secrets:
    """The tokens of one record: their texts, each with the name of its shape, and where they stand in its layers.

    `spans` has them by layer, in order and apart; `hidden` has with them the stretches of outer layers that unpack into
    one; `stands` has each with the name of its shape. `pieces` are by layer the stretches that have some of one of
    several, `parts` the parts of the messages that say them.
    """

    texts: dict[str, str]
    spans: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    hidden: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    stands: Sequence[tuple[Span, str]] = ()
    pieces: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    parts: Set[int] = frozenset()

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
            if "content" in hidden and isinstance(value, Message) and value.part in self.parts:
                hidden["content"] = MASK
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
                text = MASK if len(text) > 1 or self._is_piece(segment.spans) else text
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
        """Whether these characters are all of a token, or of a piece of one."""
        found = list(spans)
        return bool(found) and all(
            any(holds(each, span) for each in find_overlapping(self.spans.get(span[0], ()), span))
            or self._is_piece([span])
            for span in found
        )

    def _is_piece(self, spans: Iterable[Span]) -> bool:
        return any(holds(each, span) for span in spans for each in find_overlapping(self.pieces.get(span[0], ()), span))

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
    for written, name in list(texts.items()):
        texts |= {meant: texts.get(meant, name) for meant in _read_escapes(written)}
    return locate_secrets(texts, layers) if texts else NOTHING


def _read_escapes(token: str) -> Iterator[str]:
    """What a token means whose escapes are read as JSON reads them, once and as often as there are any."""
    while "\\" in token:
        try:
            token = json.loads(f'"{token}"', strict=False)
        except ValueError:
            return
        yield token


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
    pieces: dict[int, list[Span]] = defaultdict(list)
    parts: set[int] = set()
    for layer in reversed(layers):
        for outer in layer.find_outer(hidden[layer.id]):
            hidden.setdefault(outer[0], []).append(outer)
        for each in layer.find_pieces(hidden[layer.id]):
            pieces[each.span[0]].append(each.span)
            parts.add(each.part)
    whole, cut = ({at: join_spans(found) for at, found in each.items()} for each in (hidden, pieces))
    return Secrets(texts, spans, whole, stands, cut, parts)


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
