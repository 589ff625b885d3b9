"""A body told word by word: where the wire only sets words side by side, nothing is made up to join them.

What a space separates on the wire a comma separates here, but for a number, which is told with the word after it;
what the wire joins stands together, with the words for the signs between.
"""

from __future__ import annotations

from collections.abc import Sequence

from .nodes import Node, find_before
from .pieces import Define, Piece, Tell
from .signs import Signs
from .wording import (
    ARROWS,
    ASIDES,
    is_compared,
    is_number_beside,
    may_bear_id,
    say_amount,
    say_degree,
    say_id,
    say_key,
    say_literal_key,
    say_marked,
    say_marker,
    say_person,
    say_value,
    say_word,
)


class WordList(Signs):
    """Tells one body.

    Args:
        nodes: its nodes, spaces included.
        mood: inform, request, query or offer.
        tell: tells what stands in brackets or in a block.
        define: tells a word that a sender defined.
    """

    def __init__(self, nodes: Sequence[Node], mood: str, tell: Tell, define: Define) -> None:
        super().__init__(nodes, mood)
        self.tell_group = tell
        self.define = define
        # Where spaces alone part the words, what a key gives is certain, and is told before them.
        self.is_plain = all(node.kind != "joiner" or node.text == "=" for node in nodes)
        self.pairs: list[Piece] = []

    def tell(self) -> list[Piece]:
        """The words in the order of the wire; each piece carries its own space before it."""
        while self.at < len(self.nodes):
            node = self.nodes[self.at]
            self.at += 1
            if node.kind == "space":
                before = self._before()
                is_to = before is not None and before.text in ARROWS
                self.is_apart = bool(self.pieces) and not is_to and not is_number_beside(self.nodes, self.at - 2)
            elif node.kind == "domain":
                self.pending = (node.span,)
            elif node.kind == "joiner":
                self._take_sign(node)
            else:
                self._take_thing(node)
        return self._put_pairs_first()

    def _put_pairs_first(self) -> list[Piece]:
        if not self.pairs or not self.pieces:
            return self.pairs or self.pieces
        first = self.pieces[0]
        words = [first._replace(text=f" {first.text.lstrip(' ,')}"), *self.pieces[1:]]
        return [*self.pairs, Piece("; word by word:" if len(words) > 1 else ";"), *words]

    # Words, names, numbers and brackets.

    def _take_thing(self, node: Node) -> None:
        kind = node.kind
        if kind in ("word", "mixed", "name", "term") and self._is_key(self.at):
            start = len(self.pieces)
            if not self._take_pair(node) and self.is_plain:
                pair, self.pieces = self.pieces[start:], self.pieces[:start]
                pair[0] = pair[0]._replace(text=f"{',' if self.pairs else ''} {pair[0].text.lstrip(' ,')}")
                self.pairs.extend(pair)
        elif kind == "word":
            self._take_word(node)
        elif kind == "entity":
            after = self._next()
            is_all = after is not None and after.kind == "star"
            before = self._before()
            self.is_apart = self.is_apart or (before is not None and before.basis == "unknown")
            self._say(say_person(node.text, is_all=True) if is_all else node.says, node.span)
            if after is not None and is_all:
                self._attach("", after.span)
                self.at += 1
        elif kind == "term":
            self._take_term(node)
        elif kind in ("star", "quantity"):
            self._say(node.says, node.span)
            self._take_counted(is_one=node.text == "1")
            # What is a key is not counted.
            self.is_apart = self._is_key(self.at + 1)
        elif kind == "number":
            self._take_number(node)
        elif kind in ("open", "block"):
            self._take_group(node)
        elif kind == "marker":
            self._take_marker(node)
        elif kind in ASIDES:
            self._attach(ASIDES[kind](node), node.span)
        elif kind == "unread":
            self._say(f'"{node.text}" (not readable)', node.span, "unknown")
        elif kind == "mixed":
            self._set_unknown_apart(node)
            self._say(say_word(node), node.span, "unknown")
        else:
            self._say(node.says, node.span, node.basis)

    def _take_word(self, node: Node) -> None:
        if node.entry is not None:
            told = self.define(node)
            self._say(told[0].text.lstrip(), node.span)
            self.pieces[-1] = self.pieces[-1]._replace(source=told[0].source)
            return
        marker = self._next()
        if marker is not None and marker.kind == "marker" and (marked := say_marked(node, marker.text)):
            self._say(marked, node.span, "inferred")
            self._attach("", marker.span)
            self.at += 1
            return
        said = say_literal_key(node) if is_compared(self.nodes, self.at - 1) else say_word(node)
        if node.basis == "unknown" and (value := self._find_value()) is not None:
            self.is_apart = False
            said = f'"{node.text}" (unknown; perhaps the unit of {value.says})'
            if self.is_plain and self.pairs:
                self.pairs.append(Piece(f" {said}", (node.span,), node.basis))
                self.is_apart = bool(self.pieces)
                return
        self._set_unknown_apart(node)
        if said == "not" and self._joins("/"):
            said = "no"
        self._say(said, node.span, node.basis)

    def _find_value(self) -> Node | None:
        """The number that an equals sign gives and that only a space parts from the word in hand: `=$500 ms`."""
        before = self._next(-3) if self.at > 2 else None
        is_parted = self.nodes[self.at - 2].kind == "space"
        return before if before is not None and before.kind == "value-number" and is_parted else None

    def _set_unknown_apart(self, node: Node) -> None:
        """`Iko` is "I, unknown “ko”": without the comma it would read as something that I do not know."""
        before = self._before()
        if node.basis == "unknown" or node.kind == "mixed":
            self.is_apart = self.is_apart or (before is not None and before.kind == "entity")

    def _take_term(self, node: Node) -> None:
        before = self._before()
        is_none = before is not None and before.text == "/" and len(self.pieces) > 0 and self.pieces[-1].text == " no"
        self._say(node.says.removeprefix("the ") if is_none else node.says, node.span)

    def _has_after(self, by: int) -> bool:
        """Whether something other than a space or a bracket's end stands there."""
        after = self._next(by)
        return after is not None and after.kind not in ("space", "close") and after.text not in (",", ";", "<", ">")

    def _take_marker(self, node: Node) -> None:
        word = self._before()
        if word is not None and word.kind == "word":
            self._attach(say_marker(word, node.text), node.span)
        else:
            self._attach(f" ({node.says})", node.span)

    def _take_number(self, node: Node) -> None:
        self._say(say_amount(node.says), node.span)
        other = self._next(1)
        if self._joins("/") and other is not None and other.kind == "number":
            self._attach(" of", self.nodes[self.at].span)
            self._attach(f" {say_amount(other.says)}", other.span)
            self.at += 2
        self._take_counted(is_one=node.says == "1")

    def _take_group(self, node: Node) -> None:
        nodes = [node]
        depth = 1 if node.kind == "open" else 0
        while depth and self.at < len(self.nodes):
            inner = self.nodes[self.at]
            depth += (inner.kind == "open") - (inner.kind == "close")
            nodes.append(inner)
            self.at += 1
        told = self.tell_group(nodes)
        if node.kind == "open" and not told[0].text.startswith(" ("):
            told = [told[0]._replace(text=f" ({told[0].text.lstrip()}"), *told[1:], Piece(")", (nodes[-1].span,))]
        self.count += self.is_apart
        self.is_apart = self.is_joined = False
        self.pieces.extend(told)

    # Key and value.

    def _take_pair(self, key: Node) -> bool:
        """Takes `key=value`; says whether it was an id, which belongs to the word before it."""
        is_negated = self.nodes[self.at].text == "-"
        equals = self.nodes[self.at + is_negated]
        self.at += 1 + is_negated
        value = self._next()
        is_value = value is not None and value.kind.startswith("value-")
        if key.text == "id" and key.entry is None and is_value and not is_negated and value is not None:
            return self._take_id(key, value)
        if key.entry is not None:
            self._say(self.define(key)[0].text.lstrip(), key.span)
        else:
            before = find_before(self.nodes, self.at - 2 - is_negated, "domain")
            self.is_apart = self.is_apart or (before is not None and before.kind == "entity")
            self._say(say_key(key), key.span, "unknown" if key.basis == "inferred" else key.basis)
        if value is not None and (is_value or value.kind in ("open", "block")):
            self._attach(" is not equal to" if is_negated else " =", equals.span)
        else:
            self._attach(" with “-=”" if is_negated else " with “=”", equals.span)
        if value is not None and is_value:
            told = self.define(value) if value.entry is not None else [Piece(f" {say_value(value)}", (value.span,))]
            self.pieces.extend(told)
            self.at += 1
            if value.kind == "value-number" and (self._joins("+") or self._joins("-")) and not self._has_after(1):
                sign = self.nodes[self.at]
                self._attach(f" ({say_degree(sign.text)})", sign.span)
                self.at += 1
        elif value is None or value.kind not in ("open", "block"):
            self._attach(" and nothing after it", equals.span)
        else:
            return True
        return False

    def _take_id(self, key: Node, value: Node) -> bool:
        """`ta id=alpha` is "task alpha": whether the id belongs to the word before it."""
        before = find_before(self.nodes, self.at - 2, "space")
        is_named = before is not None and (may_bear_id(before) or before.text in ("&", "|"))
        if is_named:
            self.is_apart, self.is_joined = False, True
        self._say(say_id(value) if is_named else f"id = {say_id(value)}", key.span)
        self.pieces[-1] = self.pieces[-1]._replace(spans=(key.span, value.span))
        self.at += 1
        return is_named
