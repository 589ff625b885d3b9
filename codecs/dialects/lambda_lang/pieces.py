"""What is said, piece by piece: words with the places on the wire that justify them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._record import Basis, Span
from .nodes import Node


class Piece(NamedTuple):
    """Words with the places they came from; `source` is the message that gave a meaning."""

    text: str
    spans: tuple[Span, ...] = ()
    basis: Basis = "exact"
    source: tuple[Any, int] | None = None


# Tells what stands in brackets or in a block.
Tell = Callable[[Sequence[Node]], list[Piece]]
# Tells a word that a sender defined.
Define = Callable[[Node], list[Piece]]
