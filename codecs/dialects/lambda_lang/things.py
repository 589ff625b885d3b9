"""Things: what nouns, names and groups of them are called in a sentence, read one after the other; and what stands
after its verb: to whom, what, and how.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Basis, Span
from .lexicon import TAKES_TO, Verb
from .nodes import Define, Node, Piece, Tell
from .wording import (
    ARROWS,
    ASIDES,
    is_percentage,
    may_bear_id,
    say_amount,
    say_arrow,
    say_degree,
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


class Complements(Things):
    """Takes what stands after the verb; a False says that the clause is of a shape that is not told."""

    def __init__(self, nodes: Sequence[Node], mood: str, tell: Tell, define: Define) -> None:
        super().__init__(nodes, tell, define)
        self.mood = mood
        self.negation: tuple[str, tuple[Span, ...]] = ("", ())
        self.verb: Verb | None = None

    def _tell_more(self) -> bool:
        node = self.nodes[self.at]
        if node.kind == "joiner":
            return self._tell_sign(node)
        if node.kind == "block":
            self.at += 1
            self.pieces.extend(self.tell_group([node]))
            return True
        if node.kind in ("emotion", "reference"):
            self.at += 1
            self._say(ASIDES[node.kind](node), node.span)
            return True
        if node.uses == "t" and node.entry is None and node.meaning is not None:
            self.at += 1
            said = {"past": "in the past", "future": "in the future"}.get(node.meaning.tense or "", "now")
            self._say(f" {said}", node.span)
            return True
        if node.kind == "open":
            return self._take_object()
        # A thing without a sign before it is what is done something to, unless it may as well say how all stands.
        after = self._peek()
        return self._stands_after_verb() and after is not None and not _is_state(after) and self._take_object()

    def _stands_after_verb(self) -> bool:
        """Whether nothing but the verb, a sign or what belongs to the verb stands right before."""
        before = self.nodes[self.at - 1]
        if before.kind == "marker" and self.at > 1:
            before = self.nodes[self.at - 2]
        return before.kind == "joiner" or (
            before.kind == "word" and self.verb is not None and before.verb() is self.verb
        )

    def _tell_sign(self, node: Node) -> bool:
        text = node.text
        self.at += 1
        after = self._peek()
        is_behind = text in "+-" and (after is None or after.kind == "joiner") and not self._is_lose(node)
        if text[0] in "^_" or is_behind:
            self._say(f" ({say_degree(text)})", node.span)
            return True
        if text == "?" and after is None:
            return self.mood == "query"
        if after is None:
            return False
        if text in ARROWS:
            self._say(f" {say_arrow(self.nodes, self.at - 1)}", node.span)
            return self._take_object()
        if text == "/" and is_percentage(after):
            self._say(",", node.span)
            return self._take_object()
        if text == "/":
            about = self.verb.about if self.verb is not None and self._is_after_verb() else ""
            if after.kind == "word" and self._chains(after):
                return self._tell_chained(node)
            if about:
                self._say(f" {about}", node.span)
            elif self._is_after_verb():
                self.pending = (node.span,)
            else:
                self._say(" of", node.span)
            return self._take_object()
        if text == "&" or text == "|":
            self._say(f" {node.says}", node.span)
            return self._take_object()
        if text == "+" or text == "-":
            return self._tell_more_or_less(node, after)
        return False

    def _is_after_verb(self) -> bool:
        """Whether the sign in hand stands right after the verb."""
        before = self.nodes[self.at - 2]
        return before.verb() is self.verb or before.uses == "m" or before.kind == "marker"

    def _tell_more_or_less(self, node: Node, after: Node) -> bool:
        if node.text == "-" and after.kind == "word" and after.uses == "v" and self._wants_to():
            self.negation = ("not", (node.span,))
            return self._tell_chained(node)
        if after.kind != "word" or after.basis != "exact" or after.entry is not None or self._is_lose(node):
            return False
        self._say(
            " more" if node.text == "+" else " less", node.span, basis="exact" if node.text == "+" else "inferred"
        )
        return self._take_noun(has_article=False)

    def _is_lose(self, sign: Node) -> bool:
        """`lo-`, which v0.8 has for "lose"."""
        return sign.text == "-" and self.at > 1 and self.nodes[self.at - 2].text == "lo"

    def _wants_to(self) -> bool:
        return self.verb is not None and self.verb.base in TAKES_TO

    def _chains(self, after: Node) -> bool:
        return after.uses[:1] == "v" and after.entry is None and self._wants_to() and after.verb() is not None

    def _tell_chained(self, node: Node) -> bool:
        """`Aw/s`: "wants to speak"."""
        held = self._next()
        verb = held.verb()
        if verb is None or held.basis != "exact":
            return False
        negated = "not " if self.negation[0] else ""
        self._say(f" {negated}to {verb.base}", node.span, held.span)
        self.negation, self.verb = ("", ()), verb
        self._tell_doubt(held, "v")
        return True


def _is_state(node: Node) -> bool:
    """Whether a word names a thing and a state alike, as "success" does."""
    return node.kind == "word" and "a" in node.uses and "n" in node.uses
