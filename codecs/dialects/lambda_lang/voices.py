"""Clauses behind a mark of v0.3 in English: the passive, and what must, should or may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .._record import Span
from .nodes import Node
from .pieces import Define, Piece, Tell
from .protocol import MODALS
from .sentences import Sentence
from .things import Things
from .verbs import conjugate_be


class Clause(NamedTuple):
    """A clause that is told: the person of its subject, and whether it is negated."""

    pieces: list[Piece]
    person: str | None = None
    is_negated: bool = False


def tell_clause(
    nodes: Sequence[Node], mood: str, lead: tuple[Span, ...], tell: Tell, define: Define, follows: str | None = None
) -> Clause | None:
    """A clause as a sentence, behind its mark if it has one; None where it is of a shape that is not told.

    `follows` is the person of the clause before, whose subject one without its own shares.
    """
    first = nodes[0] if nodes else None
    if first is None or first.kind not in ("modality", "passive"):
        sentence = Sentence(nodes, mood, lead, tell, define, follows)
        told = sentence.tell()
        return None if told is None else Clause(told, sentence.person, sentence.is_negated)
    if mood == "request":
        return None
    if first.kind == "passive":
        told = Passive(nodes[1:], tell, define).tell(first, mood, lead)
        return None if told is None else Clause(told)
    told = Sentence(nodes[1:], "inform", (), tell, define).tell()
    if told is None:
        return None
    said = f" {MODALS[first.text][2 if mood == 'query' else 1]}"
    return Clause([Piece(said, (*lead, first.span), "inferred"), *told])


class Passive(Things):
    """Tells `la/cr/I` behind its mark: language is created by me."""

    def tell(self, mark: Node, mood: str, lead: tuple[Span, ...]) -> list[Piece] | None:
        """What it is done to, what is done, and by whom if that is said."""
        if not self._take_patient() or not self._is_sign("/"):
            return None
        patient, self.pieces = self.pieces, []
        slash = self._next()
        negation = self._next() if self._is_sign("-!") else None
        node = self._next() if self._peek() is not None else None
        verb = node.verb() if node is not None and node.kind == "word" and node.entry is None else None
        if node is None or verb is None or node.basis == "unknown":
            return None
        tense = (node.meaning.tense if node.meaning else None) or "now"
        be = Piece(f" {conjugate_be(self.person, tense)}", (*lead, mark.span), "inferred")
        done = f"{' not' if negation else ''} {verb.participle}"
        spans = (slash.span, *((negation.span,) if negation else ()), node.span)
        said = Piece(done, spans, "inferred" if node.basis == "inferred" else "exact")
        said_first = [be, *patient, said] if mood == "query" else [*patient, be, said]
        return None if not self._take_agent() else [*said_first, *self.pieces, *self.doubts]

    def _take_patient(self) -> bool:
        node = self._peek()
        if node is None:
            return False
        if node.kind in ("entity", "star", "quantity"):
            self.pieces.append(self._take_person())
            return True
        return self._take_noun()

    def _take_agent(self) -> bool:
        if self._is_sign("/") and self._peek(1) is not None:
            self._say(" by", self._next().span)
            if not self._take_object():
                return False
        return self.at == len(self.nodes)
