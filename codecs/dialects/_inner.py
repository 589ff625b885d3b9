"""A text that a carrier's message holds, read in its own dialect, and its layers, spans and parts in the record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ._record import Field, Layer, Message, Note, Reading, Segment, Span

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

    def __init__(self, reading: Reading, *, layer: int, of: Span, is_string: bool) -> None:
        self.reading = reading
        self._layer = layer
        self._count = len(reading.layers)
        # Where what telling adds to its layers is numbered from.
        self._added = 0
        first = Layer(id=layer, kind="json-string" if is_string else "json-value", text=reading.wire, of=of)
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
        return tuple(self._fill(message, outer) for message in self.reading.messages)

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
