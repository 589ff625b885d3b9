"""A message that is told when somebody listens: its English, asides, gloss and reference line are made on demand.

Most messages of a log are read, checked and stored before anyone looks at one, and the places of its words need a
pass over its text. So `tell` only ties a message to its piece of the record; what depends on nothing else is worked
out when it is first asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from .._record import Message, Segment, Span
from .asides import say_beside, say_gloss
from .parts import Piece
from .positions import Path
from .reference import write_reference_line
from .sentences import tell
from .telling import PLACES, Words

_PIECE = "_piece"


class ToldMessage(Message):
    """A message with its telling. It equals a plain `Message` with the same names."""

    _carried = frozenset({_PIECE})

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
        return "".join([words for words, _ in tell(self, self.__dict__[_PIECE])])

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def english(self) -> tuple[Segment, ...]:
        """The sentence in segments."""
        piece = self.__dict__[_PIECE]
        return _place(tell(self, piece), piece, PLACES[piece.profile].details if piece.profile else ())

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def also(self) -> tuple[Segment, ...]:
        """What the message carries beyond the sentence."""
        piece = self.__dict__[_PIECE]
        return _place(say_beside(self, piece), piece, ())

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def gloss(self) -> tuple[Segment, ...]:
        """Every code in wire order."""
        piece = self.__dict__[_PIECE]
        return _place(say_gloss(piece), piece, ())

    @cached_property  # type: ignore[misc]  # a name of the record, worked out when it is asked for
    def reference_line(self) -> str | None:
        """The line that the reference library prints, or an honest one where it would invent or fail."""
        return write_reference_line(self, self.__dict__[_PIECE])


def tell_message(message: Message, piece: Piece) -> ToldMessage:
    """The message tied to the piece of the record that it is told from."""
    return ToldMessage.trust({**message.__dict__, _PIECE: piece})


def _place(told: Iterable[Words], piece: Piece, details: Path) -> tuple[Segment, ...]:
    return tuple(Segment.trust({"text": words, "spans": _find_spans(piece, path, details)}) for words, path in told)


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
