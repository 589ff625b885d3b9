"""A body told word by word: where the wire only sets words side by side, nothing is made up to join them; and its
signs: arrows, dots, slashes, minus, and how high something is.

What a space separates on the wire a comma separates here, but for a number, which is told with the word after it; what
the wire joins stands together, with the words for the signs between.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Basis, Span
from .nodes import Define, Node, Piece, Tell, find_before
from .wording import (
    ARROWS,
    ASIDES,
    is_compared,
    is_number_beside,
    is_percentage,
    may_bear_id,
    read_arrow,
    say_amount,
    say_arrow,
    say_degree,
    say_id,
    say_key,
    say_literal_key,
    say_marked,
    say_marker,
    say_person,
    say_plural,
    say_value,
    say_word,
)

_CLAUSES = {
    "=>": "; therefore:",
    "<>": "; however:",
    "..": "; furthermore:",
    ">>": "; consider:",
    "<<": "; in summary:",
    "<->": "; against:",
    ";": ";",
    ".": ";",
    ",": ",",
}
_SIGNS = {
    "&": " and",
    "|": " or",
    "'": " that",
    ":": " is",
    "=": " =",
    "~": " about",
    "#": " (about the exchange)",
    "##": " (a section)",
    "**": " (emphasised)",
    "@": " each",
    "%": " most",
    "$": " number of",
}
THINGS = frozenset(
    {"word", "entity", "name", "mixed", "quote", "paraphrase", "number", "term", "star", "quantity", "nothing"}
)


class Signs:
    """Tells the signs between words, and keeps what is told.

    Args:
        nodes: the nodes of the body, spaces included.
        mood: inform, request, query or offer.
    """

    def __init__(self, nodes: Sequence[Node], mood: str) -> None:
        self.nodes = nodes
        self.mood = mood
        self.pieces: list[Piece] = []
        self.at = 0
        self.pending: tuple[Span, ...] = ()
        # Whether the next words are set off by a comma.
        self.is_apart = False
        # Whether a sign joins the next words to those before.
        self.is_joined = False
        # How many phrases stand side by side with no sign between.
        self.count = 0

    # What lies around the node in hand, which `at` is already past.

    def _next(self, by: int = 0) -> Node | None:
        return self.nodes[self.at + by] if self.at + by < len(self.nodes) else None

    def _before(self) -> Node | None:
        return self.nodes[self.at - 2] if self.at > 1 else None

    def _joins(self, text: str) -> bool:
        after = self._next()
        return after is not None and after.kind == "joiner" and after.text == text

    def _say(self, text: str, span: Span, basis: Basis = "exact") -> None:
        """Words after what stands before them, with a comma between where a space stands on the wire."""
        self.count += self.is_apart or not self.is_joined
        mark = "," if self.is_apart and self.pieces and not self.pieces[-1].text.endswith((":", ";", ",")) else ""
        self.pieces.append(Piece(f"{mark} {text}", (*self.pending, span), basis))
        self.pending, self.is_apart, self.is_joined = (), False, False

    def _attach(self, text: str, span: Span) -> None:
        """Words that belong to what stands before them; without words, a place that those account for."""
        if text or not self.pieces:
            self.pieces.append(Piece(text, (span,)))
        else:
            last = self.pieces[-1]
            self.pieces[-1] = last._replace(spans=(*last.spans, span))

    # Signs.

    def _take_sign(self, node: Node) -> None:
        text, before, after = node.text, self._before(), self._next()
        self.is_joined = bool(self.pieces)
        if text in ("-", "!"):
            self._take_minus(node, after)
        elif text == "." and self._is_compound(before, after):
            self._attach(" joined by a dot to", node.span)
        elif text == ".." and after is not None and after.text == "." and self._next(1) is None:
            self._say('"..." (something left out)', node.span)
            self._attach("", after.span)
            self.at += 1
        elif text in ARROWS and not (text == "<" and self.mood == "offer"):
            self._take_arrow(node, after)
        elif text in _CLAUSES or text == "<":
            self._take_clause(node, after, _CLAUSES.get(text, " in return for:"))
        elif text == "/":
            is_minus = after is not None and after.text == "-"
            self._attach(_say_slash(before, self._next(1) if is_minus else after), node.span)
        elif text[0] in "^_" or (text[0] == "+" and not self._leads(after)):
            is_joined = before is not None and before.kind not in ("space", "joiner")
            plain = f"marked {say_degree(text)}:" if self._leads(after) else say_degree(text)
            self._say(f"({say_degree(text)})" if is_joined else plain, node.span)
        elif text[0] == "+":
            self.is_apart = bool(self.pieces)
            self._say("more", node.span)
            self.is_joined = True
        elif text[0] == "?":
            self._attach("" if after is None and self.mood == "query" else " (in question)", node.span)
        elif text in ("@", "%", "$") and self._leads(after):
            self._say(_SIGNS[text].lstrip(), node.span)
            self._take_counted(is_one=text == "@")
            self.is_joined = True
        else:
            self._attach(_SIGNS.get(text, f" {node.says}"), node.span)

    @staticmethod
    def _leads(after: Node | None) -> bool:
        return after is not None and after.kind not in ("space", "joiner", "close")

    @staticmethod
    def _is_compound(before: Node | None, after: Node | None) -> bool:
        return before is not None and after is not None and before.kind in THINGS and after.kind in (*THINGS, "domain")

    def _take_minus(self, node: Node, after: Node | None) -> None:
        if after is None or after.kind in ("space", "close", "joiner"):
            # Behind a word a minus never says "no": the table has it beside the plus.
            said = say_degree("-") if node.text == "-" else "negative"
            self._attach(f" ({said})" if self.pieces else f" {said}", node.span)
        elif after.kind == "number" and self.pieces:
            self._attach(" less", node.span)
        else:
            before = self._before()
            # `lo-` may be one mark: a "not" of its own is set apart from the word.
            self.is_apart = self.is_apart or (before is not None and before.text == "lo")
            self._say("not", node.span)
            self.is_joined = True

    def _take_arrow(self, node: Node, after: Node | None) -> None:
        said = say_arrow(self.nodes, self.at - 1)
        if read_arrow(self.nodes, self.at - 1)[2]:
            self._take_clause(node, after, f"; {said}:")
        else:
            self._attach(f" {said}", node.span)
            self.is_apart, self.is_joined = False, True

    def _take_clause(self, node: Node, after: Node | None, said: str) -> None:
        if after is not None and after.kind == "joiner" and after.text in (".", "!"):
            # A type symbol stands after the sign: what follows is an order or a statement of its own.
            said = f"{said.rstrip(':')}{' states' if after.text == '!' else ', an order'}:"
            self._attach(said if self.pieces else said.lstrip(";, ").join((" ", "")), node.span)
            self._attach("", after.span)
            self.at += 1
        else:
            self._attach(said if self.pieces else f" {said.lstrip(';, ')}", node.span)
        self.is_apart = self.is_joined = False

    def _take_counted(self, *, is_one: bool) -> None:
        """What is counted by the number just said: `3 tasks`."""
        place = self.at
        while place < len(self.nodes) and self.nodes[place].kind in ("space", "domain"):
            place += 1
        node = self.nodes[place] if place < len(self.nodes) else None
        if node is None or node.entry is not None or self._is_key(place + 1):
            return
        if node.kind == "entity" and node.text in "HA":
            said = say_person(node.text, is_all=True).removeprefix("all ")
            said = said.removesuffix("s") if is_one else said
        elif node.kind == "word" and node.basis == "exact" and node.uses[:1] == "n":
            said = say_word(node) if is_one else say_plural(node)
        else:
            return
        spans = [held.span for held in self.nodes[self.at : place] if held.kind == "domain"]
        self.pieces.append(Piece(f" {said}", (*spans, node.span)))
        self.at = place + 1

    def _is_key(self, at: int) -> bool:
        """Whether `=` or `-=` stands there, so that what is before it is a key."""
        if at < len(self.nodes) and self.nodes[at].kind == "joiner" and self.nodes[at].text == "-":
            at += 1
        return at < len(self.nodes) and self.nodes[at].kind == "joiner" and self.nodes[at].text == "="


def _say_slash(before: Node | None, after: Node | None) -> str:
    """What `/` is between two words: "of" between things, nothing or its own word after a verb, else "about"."""
    if is_percentage(after):
        return ","
    if before is None or before.is_action:
        return " about"
    verb = before.verb() if before.uses[:1] == "v" else None
    if verb is not None:
        return f" {verb.about}" if verb.about else ""
    if before.uses == "x":
        return ""
    if before.says == "eligible":
        return " for"
    is_of = before.kind == "word" and before.uses[:1] == "n" and after is not None and after.uses[:1] in ("n", "q")
    if after is not None and "a" in after.uses and after.kind == "word":
        is_of = False
    return " of" if is_of else " about"


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
