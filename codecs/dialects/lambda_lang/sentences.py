"""A clause as a sentence, where the wire itself joins its words: somebody, what they do, and to what; and clauses
behind a mark of v0.3: the passive, and what must, should or may be.

The shapes told so are few: `Ik/co`, `U no k/tr`, `I*d/ta`, `pIf/er`, `cAk/co`, `.vf sg`, `Ig/U[da]`. Whatever has
another shape is told word by word, since a sentence would have to make up how its words belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .._record import Basis, Span
from .lexicon import Mode, Verb, conjugate, conjugate_be
from .nodes import Define, Node, Piece, Tell
from .protocol import MODALS
from .things import Complements, Things, as_objects

_BE = Verb(base="be", third="is", past="was", participle="been", gerund="being")
_USE = Verb(base="use", third="uses", past="used", participle="used", gerund="using")


class Sentence(Complements):
    """Tells one clause.

    Args:
        nodes: the nodes of the clause.
        mood: inform, request, query or offer.
        lead: where the type symbol stands, for the helping words that it alone accounts for.
        tell: tells what stands in brackets or in a block.
        define: tells a word that a sender defined.
        follows: the person of the clause before, whose subject one without its own shares.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        mood: str,
        lead: tuple[Span, ...],
        tell: Tell,
        define: Define,
        follows: str | None = None,
    ) -> None:
        super().__init__(nodes, mood, tell, define)
        self.lead = lead
        self.follows = follows
        self.is_negated = False
        self.tense = "now"
        self.tense_at: tuple[Span, ...] = ()
        self.can: tuple[Span, ...] = ()

    def tell(self) -> list[Piece] | None:
        """The sentence, each piece with a space before it; None where the clause is of another shape."""
        if not self._tell_clause() or self.at < len(self.nodes) or self.negation[0] or self.can or self.is_unmet:
            return None
        return self.pieces + self.doubts

    # Subject and predicate.

    def _tell_clause(self) -> bool:
        self._take_fronts()
        subject = self._take_subject()
        if subject is None:
            return False
        self._take_fronts()
        if self.mood == "query" and not subject:
            return False
        if not (self._tell_modal(subject) or self._tell_verb(subject)):
            return False
        while self.at < len(self.nodes):
            if not self._tell_more():
                return False
        return True

    def _take_fronts(self) -> None:
        """Tense, "can" and "not", which wait for their verb."""
        while (node := self._peek()) is not None:
            if node.uses == "t" and node.meaning is not None and node.entry is None:
                self.tense, self.tense_at = node.meaning.tense or "now", (*self.tense_at, node.span)
            elif node.uses == "m" and not self.can:
                self.can = (node.span,)
                if node.meaning is not None and node.meaning.tense:
                    self.tense = node.meaning.tense
            elif not self.negation[0] and (node.uses == "x" or self._is_minus(node)):
                self.negation = ("never" if node.says == "never" else "not", (node.span,))
            else:
                return
            self.at += 1

    def _is_minus(self, node: Node) -> bool:
        return node.kind == "joiner" and node.text in ("-", "!") and self._peek(1) is not None

    def _take_subject(self) -> list[Piece] | None:
        """Somebody, or several; empty where a command or what is done names nobody; None where it is a thing."""
        said: list[Piece] = []
        while True:
            node = self._peek()
            if node is None:
                return None
            if not self._is_person(node):
                break
            said.append(self._take_person())
            if not self._is_sign("&|") or not self._is_person(self._peek(1)):
                break
            self.person = "plural"
            said.append(Piece(f" {self.nodes[self.at].says}", (self.nodes[self.at].span,)))
            self.at += 1
        if not said and self.follows is not None and self.mood == "inform":
            self.person = self.follows
            return []
        if not said:
            return [] if self.mood == "request" or self._is_done() else None
        if self._is_sign("&|'"):
            return None
        return said

    def _is_person(self, node: Node | None) -> bool:
        if node is None:
            return False
        after = self._peek(1)
        is_some = node.text in ("%", "@") and after is not None and after.kind == "entity" and after.text in "HA"
        return is_some or node.kind in ("entity", "star", "quantity")

    def _is_done(self) -> bool:
        """`fd/X`: without a subject, what was done is told as done."""
        node = self._peek()
        if self._peek(1) is None:
            return False
        return self.mood == "inform" and node is not None and node.meaning is not None and node.meaning.aspect == "done"

    def _tell_modal(self, subject: list[Piece]) -> bool:
        """`Uc/la` is "can (use) language", `Ac/th` is "can think"."""
        if not self.can or not self._is_sign("/") or not subject or self.mood == "request":
            return False
        slash = self.nodes[self.at]
        self.at += 1
        after = self._peek()
        if after is not None and after.verb() is not None and after.basis == "exact" and after.entry is None:
            self.can = (*self.can, slash.span)
            return self._tell_verb(subject)
        front, rest = conjugate(_USE, self._mode(asks=self.mood == "query"))
        spans = (*self.can, *self.negation[1], slash.span)
        rest = f"{rest.removesuffix('use')}(use)"
        self._say_predicate(subject, front, rest, spans, "exact")
        self.can, self.negation, self.verb = (), ("", ()), _USE
        return self._take_object()

    def _mode(self, aspect: str | None = None, tense: str | None = None, *, asks: bool = False) -> Mode:
        return Mode(self.person, tense or self.tense, aspect, self.negation[0], bool(self.can), asks)

    def _tell_verb(self, subject: list[Piece]) -> bool:
        node = self._peek()
        if node is None or node.kind != "word" or "v" not in node.uses or node.entry is not None:
            return False
        verb = node.verb()
        if verb is None or self._is_sign("=", 1) or not self._is_verb_first(node, bool(subject)):
            return False
        self._next()
        meaning = node.meaning
        if meaning is not None and "be" in meaning.senses and self._takes_adjective():
            verb = _BE
        spans = (*self.pending, *self.can, *self.tense_at, *self.negation[1], node.span)
        self.pending = ()
        basis = node.basis
        self.is_negated = bool(self.negation[0])
        mode = self._mode(
            meaning.aspect if meaning else None, meaning.tense if meaning else None, asks=self.mood == "query"
        )
        if self.mood == "request":
            self._say_command(subject, verb, spans, basis)
        elif not subject and self.follows is None:
            self._say(f" {'not ' if mode.negation else ''}{verb.participle}", *self.lead, *spans, basis=basis)
        else:
            front, rest = conjugate(verb, mode)
            self._say_predicate(subject, front, rest, spans, basis)
        noun = node.noun() if node.uses[0] == "n" and basis == "exact" and not self.can else None
        if noun is not None and noun.one != verb.base:
            # The table has a noun whose verb is another word: that it is done, and not a thing, is our reading.
            self._say(f" (by the table the noun “{noun.one}”)", node.span)
        self.can, self.negation, self.verb = (), ("", ()), verb
        self._tell_doubt(node, "v")
        return self._tell_adjective() if verb is _BE else True

    def _is_verb_first(self, node: Node, has_subject: bool) -> bool:
        """Whether a word that can be a verb is one here: after a subject, or where it is usually one."""
        if node.uses[0] == "v":
            return True
        # A word that is a noun first is a verb only where the wire joins it to who does it.
        is_joined = self.at > 0 and self.nodes[self.at - 1].span[2] == node.span[1]
        return has_subject and is_joined and (bool(self.can) or "a" not in node.uses)

    def _say_predicate(
        self, subject: list[Piece], front: str, rest: str, spans: tuple[Span, ...], basis: Basis
    ) -> None:
        if self.mood == "query":
            self._say(f" {front}", *self.lead)
            self.pieces.extend(subject)
            if rest:
                self._say(f" {rest}", *spans, basis=basis)
            else:
                self.pieces[-1] = self.pieces[-1]._replace(spans=(*self.pieces[-1].spans, *spans))
            return
        self.pieces.extend(subject)
        self._say(f" {f'{front} {rest}'.strip()}", *spans, basis=basis)

    def _say_command(self, subject: list[Piece], verb: Verb, spans: tuple[Span, ...], basis: Basis) -> None:
        said = {"not": " not", "never": " never"}.get(self.negation[0], "")
        if self.person == "second" and len(subject) == 1:
            # The command is to "you": English leaves it out.
            spans, subject = (*subject[0].spans, *spans), []
        if subject:
            self._say(" let", *self.lead)
            self.pieces.extend(as_objects(subject))
        elif said == " not":
            said = " do not"
        self._say(f"{said} {verb.base}", *spans, basis=basis)

    def _takes_adjective(self) -> bool:
        after = self._peek(1) if self._is_sign("/") else None
        return after is not None and after.kind == "word" and after.basis == "exact" and after.adjective() is not None

    def _tell_adjective(self) -> bool:
        slash, node = self.nodes[self.at], self._peek(1)
        self.at += 1
        node = self._next()
        self._say(f" {node.adjective()}", slash.span, node.span)
        self._tell_doubt(node, "a")
        return True


def ask_about(nodes: Sequence[Node], lead: tuple[Span, ...]) -> list[Piece] | None:
    """`?X/co`: what stands for the unknown asks what there is about something; None for any other question."""
    if len(nodes) != 3 or nodes[0].text != "X" or nodes[1].text != "/":
        return None
    thing = (
        Sentence(nodes[2:], "query", (), lambda _: [], lambda _: []).tell_thing() if nodes[2].entry is None else None
    )
    if thing is None:
        return None
    return [Piece(" what", (*lead, nodes[0].span)), Piece(" about", (nodes[1].span,)), *thing]


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
