"""A message that is told when somebody listens: its English, asides, gloss and reference line are made on demand.

Most messages of a log are read, checked and stored before anyone looks at one, and the places of its words need a
pass over its text. So `tell` only ties a message to its piece of the record; what depends on nothing else is worked
out when it is first asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import Any, Final, Self

from .._positions import Path
from .._record import Message, Segment, Span
from .asides import say_beside, say_gloss
from .forms import say_plain
from .parts import Piece, take_whole
from .reference import write_reference_line
from .sentences import tell
from .telling import PLACES, Words

# Of a telling in more pieces than this the rest is one: a segment weighs a hundred times as much as its words.
MAX_SEGMENTS: Final = 10_000
_PIECE, _WIRE, _DATA, _CANCEL = "_piece", "_wire", "_data", "_answers_cancel"


class ToldMessage(Message):
    """A message with its telling. It equals a plain `Message` with the same names."""

    _carried = frozenset({_PIECE, _CANCEL})

    @property
    def piece(self) -> Piece:
        """What it is told from."""
        piece: Piece = self.__dict__[_PIECE]
        return piece

    @property
    def answers_cancel(self) -> bool:
        """Whether it acknowledges a cancellation, as its conversation shows."""
        return _CANCEL in self.__dict__

    def answer_cancel(self) -> Self:
        """The message, told as one that acknowledges a cancellation."""
        told = self.replace()
        told.__dict__[_CANCEL] = True
        return told

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._order)

    __hash__ = Message.__hash__

    @property
    def sentence(self) -> str:
        """The English as one string."""
        if "english" in self.__dict__:
            return super().sentence
        return "".join([words for words, _ in tell(self, self.piece)])

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def english(self) -> tuple[Segment, ...]:
        """The sentence in segments."""
        piece = self.piece
        return _place(tell(self, piece), piece, PLACES[piece.profile].details if piece.profile else ())

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def also(self) -> tuple[Segment, ...]:
        """What the message carries beyond the sentence."""
        piece = self.piece
        return _place(say_beside(self, piece), piece, ())

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def gloss(self) -> tuple[Segment, ...]:
        """Every code in wire order."""
        piece = self.piece
        return _place(say_gloss(piece), piece, ())

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def reference_line(self) -> str | None:
        """The line that the reference library prints, or an honest one where it would invent or fail."""
        return write_reference_line(self, self.piece)

    def place_of_act(self) -> Span:
        """Where the act stands with its key; the whole of a message that names none."""
        piece = self.piece
        member = piece.node.locate(PLACES[piece.profile or "0.2"].act)
        return (0, piece.start, piece.end) if member is None else (0, member.key_start, member.end)


class PlainToldMessage(ToldMessage):
    """A message that is the whole of a plain text: its piece is made when something but the sentence is asked for."""

    def replace(self, **values: Any) -> Self:
        """The message with some names given anew, told by the teller: it may no longer be what its text says."""
        held = self.__dict__
        held[_PIECE] = self.piece
        return super().replace(**values)

    @property
    def sentence(self) -> str:
        """The English as one string."""
        held = self.__dict__
        said = say_plain(self, held[_DATA], held[_WIRE]) if _DATA in held and "english" not in held else None
        return super().sentence if said is None else said

    @property
    def piece(self) -> Piece:
        """What it is told from."""
        held = self.__dict__
        if _PIECE not in held:
            held[_PIECE] = take_whole(held[_WIRE], held[_DATA])
        return super().piece


def tell_plain(message: Message, wire: str, data: dict[str, Any]) -> PlainToldMessage:
    """The message tied to the text that it is the whole of."""
    return PlainToldMessage.trust({**message.__dict__, _WIRE: wire, _DATA: data})


def tell_message(message: Message, piece: Piece) -> ToldMessage:
    """The message tied to the piece of the record that it is told from."""
    return ToldMessage.trust({**message.__dict__, _PIECE: piece})


def _place(told: Iterable[Words], piece: Piece, details: Path) -> tuple[Segment, ...]:
    pieces = iter(told)
    segments = tuple(
        Segment.trust({"text": words, "spans": _find_spans(piece, path, details)})
        for words, path in islice(pieces, MAX_SEGMENTS)
    )
    rest = "".join([words for words, _ in pieces])
    return (*segments, Segment(text=rest, spans=_find_spans(piece, (), details))) if rest else segments


def _find_spans(piece: Piece, path: Path | None, details: Path) -> tuple[Span, ...]:
    if path is None:
        return ()
    if not path:
        return ((0, piece.start, piece.end),)
    member = piece.node.locate(path)
    if member is None:
        return ()
    # A detail is said with its key, as is all that is said beside the sentence; in the sentence a name, an id or an
    # act is said by its value alone.
    is_pair = len(path) > len(details) or path in (("det",), ("auth",))
    return ((0, member.key_start if is_pair else member.start, member.end),)
