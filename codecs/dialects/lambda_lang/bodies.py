"""A body in English: its clauses, and the words that join them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._record import Span
from .blocks import DEEPEST, parse_block
from .clauses import Clause
from .nodes import Node
from .questions import Question
from .units import Grouping, Piece
from .values import Explain, say_block

# joiner: (what is said between two clauses, before one without a verb)
_BETWEEN = {
    ">": (", therefore", ", therefore"),
    "=>": (", therefore", ", therefore"),
    "<": (" because", " because of"),
    "<>": (", however,", ", however,"),
    "..": (", furthermore,", ", furthermore,"),
    ">>": (", consider", ", consider"),
    "<<": (", in summary,", ", in summary,"),
    "<->": (", against", ", against"),
    ";": (",", ","),
    ".": (",", ","),
    ",": (",", ","),
}


# A clause of more tokens than this is told in stretches, so that time grows with the text alone.
LONGEST_CLAUSE = 400


class Body:
    """Tells one body.

    Args:
        text: the wire, for what stands in blocks.
        mood: inform, request, query or offer.
        lead: where the type symbol stands.
        define: tells a word that a sender defined.
        explain: says in brackets what the parts of a value in a block mean.
    """

    def __init__(
        self,
        text: str,
        mood: str,
        lead: tuple[Span, ...],
        define: Callable[[Node], list[Piece]],
        explain: Explain,
    ) -> None:
        self.text = text
        self.mood = mood
        self.lead = lead
        self.define = define
        self.explain = explain
        self.depth = 0

    def tell(self, nodes: Sequence[Node]) -> list[Piece]:
        """The whole body; each piece carries its own space before it."""
        pieces: list[Piece] = []
        for joiners, clause in _split(nodes):
            joiner = joiners[0] if joiners else None
            said = self._tell_clause(clause, joiner, is_first=not pieces, others=joiners[1:])
            pieces.extend(said)
        return pieces

    def _tell_clause(
        self, nodes: list[Node], joiner: Node | None, *, is_first: bool, others: list[Node]
    ) -> list[Piece]:
        mood = "request" if others and others[-1].text == "." else self._clause_mood(joiner)
        units = Grouping(nodes, mood, self._tell_group, self.define).group()
        kinds = {unit.kind for unit in units}
        has_predicate = bool(kinds & {"verb", "adj", "kv", "is", "modal"})
        pieces: list[Piece] = [Piece(",", ())] if joiner is None and not is_first else []
        if joiner is not None:
            said = self._say_joiner(joiner, units[0].kind if units else "", has_predicate, is_first)
            pieces.append(Piece(said, (joiner.span,)))
        pieces.extend(Piece(self._say_joiner(other, "", has_predicate, True), (other.span,)) for other in others)
        if joiner is not None and joiner.text == "<":
            has_subject = bool(units) and units[0].kind in ("np", "tense", "modal", "neg") and "np" in kinds
            if self.mood == "offer" or not has_subject:
                mood = "gerund"
        kind = Question if mood == "query" else Clause
        pieces.extend(kind(units, mood, self.lead if is_first else ()).tell())
        return pieces

    def _clause_mood(self, joiner: Node | None) -> str:
        if self.mood == "offer":
            return "inform"
        if joiner is None or joiner.text in (";", ".", ","):
            return self.mood
        if self.mood == "request" and joiner.text in (">", "=>", "..", "<>"):
            return "request"
        return "inform"

    def _say_joiner(self, joiner: Node, first: str, has_predicate: bool, is_first: bool) -> str:
        if joiner.text == "<" and self.mood == "offer":
            return " in return for"
        full, bare = _BETWEEN[joiner.text]
        is_bare = joiner.text == "<" and (not has_predicate or first not in ("np", "tense", "modal", "neg"))
        said = bare if is_bare else full
        return said.lstrip(",") if is_first else said

    def _tell_group(self, nodes: Sequence[Node]) -> list[Piece]:
        """What stands in brackets or in a block."""
        if len(nodes) == 1 and nodes[0].kind == "block":
            _, start, end = nodes[0].span
            return [Piece(" with", ()), *say_block(parse_block(self.text, start, end), self.explain)]
        opener, inner = nodes[0], list(nodes[1:])
        closer = inner.pop() if inner and inner[-1].kind == "close" else None
        if self.depth >= DEEPEST:
            spans = tuple(node.span for node in nodes)
            start, end = spans[0][1], spans[-1][2]
            return [Piece(f' "{self.text[start:end]}"', ((0, start, end),), "unknown")]
        self.depth += 1
        mood, self.mood = self.mood, "inform"
        said = self.tell(inner)
        self.mood = mood
        self.depth -= 1
        if opener.text == "(":
            if said:
                said[0] = said[0]._replace(text=f" ({said[0].text.lstrip()}")
                return [*said, Piece(")", (closer.span,) if closer else ())]
            return [Piece(" ()", (opener.span,))]
        return said or [Piece(" (an empty list)", (opener.span,))]


def _split(nodes: Sequence[Node]) -> list[tuple[list[Node], list[Node]]]:
    """The clauses of a body with the joiners before each; what stands in brackets is not split."""
    clauses: list[tuple[list[Node], list[Node]]] = [([], [])]
    depth = 0
    for node in nodes:
        if node.kind == "open":
            depth += 1
        elif node.kind == "close":
            depth -= 1
        if depth == 0 and len(clauses[-1][1]) >= LONGEST_CLAUSE:
            clauses.append(([], []))
        if depth == 0 and node.kind == "joiner" and node.text in _BETWEEN:
            if all(held.kind == "space" for held in clauses[-1][1]):
                clauses[-1][0].append(node)
            else:
                clauses.append(([node], []))
        else:
            clauses[-1][1].append(node)
    return [clause for clause in clauses if clause[0] or clause[1]]
