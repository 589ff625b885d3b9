"""A text that a message holds, read in its own dialect, and its layers, spans and parts in the record.

Reading and telling texts inside is the same for all dialects whose messages hold such: the depth and the number are
bounded, what such a text leaves open the message around it says, and each is told before that message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Final

from ._context import Context, Keys, Within
from ._dialect import detect, get_dialect, title_of
from ._places import find_secrets, list_hidden
from ._record import Entry, Field, Layer, LayerKind, Message, Note, Reading, Segment, Span, leaf

# A text inside a text inside a text: beyond this it stays text.
MAX_DEPTH: Final = 4
# So many texts of a record are read in turn.
MAX_CARRIED: Final = 256
# Most texts inside messages are plain English: a weaker guess is not taken.
_SURE: Final = 0.5

_depth: ContextVar[int] = ContextVar("depth", default=0)
# What the log around a record may have given a message after it was read.
_OF_LOG: Final = (
    "message_id",
    "conversation_id",
    "trace_id",
    "parent_id",
    "sender",
    "receivers",
    "sent_at",
    "sent_at_raw",
)

# What a text inside leaves open, the message that carries it says.
_GIVEN = ("sender", "receivers", "conversation_id", "trace_id", "sent_at", "sent_at_raw")


class Inner:
    """A text inside a message, as read: `layer` is the number that its wire has among the layers of the whole record.

    Args:
        reading: of the text alone; its layers are numbered from 0.
        layer: the number of its first layer in the record; the others follow.
        of: where the text was written.
        kind: how it was written there.
    """

    def __init__(self, reading: Reading, *, layer: int, of: Span, kind: LayerKind) -> None:
        self.reading = reading
        self._layer = layer
        self._count = len(reading.layers)
        # Where what telling adds to its layers is numbered from.
        self._added = 0
        first = Layer(id=layer, kind=kind, text=reading.wire, of=of)
        self.layers: tuple[Layer, ...] = (first, *self.shift_layers(reading.layers[1:]))

    def add_layers(self, layers: Sequence[Layer], added: int) -> tuple[Layer, ...]:
        """The layers that telling found, numbered in the record from `added`."""
        self._added = added
        return self.shift_layers(layers)

    def shift_layers(self, layers: Iterable[Layer]) -> tuple[Layer, ...]:
        """Layers of the text, numbered in the record."""
        return tuple(
            each.replace(id=self._number(each.id), of=self._shift(each.of) if each.of else None) for each in layers
        )

    def shift_fields(self, fields: Iterable[Field]) -> tuple[Field, ...]:
        """Fields of the text, their spans in the record."""
        return tuple(
            each.replace(span=self._shift(each.span), children=self.shift_fields(each.children)) for each in fields
        )

    def fill(self, outer: Message, *, is_heard: bool) -> tuple[Message, ...]:
        """The messages of the text with what the message around them says and they do not.

        Args:
            outer: that message.
            is_heard: whether its sender hears them: who says them is then not known.
        """
        if is_heard:
            outer = outer.replace(sender=None, receivers=(outer.sender,) if outer.sender else ())
        first, *others = (self._fill(message, outer) for message in self.reading.messages)
        # What is noted on the text as a whole goes with its first message: the record around has notes of its own.
        return (first.replace(notes=(*first.notes, *self.reading.notes)), *others)

    def _fill(self, message: Message, outer: Message) -> Message:
        given = {name: getattr(outer, name) for name in _GIVEN if not getattr(message, name)}
        if message.broadcast or message.target is not None:
            given.pop("receivers", None)
        if message.sent_at:
            given.pop("sent_at_raw", None)
        return message.replace(**{name: value for name, value in given.items() if value})

    def place(self, messages: Iterable[Message], outer: Message, first: int) -> Iterator[Message]:
        """Messages of the text as parts of the record from number `first` on, their spans in it."""
        for part, message in enumerate(messages, start=first):
            yield message.replace(
                part=part,
                dialect=message.dialect or self.reading.dialect,
                carrier_part=message.carrier_part + first - 1 if message.carrier_part else outer.part,
                english=self._shift_segments(message.english),
                also=self._shift_segments(message.also),
                gloss=self._shift_segments(message.gloss),
                notes=self.shift_notes(message.notes),
            )

    def shift_notes(self, notes: Iterable[Note]) -> tuple[Note, ...]:
        """Notes on the text, their spans in the record."""
        return tuple(note.replace(span=self._shift(note.span)) if note.span else note for note in notes)

    def _shift_segments(self, segments: Iterable[Segment]) -> tuple[Segment, ...]:
        return tuple(
            each.replace(spans=tuple(map(self._shift, each.spans))) if each.spans else each for each in segments
        )

    def _number(self, layer: int) -> int:
        return self._layer + layer if layer < self._count else self._added + layer - self._count

    def _shift(self, span: Span) -> Span:
        return (self._number(span[0]), span[1], span[2])


class TooDeepError(Exception):
    """A text is in a dialect, but stands deeper, or after more of them, than is read in turn."""


def is_spoken(text: str) -> bool:
    """Whether a text inside a message is in a dialect, as far as it can be told from it alone."""
    best = detect(text)[0]
    return best.dialect != "prose" and best.score >= _SURE


def read_inner(text: str, *, layer: int, of: Span, kind: LayerKind, count: int) -> Inner | None:
    """A text inside a message, read in its own dialect; None where it is plain.

    Args:
        text: what it stands for.
        layer: the number that its wire is to have in the record.
        of: where it was written.
        kind: how it was written there.
        count: how many were read of this record already.

    Raises:
        TooDeepError: where it is not read.
    """
    candidates = detect(text)
    if candidates[0].dialect == "prose" or candidates[0].score < _SURE:
        return None
    if _depth.get() >= MAX_DEPTH or count >= MAX_CARRIED:
        raise TooDeepError
    token = _depth.set(_depth.get() + 1)
    try:
        reading = get_dialect(candidates[0].dialect).read(text, None).replace(candidates=candidates)
    finally:
        _depth.reset(token)
    return Inner(reading, layer=layer, of=of, kind=kind)


def veil(inner: Iterable[Inner], layers: Sequence[Layer]) -> tuple[Mapping[int, Sequence[Span]], Sequence[str]]:
    """What is secret in texts inside, by layer, and the texts that nothing told of the record may hold therefore."""
    masking = [each for each in inner if get_dialect(each.reading.dialect).masks(each.reading.wire)]
    secrets = find_secrets(grow_inner(masking), layers)
    return secrets, list_hidden(secrets, layers)


def grow_inner(inner: Iterable[Inner]) -> Iterator[Field]:
    """The fields of texts inside."""
    for each in inner:
        yield from each.shift_fields(each.reading.fields)


class Contents:
    """The texts inside the messages of a record, being told.

    Args:
        reading: of the record.
        context: in which it is told.
        keys: with which what is sealed may be opened.
    """

    def __init__(self, reading: Reading, context: Context, keys: Keys) -> None:
        self._context, self._keys = context, keys
        self._next = len(reading.layers)
        self.layers: list[Layer] = []
        self.fields: list[Field] = []
        self.entries: list[Entry] = []

    def tell(self, inner: Inner, outer: Message, placed: Sequence[Message]) -> list[Message]:
        """The messages of a text inside, told; what they establish holds for what the record says after them.

        Args:
            inner: the text.
            outer: the message around it.
            placed: its messages as they stand in the record, with what the log around it says.
        """
        first = placed[0].part
        filled = [
            message.replace(**{name: getattr(other, name) for name in _OF_LOG})
            for message, other in zip(inner.reading.messages, placed, strict=True)
        ]
        context = Within(self._context, self.entries) if self.entries else self._context
        told = get_dialect(inner.reading.dialect).tell(
            inner.reading.replace(messages=tuple(filled)), context, self._keys
        )
        self.layers.extend(inner.add_layers(told.layers, self._next))
        self._next += len(told.layers)
        self.fields.extend(inner.shift_fields(told.fields))
        for entry in told.entries:
            if entry.source is not None and entry.source[0] == self._context.record:
                entry = entry.replace(source=(entry.source[0], entry.source[1] + first - 1))
            self.entries.append(entry)
        notes = inner.shift_notes((*inner.reading.notes, *told.notes))
        messages = list(inner.place(told.messages, outer, first))
        messages[0] = messages[0].replace(notes=(*messages[0].notes, *notes))
        return messages

    def add_text(self, text: str, of: Span) -> None:
        """Add a layer that was put together of earlier messages and of a stretch of this one."""
        layer = Layer(id=self._next, kind="put-together", text=text, of=of)
        self._next += 1
        self.layers.append(layer)
        self.fields.append(grow_put_together(layer))


def grow_put_together(layer: Layer) -> Field:
    """The one leaf of a layer that was put together."""
    return leaf("text", "put together", layer.text, 0, len(layer.text), value=layer.text, layer=layer.id)


def say_inner(said: Sequence[Message], part: int, span: Span) -> Iterator[Segment]:
    """What a text inside the message of that part says, and before it its dialect and the mark that opens it."""
    # What these carry in turn they say themselves.
    said = [each for each in said if each.carrier_part == part]
    title = title_of(said[0].dialect or "")
    yield Segment(text=f"in {title}: “" if len(said) == 1 else f"{len(said)} messages in {title}: “", spans=(span,))
    for index, each in enumerate(said):
        yield from (*((Segment(text=" "),) if index else ()), *each.english)
