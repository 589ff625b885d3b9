"""A body in English: a sentence where every clause of it is one, or else its words one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from .._record import Span
from .blocks import DEEPEST, parse_block
from .nodes import Node
from .pieces import Define, Piece
from .sentences import Sentence, ask_about
from .values import Explain, say_block
from .voices import tell_clause
from .wording import say_arrow
from .wordlists import WordList

# How a body is told: as a sentence, word by word, as the one word or thing that it is, or not at all.
Shape = Literal["sentence", "words", "word", "quote", "thing", "nothing"]

# What is said between two clauses.
_BETWEEN = {
    ">": ", therefore",
    "=>": ", therefore",
    "<": " because",
    "<>": ", however,",
    "..": ", furthermore,",
    ">>": ", consider",
    "<<": ", in summary,",
    "<->": ", against",
    ";": ",",
    ",": ",",
    "!": "; and states:",
}
# A clause of more tokens than this is no sentence.
LONGEST_SENTENCE = 60


class Said(NamedTuple):
    """What is said, each piece with its own space before it, and in which shape."""

    pieces: list[Piece]
    shape: Shape


class Body:
    """Tells one body.

    Args:
        text: the wire, for what stands in blocks.
        mood: inform, request, query or offer.
        lead: where the type symbol stands.
        define: tells a word that a sender defined.
        explain: says in brackets what the parts of a value in a block mean.
    """

    def __init__(self, text: str, mood: str, lead: tuple[Span, ...], define: Define, explain: Explain) -> None:
        self.text = text
        self.mood = mood
        self.lead = lead
        self.define = define
        self.explain = explain
        self.depth = 0
        # What stands in brackets, by the place where they open: it may be told in either shape.
        self.groups: dict[int, list[Piece]] = {}

    def tell(self, nodes: Sequence[Node]) -> Said:
        """The whole body."""
        held = [node for node in nodes if node.kind != "space"]
        if not held:
            return Said([], "nothing")
        sentence = self._tell_sentence(held)
        if sentence is not None:
            return Said(sentence, "sentence")
        words = WordList(nodes, self.mood, self._tell_group, self.define)
        pieces = words.tell()
        if len(held) == 1 and held[0].kind == "quote":
            return Said(pieces, "quote")
        if len(held) - (held[0].kind == "domain") == 1:
            return Said(pieces, "word" if held[-1].kind == "word" and held[-1].entry is None else "thing")
        return Said(pieces, "words" if words.count > 1 else "thing")

    def _tell_sentence(self, nodes: list[Node]) -> list[Piece] | None:
        """All clauses as sentences; None where one of them is none."""
        if self.mood == "query" and (asked := ask_about(nodes, self.lead)) is not None:
            return asked
        pieces: list[Piece] = []
        for joiner, clause in _split(nodes):
            if len(clause) > LONGEST_SENTENCE:
                return None
            said = self._tell_clause(joiner, clause)
            if said is None:
                return None
            pieces += said
        return pieces

    def _tell_clause(self, joiner: Node | None, clause: list[Node]) -> list[Piece] | None:
        mood, lead = self.mood, self.lead
        said: list[Piece] = []
        if joiner is not None:
            lead = ()
            if joiner.text not in (";", ",") and not (mood == "request" and joiner.text in (">", "=>")):
                mood = "inform"
            returns = self.mood == "offer" and joiner.text == "<"
            others = "" if returns else say_arrow([joiner, *clause], 0)
            said.append(Piece(" in return for:" if returns else f"{_BETWEEN[joiner.text]}{others}", (joiner.span,)))
        told = tell_clause(clause, mood, lead, self._tell_group, self.define)
        if told is None and joiner is not None and joiner.text == "<" and len(clause) < 3:
            told = Sentence(clause, mood, (), self._tell_group, self.define).tell_thing()
            said = [Piece(f" because of{say_arrow([joiner, *clause], 0)}", (joiner.span,))]
        return None if told is None else said + told

    def _tell_group(self, nodes: Sequence[Node]) -> list[Piece]:
        """What stands in brackets or in a block."""
        start = nodes[0].span[1]
        if start not in self.groups:
            self.groups[start] = self._tell_inside(nodes)
        return self.groups[start]

    def _tell_inside(self, nodes: Sequence[Node]) -> list[Piece]:
        opener, inner = nodes[0], list(nodes[1:])
        if opener.kind == "block":
            _, start, end = opener.span
            return [Piece(" with", ()), *say_block(parse_block(self.text, start, end), self.explain)]
        closer = inner.pop() if inner and inner[-1].kind == "close" else None
        if self.depth >= DEEPEST:
            start, end = opener.span[1], nodes[-1].span[2]
            return [Piece(f' "{self.text[start:end]}"', ((0, start, end),), "unknown")]
        self.depth += 1
        mood, self.mood = self.mood, "inform"
        said = self.tell(inner).pieces
        self.mood = mood
        self.depth -= 1
        if opener.text == "(":
            if said:
                said[0] = said[0]._replace(text=f" ({said[0].text.lstrip()}")
                return [*said, Piece(")", (closer.span,) if closer else ())]
            return [Piece(" ()", (opener.span,))]
        return said or [Piece(" (an empty list)", (opener.span,))]


def _split(nodes: Sequence[Node]) -> list[tuple[Node | None, list[Node]]]:
    """The clauses of a body with the joiner before each; what stands in brackets is not split."""
    clauses: list[tuple[Node | None, list[Node]]] = [(None, [])]
    depth = 0
    before: Node | None = None
    for node in nodes:
        depth += (node.kind == "open") - (node.kind == "close")
        if node.text == "!" and before is not None and before.text == "." and clauses[-1][1][-1:] == [before]:
            # A type symbol behind a dot: what follows is a statement of its own.
            clauses[-1][1].pop()
            clauses.append((node, []))
        elif depth == 0 and node.kind == "joiner" and node.text != "!" and node.text in _BETWEEN:
            clauses.append((node, []))
        else:
            clauses[-1][1].append(node)
        before = node
    return clauses


Telling = Callable[[Sequence[Node]], Said]
