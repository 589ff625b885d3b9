"""A body in English: a sentence where every clause of it is one, or else its words one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from .._record import Span
from .blocks import MAX_DEPTH, Explain, parse_block, say_block
from .nodes import Define, Node, Piece
from .sentences import ask_about, tell_clause
from .wording import ARROWS, is_if, read_arrow, say_arrow
from .wordlists import WordList

# How a body is told: as a sentence, word by word, with what keys give before the words, as the one word or thing that
# it is, or not at all.
Shape = Literal["sentence", "words", "paired", "word", "quote", "thing", "nothing"]

# What is said between two clauses.
_BETWEEN = {
    "=>": ", therefore",
    "<>": ", however,",
    "..": ", furthermore,",
    ">>": ", consider",
    "<<": ", in summary,",
    "<->": ", against",
    ";": ",",
    ",": ",",
    "!": "; and states:",
    "&": " and",
    "|": " or",
}
_STOPS = frozenset({".", ";", ","})
# A clause of more tokens than this is no sentence.
MAX_SENTENCE_LENGTH = 60
_MAX_SEQUENCE = 10


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
        stops: tuple[Span, ...] = ()
        while len(held) > 1 and held[-1].kind == "joiner" and held[-1].text in _STOPS:
            # Nothing is joined by a sign that stands last: it ends the statement, as it does in English.
            stops = (held.pop().span, *stops)
        said = self._tell_held([node for node in nodes if node.span[1] < held[-1].span[2]] if stops else nodes, held)
        if stops and said.pieces:
            said.pieces[-1] = said.pieces[-1]._replace(spans=(*said.pieces[-1].spans, *stops))
        return said

    def _tell_held(self, nodes: Sequence[Node], held: list[Node]) -> Said:
        """A body that does not end with a sign; `held` are its nodes without the spaces."""
        sentence = self._tell_sentence(held)
        if sentence is not None:
            return Said(sentence, "sentence")
        if (told := self._tell_condition(nodes) or self._tell_sequence(nodes)) is not None:
            return told
        words = WordList(nodes, self.mood, self._tell_group, self.define)
        pieces = words.tell()
        if len(held) == 1 and held[0].kind == "quote":
            return Said(pieces, "quote")
        if len(held) - (held[0].kind == "domain") == 1:
            return Said(pieces, "word" if held[-1].kind == "word" and held[-1].entry is None else "thing")
        if words.count > 1:
            return Said(pieces, "paired" if words.pairs else "words")
        return Said(pieces, "thing")

    def _tell_condition(self, nodes: Sequence[Node]) -> Said | None:
        """`.sp nd if nd er`: a sentence and the condition it stands with; None for any other body."""
        depth = 0
        for place, node in enumerate(nodes if len(nodes) < 2 * MAX_SENTENCE_LENGTH else ()):
            depth += (node.kind == "open") - (node.kind == "close")
            if depth or not is_if(node) or not place or nodes[place - 1].kind != "space":
                continue
            main = self._tell_sentence([node for node in nodes[:place] if node.kind != "space"])
            behind = nodes[place + 1 :]
            if main is None or not any(node.kind != "space" for node in behind):
                return None
            mood, self.mood = self.mood, "inform"
            condition = self.tell(behind)
            self.mood = mood
            lead = " if" if condition.shape == "sentence" else ", on the condition:"
            return Said([*main, Piece(lead, (node.span,)), *condition.pieces], "sentence")
        return None

    def _tell_sequence(self, nodes: Sequence[Node]) -> Said | None:
        """`!Ik/co; -sp nd`: a sentence and then what is none, which alone is told word by word; None for another."""
        ends = [place for place, node in enumerate(nodes) if node.kind == "joiner" and node.text == ";"]
        if not 1 <= len(ends) <= _MAX_SEQUENCE or len(nodes) > 2 * MAX_SENTENCE_LENGTH:
            return None
        before, behind = nodes[: ends[0]], nodes[ends[0] + 1 :]
        is_inside = any(node.kind in ("open", "close") for node in before)
        main = None if is_inside else self._tell_sentence([node for node in before if node.kind != "space"])
        if main is None or not any(node.kind != "space" for node in behind):
            return None
        lead, self.lead = self.lead, ()
        rest = self.tell(behind)
        self.lead = lead
        joint = "; word by word:" if rest.shape == "words" else ";"
        return Said([*main, Piece(joint, (nodes[ends[0]].span,)), *rest.pieces], "paired")

    def _tell_sentence(self, nodes: list[Node]) -> list[Piece] | None:
        """All clauses as sentences; None where one of them is none."""
        if self.mood == "query" and (asked := ask_about(nodes, self.lead)) is not None:
            return asked
        pieces: list[Piece] = []
        person: str | None = None
        is_negated = False
        for joiner, between, clause in _split(nodes, self.mood):
            if len(clause) > MAX_SENTENCE_LENGTH:
                return None
            told = self._tell_clause(joiner, between, clause, person)
            if told is None:
                return None
            said, person, has_negation = told
            if is_negated and not has_negation and between in (" and", " or"):
                # What was negated before ends here: the sign negates its own clause alone.
                said[0] = said[0]._replace(text=f";{between}")
            is_negated = has_negation
            pieces += said
        return pieces

    def _tell_clause(
        self, joiner: Node | None, between: str, clause: list[Node], person: str | None
    ) -> tuple[list[Piece], str | None, bool] | None:
        """(what is said, the person of its subject, whether it is negated); None where it is no sentence."""
        mood, lead = self.mood, self.lead
        said: list[Piece] = []
        if joiner is None or joiner.text not in "&|":
            person = None
        if joiner is not None:
            lead = ()
            if joiner.text not in (";", ",", "&", "|") and not (mood == "request" and joiner.text in (">", "=>")):
                mood = "inform"
            said.append(Piece(between, (joiner.span,)))
        told = tell_clause(clause, mood, lead, self._tell_group, self.define, person)
        return None if told is None else (said + told.pieces, told.person, told.is_negated)

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
        if self.depth >= MAX_DEPTH:
            start, end = opener.span[1], nodes[-1].span[2]
            unread = f' (nested deeper than {MAX_DEPTH}, not read: "{self.text[start:end]}")'
            return [Piece(unread, ((0, start, end),), "unknown")]
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


def _split(nodes: Sequence[Node], mood: str) -> list[tuple[Node | None, str, list[Node]]]:
    """The clauses of a body, with the joiner before each and what it says; what stands in brackets is not split."""
    clauses: list[tuple[Node | None, str, list[Node]]] = [(None, "", [])]
    depth = 0
    has_verb = False
    before: Node | None = None
    for place, node in enumerate(nodes):
        depth += (node.kind == "open") - (node.kind == "close")
        clause = clauses[-1][2]
        if node.text == "!" and before is not None and before.text == "." and clause[-1:] == [before]:
            # A type symbol behind a dot: what follows is a statement of its own.
            clause.pop()
            clauses.append((node, _BETWEEN["!"], []))
        elif depth or node.kind != "joiner" or not (between := _find_between(nodes, place, mood, has_verb)):
            clause.append(node)
        else:
            clauses.append((node, between, []))
        has_verb = bool(clauses[-1][2]) and (has_verb or "v" in node.uses)
        before = node
    return clauses


def _find_between(nodes: Sequence[Node], place: int, mood: str, has_verb: bool) -> str:
    """What a sign says between two clauses; empty where it joins none. Before `&` a verb must have been."""
    sign = nodes[place].text
    if sign == "<" and mood == "offer":
        return " in return for:"
    if sign in ARROWS:
        is_clause = read_arrow(nodes, place)[2]
        return f"{', ' if sign == '>' else ' '}{say_arrow(nodes, place)}" if is_clause else ""
    if sign in ("&", "|") and not (has_verb and _begins_clause(nodes, place + 1)):
        return ""
    return "" if sign == "!" else _BETWEEN.get(sign, "")


def _begins_clause(nodes: Sequence[Node], place: int) -> bool:
    """Whether somebody who does something stands there, or a verb that is negated or has an object."""
    held = [node for node in nodes[place : place + 6] if node.kind != "domain"]
    has_front = has_person = False
    for at, node in enumerate(held):
        if node.uses in ("t", "m", "x") or node.text in ("-", "!"):
            has_front = True
        elif node.kind in ("entity", "star", "quantity") and not (has_person and has_front):
            has_person = True
        else:
            after = held[at + 1].text if at + 1 < len(held) else ""
            is_verb = node.kind == "word" and node.entry is None and after != "="
            if has_person:
                return is_verb and "v" in node.uses
            return is_verb and node.uses[:1] == "v" and (has_front or after == "/")
    return False


Telling = Callable[[Sequence[Node]], Said]
