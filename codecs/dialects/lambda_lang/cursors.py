"""The tokens of one clause under a cursor, and the pieces told of them."""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Basis, Span
from .nodes import Node
from .pieces import Define, Piece, Tell
from .wording import say_marked, say_marker, say_others


class Cursor:
    """Walks over the nodes of one clause.

    Args:
        nodes: the nodes of the clause.
        tell: tells what stands in brackets or in a block.
        define: tells a word that a sender defined.
    """

    def __init__(self, nodes: Sequence[Node], tell: Tell, define: Define) -> None:
        self.nodes = [node for node in nodes if node.kind != "space"]
        self.tell_group = tell
        self.define = define
        self.pieces: list[Piece] = []
        self.at = 0
        self.pending: tuple[Span, ...] = ()
        # What is doubtful about a divided word, said at the end of the sentence.
        self.doubts: list[Piece] = []
        # Whether a marker asks for a meaning that is not in force: a sentence would hide which one is meant.
        self.is_unmet = False

    def _peek(self, by: int = 0) -> Node | None:
        """A node from here on; the domain before a word belongs to the word."""
        place = self.at
        while True:
            node = self.nodes[place] if place < len(self.nodes) else None
            if node is None or (node.kind != "domain" and by == 0):
                return node
            by -= node.kind != "domain"
            place += 1

    def _next(self) -> Node:
        """The node in hand, with the place of its domain kept for its piece."""
        node = self.nodes[self.at]
        if node.kind == "domain":
            self.pending = (node.span,)
            self.at += 1
            node = self.nodes[self.at]
        self.at += 1
        return node

    def _say(self, text: str, *spans: Span, basis: Basis = "exact") -> None:
        self.pieces.append(Piece(text, (*self.pending, *spans), basis))
        self.pending = ()

    def _is_sign(self, text: str, by: int = 0) -> bool:
        node = self._peek(by)
        return node is not None and node.kind == "joiner" and node.text in text

    def _tell_doubt(self, node: Node, letter: str) -> None:
        """The other meanings of a word, that it was divided, or what its marker asks for."""
        if others := say_others(node, letter):
            self._say(others, node.span)
        if node.basis == "inferred" and node.entry is None:
            text = f' (perhaps: "{node.text}" is read as {node.says})'
            self.doubts.append(Piece(text, (node.span,), "inferred"))
        marker = self._peek()
        if marker is not None and marker.kind == "marker":
            self.at += 1
            self._say(say_marker(node, marker.text), marker.span)
            self.is_unmet = self.is_unmet or bool(say_marked(node, marker.text))
