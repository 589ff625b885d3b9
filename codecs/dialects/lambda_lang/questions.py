"""A question in English: its helping word goes before its subject."""

from __future__ import annotations

from .clauses import Clause
from .units import Piece, Unit
from .verbs import conjugate, conjugate_be

# What a predicate may be made of.
_PREDICATES = frozenset({"verb", "adj", "kv", "num", "is", "modal"})


class Question(Clause):
    """Tells one clause that asks."""

    def tell(self) -> list[Piece]:
        """The question, each piece with a space before it."""
        return self.pieces if self._tell_question() else super().tell()

    def _tell_question(self) -> bool:
        """A question whose helping word goes before its subject; False where none is needed."""
        place = self._find_subject()
        if place is None:
            return False
        subject = self.units[place]
        if self._ask_about_unknown(place) or self._ask_how_many(place):
            return True
        rest = self.units[place + 1 :]
        first = self._first(_PREDICATES, place + 1)
        conj = next((unit for unit in rest if unit.kind in _PREDICATES), None)
        if first is None and conj is not None and rest and rest[0].kind in ("conj", "slash"):
            first = conj if conj.kind in ("verb", "adj") else None
        if first is None:
            self._say(f" what {conjugate_be(subject.person)}", self.lead)
            while self.units:
                self._tell_unit(self.units.pop(0))
            return True
        for unit in self.units[:place]:
            self._prepare(unit)
        front, held = self._front_of(first, subject)
        self._say(f" {front}", self.lead)
        self.is_asked = True
        self.units = self.units[place:]
        while self.units:
            unit = self.units.pop(0)
            if unit is first:
                self._say_rest(unit, held)
                continue
            self._tell_unit(unit)
        self._close()
        return True

    def _ask_about_unknown(self, place: int) -> bool:
        subject = self.units[place]
        if not (subject.pieces and subject.pieces[0].text == " X" and place == 0):
            return False
        if len(self.units) > 1 and self.units[1].kind != "slash":
            return False
        self._say(" what", (*self.lead, *subject.pieces[0].spans))
        self.previous = self.units.pop(0)
        self.subject = self.previous
        while self.units:
            self._tell_unit(self.units.pop(0))
        return True

    def _ask_how_many(self, place: int) -> bool:
        subject = self.units[place]
        if not (place == 0 and subject.pieces and subject.pieces[0].text == " the number of"):
            return False
        self._say(" how many", (*self.lead, *subject.pieces[0].spans))
        self.pieces.extend(subject.pieces[1:])
        self.units.pop(0)
        self.subject, self.person, self.previous = subject, "plural", subject
        if not self.units:
            self._say(" are there", ())
        while self.units:
            self._tell_unit(self.units.pop(0))
        return True

    def _front_of(self, unit: Unit, subject: Unit) -> tuple[str, str]:
        """(the helping word of a question, what stands in its place after the subject)."""
        for other in self.units:
            if other is unit:
                break
            self._prepare(other)
        self.person = subject.person
        if unit.kind == "modal":
            self._take_tense(unit)
            follows = self.units[self.units.index(unit) + 1 :]
            verb = next((other for other in follows if other.kind == "verb"), None)
            if verb is None or verb is not follows[0]:
                front = {"past": "could", "future": "will"}.get(self.tense, "can")
                return front + (
                    " not" if self.negation[0] else ""
                ), " be able to (use)" if front == "will" else " (use)"
            self.can = unit.pieces[0].spans
            unit = verb
        if unit.kind == "verb" and unit.node is not None:
            verb_of = unit.node.verb()
            if verb_of is not None:
                if self._is_passive(unit, self.units.index(unit)):
                    return conjugate_be(self.person, self.tense), f" {verb_of.participle}"
                front, rest = conjugate(verb_of, self._mode(unit, asks=True))
                return front, f" {rest}" if rest else ""
        if unit.kind == "kv" and not self._is_compound(unit, subject):
            return ("does" if subject.person == "third" else "do"), " have"
        return conjugate_be(subject.person, self.tense), ""

    def _say_rest(self, unit: Unit, held: str) -> None:
        if unit.kind == "modal":
            is_used = held.endswith("(use)")
            self._say(held if is_used else "", unit.pieces[0].spans)
            if not is_used:
                verb = self.units.pop(0)
                self._say(held, verb.pieces[0].spans, verb)
                unit = verb
                self.verb = verb.node.verb() if verb.node else None
        elif unit.kind == "verb":
            self._say(held, (*unit.pieces[0].spans, *self.negation[1]), unit)
            self.verb = unit.node.verb() if unit.node else None
        elif unit.kind == "kv":
            self._say(held, ())
            self.pieces.extend((*unit.pieces, *unit.value))
        else:
            self.pieces.extend(unit.pieces)
        self.negation, self.can = ("", ()), ()
        self.predicates += 1
        self.previous = unit

    # One unit.
