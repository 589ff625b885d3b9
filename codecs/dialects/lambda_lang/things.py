"""Things: what nouns, names and groups of them are called in a sentence, read one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Basis, Span
from .nodes import Node
from .pieces import Define, Piece, Tell
from .wording import (
    may_bear_id,
    say_amount,
    say_id,
    say_key,
    say_marked,
    say_marker,
    say_others,
    say_person,
    say_plural,
    say_value,
    say_word,
)


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


_LITERALS = frozenset({"name", "mixed", "quote", "paraphrase", "term", "escape", "error", "nothing"})


class Things(Cursor):
    """Takes one person or thing after the other; a False says that the clause is of a shape that is not told."""

    person = "third"

    def _take_person(self) -> Piece:
        node = self._next()
        after = self._peek()
        if node.kind != "entity":
            is_one = node.text in ("1", "@")
            self.person = "third" if is_one else "plural"
            if after is None or after.kind != "entity" or after.text not in "HA":
                return Piece(f" {node.says}", (node.span,))
            self.at += 1
            kind = say_person(after.text, is_all=True).removeprefix("all ")
            return Piece(f" {node.says} {kind.removesuffix('s') if is_one else kind}", (node.span, after.span))
        is_all = after is not None and after.kind == "star"
        said = say_person(node.text, is_all=is_all)
        self.person = "plural" if is_all else {"I": "first", "U": "second"}.get(node.text, "third")
        if after is not None and is_all:
            self.at += 1
            return Piece(f" {said}", (node.span, after.span))
        return Piece(f" {said}", (node.span,))

    def _take_object(self) -> bool:
        node = self._peek()
        if node is None:
            return False
        if node.kind == "open":
            return self._take_group()
        if node.kind == "entity" or (node.kind == "star" and not self._is_counted(self._peek(1))):
            person = self.person
            piece = self._take_person()
            self.person = person
            self.pieces.extend(as_objects([piece]))
            return True
        return self._take_noun()

    def _take_group(self) -> bool:
        while self.nodes[self.at].kind == "domain":
            self.at += 1
        first, depth = self.at, 0
        while self.at < len(self.nodes):
            kind = self.nodes[self.at].kind
            depth += (kind == "open") - (kind == "close")
            self.at += 1
            if depth == 0:
                break
        self.pieces.extend(self.tell_group(self.nodes[first : self.at]))
        return True

    @staticmethod
    def _is_counted(node: Node | None) -> bool:
        return node is not None and node.kind == "word" and node.uses[:1] == "n" and node.entry is None

    def _take_noun(self, *, has_article: bool = True) -> bool:
        """A noun with what counts it, an adjective before it, its id, and what a dot joins to it."""
        node = self._next()
        is_plural = False
        after = self._peek()
        if node.kind in ("star", "quantity", "number") and after is not None and self._is_counted(after):
            is_plural = node.text != "1" and node.says != "1"
            self._say(f" {say_amount(node.says)}", node.span)
            has_article = False
            node = self._next()
        if node.kind in ("word", "mixed", "name") and self._is_sign("="):
            return self._take_pair(node)
        if node.entry is not None:
            self.pieces.extend(self.define(node))
            return True
        if node.kind == "number":
            self._say(f" {say_amount(node.says)}", node.span)
            return True
        if node.kind in _LITERALS or (node.kind == "word" and node.basis == "unknown"):
            self._say(f" {say_word(node)}", node.span, basis="unknown" if node.kind == "mixed" else node.basis)
            return self._take_dot()
        if node.kind != "word" or node.basis != "exact" or not node.uses or node.uses[0] in "tmxjd":
            return False
        if node.uses[0] == "a" and self._is_counted(self._peek()):
            self._say(f"{' the' if has_article else ''} {node.adjective()}", node.span)
            self._tell_doubt(node, "a")
            node, has_article = self._next(), False
        noun = node.noun()
        if noun is None:
            return False
        article = " the" if has_article and noun.is_counted and not self._is_id() else ""
        self._say(f"{article} {say_plural(node) if is_plural else noun.one}", node.span)
        self._tell_doubt(node, "n")
        return (may_bear_id(node) or not self._is_id()) and self._take_id() and self._take_dot()

    def _is_id(self, by: int = 0) -> bool:
        key = self._peek(by)
        return key is not None and key.text == "id" and key.entry is None and self._is_sign("=", by + 1)

    def _take_id(self) -> bool:
        """`id=alpha`, and `&id=beta` after it."""
        lead = ""
        while self._is_id():
            key, value = self.nodes[self.at], self._peek(2)
            if value is None or not value.kind.startswith("value-"):
                return False
            self.at += 3
            self._say(f"{lead} {say_id(value)}", key.span, value.span)
            if not (self._is_sign("&|") and self._is_id(1)):
                break
            lead = f" {self.nodes[self.at].says}"
            self.at += 1
        return True

    def _take_dot(self) -> bool:
        """`xb.fx`: a dot joins two words into one compound."""
        if not self._is_sign("."):
            return True
        self._say(" joined by a dot to", self.nodes[self.at].span)
        self.at += 1
        return self._peek() is not None and self._take_noun(has_article=False)

    def _take_pair(self, key: Node) -> bool:
        equals, value = self.nodes[self.at], self._peek(1)
        if value is None or not value.kind.startswith("value-") or key.entry is not None or value.entry is not None:
            return False
        self.at += 2
        self._say(" id" if key.text == "id" else f" {say_key(key)}", key.span, basis=key.basis)
        self._say(f" {say_value(value)}", equals.span, value.span, basis=value.basis)
        return True

    def tell_thing(self) -> list[Piece] | None:
        """A single thing: what stands after "because of"."""
        return self.pieces if self.nodes and self._take_noun() and self.at == len(self.nodes) else None


def as_objects(pieces: Sequence[Piece]) -> list[Piece]:
    """Persons as they stand after a verb: `me`, `us`."""
    return [piece._replace(text={" I": " me", " we": " us"}.get(piece.text, piece.text)) for piece in pieces]
