"""The signs of a body that is told word by word: arrows, dots, slashes, minus, and how high something is."""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Basis, Span
from .nodes import Node
from .pieces import Piece
from .wording import ARROWS, is_percentage, read_arrow, say_arrow, say_degree, say_person, say_plural, say_word

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
