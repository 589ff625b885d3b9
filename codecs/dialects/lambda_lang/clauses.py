"""A clause in English: its units put into a sentence, in the order in which the wire has them."""

from __future__ import annotations

from collections.abc import Sequence

from .._record import Span
from .lexicon import Verb
from .units import Piece, Unit
from .verbs import TAKES_TO, Mode, conjugate, conjugate_be


class Clause:
    """Tells one clause.

    Args:
        units: the parts of the clause.
        mood: inform, request or query; `gerund` for what follows "in return for" or "because of".
        lead: where the type symbol stands, for the helping words that it alone accounts for.
    """

    def __init__(self, units: Sequence[Unit], mood: str, lead: tuple[Span, ...] = ()) -> None:
        self.units = list(units)
        self.mood = mood
        self.lead = lead
        self.pieces: list[Piece] = []
        self.person = "third"
        self.tense = "now"
        self.can: tuple[Span, ...] = ()
        self.negation: tuple[str, tuple[Span, ...]] = ("", ())
        self.more: tuple[Span, ...] = ()
        self.is_passive = False
        self.is_apposed = False
        # Whether a question's helping word stands before the subject already.
        self.is_asked = False
        self.subject: Unit | None = None
        self.predicates = 0
        self.previous: Unit | None = None
        self.verb: Verb | None = None

    def tell(self) -> list[Piece]:
        """The clause, each piece with a space before it."""
        if self.mood == "request" and self.lead:
            self._open_request()
        while self.units:
            self._tell_unit(self.units.pop(0))
        self._close()
        return self.pieces

    # Opening.

    def _find_subject(self) -> int | None:
        """The place of the subject: the first noun phrase, unless a verb stands before it."""
        for index, unit in enumerate(self.units):
            if unit.kind == "np":
                return index
            if unit.kind not in ("tense", "modal", "neg", "adv", "join"):
                return None
        return None

    def _first(self, kinds: frozenset[str], after: int) -> Unit | None:
        for unit in self.units[after:]:
            if unit.kind in kinds:
                return unit
            if unit.kind in ("slash", "conj", "rel"):
                return None
        return None

    def _open_request(self) -> None:
        place = self._find_subject()
        if place is None:
            return
        subject = self.units[place]
        follows = [unit for unit in self.units[place + 1 :] if unit.kind not in ("tense", "neg", "adv", "modal")]
        verb = follows[0] if follows and follows[0].kind == "verb" else None
        if subject.person == "second" and verb is not None:
            # The command is to "you": English leaves it out.
            del self.units[place]
            self.lead = (*self.lead, *subject.pieces[0].spans)
        elif verb is not None:
            self._say(" have", self.lead)
        elif place == 0:
            self._say(" see to", self.lead)
            self.previous = self.units.pop(0)
            self.pieces.extend(self.previous.pieces)
            self.predicates = 1

    def _tell_unit(self, unit: Unit) -> None:
        if unit.kind in ("tense", "modal", "neg", "more"):
            self._hold(unit)
            return
        if self.is_apposed and unit.kind in ("verb", "adj", "kv", "is"):
            # A name set beside the subject is closed with a comma before what is said of both.
            self._say(",", ())
            self.is_apposed = False
        tell = getattr(self, f"_tell_{unit.kind}", None)
        if tell is None:
            self.pieces.extend(unit.pieces)
        else:
            tell(unit)
        self.previous = unit
        if unit.kind == "join":
            self.subject, self.predicates = None, 0

    def _prepare(self, unit: Unit) -> None:
        if unit.kind == "tense" and unit.node is not None and unit.node.meaning is not None:
            self.tense = unit.node.meaning.tense or "now"
        elif unit.kind == "neg" and unit.node is not None:
            self.negation = ("never" if unit.node.says == "never" else "not", unit.pieces[0].spans)
        elif unit.kind == "modal":
            self.can = unit.pieces[0].spans
            self._take_tense(unit)

    def _take_tense(self, unit: Unit) -> None:
        """`pc` is "could": a modal may carry the tense of what follows it."""
        if unit.node is not None and unit.node.meaning is not None and unit.node.meaning.tense:
            self.tense = unit.node.meaning.tense

    def _hold(self, unit: Unit) -> None:
        """A tense, "can" or "not" waits for its verb; where none follows it is said by itself."""
        after = next((other for other in self.units if other.kind not in ("tense", "neg", "np", "modal")), None)
        has_verb = after is not None and after.kind == "verb" and self.predicates == 0
        spans = unit.pieces[0].spans
        if unit.kind == "tense":
            tense = unit.node.meaning.tense if unit.node is not None and unit.node.meaning is not None else None
            if has_verb and tense != "now":
                self.tense = tense or "now"
                self.lead = (*self.lead, *spans)
            else:
                said = {"past": " in the past", "future": " in the future"}.get(tense or "", " now")
                self._say(f"{said}," if not self.pieces and self.units else said, spans)
        elif unit.kind == "modal":
            self._take_tense(unit)
            if has_verb:
                self.can = spans
            else:
                front = conjugate_can(self.tense)
                negated = "cannot" if self.negation[0] and front == "can" else front
                self._say(f" {negated} (use)", (*spans, *self.negation[1]))
                self.negation = ("", ())
                self.predicates += 1
                self.previous = unit
        elif unit.kind == "more":
            self.more = spans
        else:
            self._prepare(unit)

    def _tell_np(self, unit: Unit) -> None:
        before = self.previous.kind if self.previous else ""
        lead = "," if before in ("np", "adj", "kv", "num", "adv", "text", "list") and self.pieces else ""
        if (before == "adj" and self.subject is None) or (before == "text" and self.pieces[-1].text.endswith(" to")):
            lead = ""
        if self.more:
            self._say(f"{lead} more", self.more)
            unit = unit._replace(pieces=(_without_article(unit.pieces[0]), *unit.pieces[1:]))
            self.more, lead = (), ""
        is_new = before in ("adj", "kv", "num") and self.mood == "inform" and self.subject is not None
        if is_new and self.units and self.units[0].kind in ("adj", "kv", "is", "verb"):
            # A new thing is spoken of: the clause begins anew with it as its subject.
            self.subject, self.predicates, self.verb = None, 0, None
        self.is_apposed = lead == "," and before == "np" and self.predicates == 0 and self.subject is not None
        self._flush_negation(unit, lead)
        if is_new and self.subject is None:
            self.subject, self.person, self.tense = unit, unit.person, "now"
        if self.subject is None and self.predicates == 0 and before in ("", "conj", "adv", "tense", "join"):
            self.subject = unit
            self.person = unit.person
        elif before == "conj" and self.predicates == 0:
            self.person = "plural"

    def _flush_negation(self, unit: Unit, lead: str) -> None:
        pieces = list(unit.pieces)
        word, spans = self.negation
        if word and (self.predicates or not any(other.kind in ("verb", "adj", "kv") for other in self.units)):
            said = " less" if self.verb is not None else (" never" if word == "never" else " no")
            pieces[0] = _without_article(pieces[0])
            self._say(f"{lead}{said}", spans, inferred=self.verb is not None)
            self.negation = ("", ())
            lead = ""
        if lead and pieces:
            pieces[0] = pieces[0]._replace(text=f"{lead}{pieces[0].text}")
        self.pieces.extend(pieces)

    def _mode(self, unit: Unit, *, asks: bool = False) -> Mode:
        meaning = unit.node.meaning if unit.node is not None else None
        tense = (meaning.tense if meaning else None) or self.tense
        return Mode(
            person=self.person,
            tense=tense,
            aspect=meaning.aspect if meaning else None,
            negation=self.negation[0],
            can=bool(self.can),
            asks=asks,
        )

    def _is_passive(self, unit: Unit, place: int) -> bool:
        """A thing is not what acts: without an object after it, what is done is done to it."""
        verb = unit.node.verb() if unit.node is not None else None
        subject = self.subject or next((other for other in self.units[:place] if other.kind == "np"), None)
        if verb is None or not verb.takes_object or subject is None or subject.is_agent or self.can:
            return False
        meaning = unit.node.meaning if unit.node is not None else None
        after = self.units[place + 1] if place + 1 < len(self.units) else None
        if meaning is not None and meaning.aspect == "ongoing":
            return False
        return after is None or after.kind in ("adj", "adv", "tense", "join", "text", "num")

    def _tell_verb(self, unit: Unit) -> None:
        node = unit.node
        verb = node.verb() if node is not None else None
        if verb is None or node is None:
            return
        spans = (*unit.pieces[0].spans, *self.can, *self.negation[1])
        before = self.previous.kind if self.previous else ""
        if node.meaning is not None and "be" in node.meaning.senses and self._is_be():
            verb = _BE_VERB
        if before == "verb" or (before == "slash" and self._was_verb()):
            to = self.verb is not None and self.verb.base in TAKES_TO
            said = f" to {verb.base}" if to else f" {verb.gerund}"
            self._say(f"{' not' if self.negation[0] else ''}{said}", spans, unit)
        elif before == "modal" and not self.can:
            self._say(f" {verb.base}", spans, unit)
        elif before == "np" and self.predicates and self.previous is not self.subject:
            said, inferred = (verb.participle, True) if verb.takes_object else (verb.gerund, True)
            negated = " not" if self.negation[0] else ""
            self._say(f"{negated} {said}", spans, unit, inferred=inferred)
        else:
            self._say_predicate(unit, verb, spans, before)
        self.negation, self.can = ("", ()), ()
        self.predicates += 1
        self.verb = verb

    def _is_be(self) -> bool:
        if not self.units:
            return False
        after = self.units[0]
        return after.kind == "adj" or (after.kind == "slash" and len(self.units) > 1 and self.units[1].kind != "verb")

    def _was_verb(self) -> bool:
        return self.verb is not None and self.predicates > 0

    def _say_predicate(self, unit: Unit, verb: Verb, spans: tuple[Span, ...], before: str) -> None:
        mode = self._mode(unit)
        joined = " and" if self.predicates and before not in ("conj", "rel", "join") else ""
        if self.mood == "gerund":
            self._say(f"{joined}{' not' if mode.negation else ''} {verb.gerund}", spans, unit)
        elif self.mood == "request":
            self._say_command(unit, verb, spans, joined)
        elif self.subject is None:
            said = verb.participle if mode.aspect == "done" else verb.gerund
            self._say(f"{joined}{' not' if mode.negation else ''} {said}", spans, unit)
        elif self._is_passive(unit, -1) and not (self.previous is not None and self.previous.kind == "conj"):
            front = conjugate_be(self.person, self.tense)
            said = f"{front}{' not' if mode.negation == 'not' else ''} {verb.participle}"
            self.is_passive = True
            self._say(f"{joined} {said}", spans, unit, inferred=True)
        else:
            person = "third" if before == "rel" and self.person in ("first", "second") else self.person
            front, rest = conjugate(verb, mode._replace(person=person))
            self._say(f"{joined} {f'{front} {rest}'.strip()}", spans, unit)

    def _say_command(self, unit: Unit, verb: Verb, spans: tuple[Span, ...], joined: str) -> None:
        negated = self.negation[0]
        base = f"be {verb.gerund}" if self._mode(unit).aspect == "ongoing" else verb.base
        if self.subject is not None and self.predicates == 0 and self._is_passive(unit, -1):
            self._say(f"{' not' if negated else ''} {verb.participle}", spans, unit, inferred=True)
            return
        if self.subject is not None and self.predicates == 0:
            self._say(f"{' not' if negated else ''} {base}", spans, unit)
            return
        not_ = {"not": " do not", "never": " never"}.get(negated, "")
        lead = self.lead if not self.predicates and not self.pieces else ()
        self._say(f"{joined}{not_} {base}", (*lead, *spans), unit)

    def _tell_adj(self, unit: Unit) -> None:
        before = self.previous.kind if self.previous else ""
        negated = self._take_negation()
        pieces = list(unit.pieces)
        if self.more:
            pieces.insert(0, Piece(" more", self.more))
            self.more = ()
        if negated:
            pieces.insert(0, Piece(negated[0], negated[1]))
        if before in ("num", "slash", "is", "conj", "neg", "modal") or (before == "verb" and self.verb is _BE_VERB):
            lead = ""
        elif before == "adj" or (before == "adv" and self.predicates):
            lead = " and" if before == "adj" else ""
        elif self.is_passive and before == "verb":
            lead = " and"
        elif self.subject is not None and self.mood in ("inform", "query") and not self._object_stands():
            lead = f"{' and' if self.predicates else ''} {conjugate_be(self.person, self.tense)}"
            self.predicates += 1
        elif self.mood == "gerund" and self.subject is not None and not self.predicates:
            lead = " being"
        else:
            lead = "," if self.pieces else ""
        if lead:
            self._say(lead, ())
        self.pieces.extend(pieces)

    def _object_stands(self) -> bool:
        return self.predicates > 0 and self.previous is not None and self.previous.kind in ("np", "verb", "list")

    def _take_negation(self) -> tuple[str, tuple[Span, ...]] | None:
        word, spans = self.negation
        self.negation = ("", ())
        return (f" {word}", spans) if word else None

    def _is_compound(self, unit: Unit, subject: Unit) -> bool:
        return subject.is_bare and unit.node is not None and unit.node.kind == "word" and unit.node.basis == "exact"

    def _tell_kv(self, unit: Unit) -> None:
        before = self.previous.kind if self.previous else ""
        key, value = list(unit.pieces), list(unit.value)
        if self.mood == "request":
            self._say(" and with" if before == "kv" else " with", ())
            self.pieces.extend((*key, *value))
        elif before == "slash" and self.subject is not None and not self.predicates and self.mood == "inform":
            self.pieces.extend(key)
            self._say(f" {conjugate_be(self.person, self.tense)}", ())
            self.pieces.extend(value)
            self.predicates += 1
        elif before in ("verb", "slash", "conj", "modal", "more"):
            self.pieces.extend((*key, *value))
        elif self.subject is not None and self.previous is self.subject and self._is_compound(unit, self.subject):
            self.pieces.extend(key)
            self._say(f" {conjugate_be('third', self.tense)}", ())
            self.pieces.extend(value)
            self.predicates += 1
        elif self.subject is not None and self.mood in ("inform", "query"):
            has = "has" if self.person == "third" else "have"
            self._say(" and" if before == "kv" else f"{' and' if self.predicates else ''} {has}", ())
            self.pieces.extend((*key, *value))
            self.predicates += 1
        else:
            noun = unit.node.noun() if unit.node is not None and unit.node.basis == "exact" else None
            if self.pieces and before != "join":
                self._say(",", ())
            elif noun is not None and noun.is_counted:
                key[0] = key[0]._replace(text=f" the{key[0].text}")
            self.pieces.extend(key)
            self._say(" is", ())
            self.pieces.extend(value)
            self.predicates += 1

    def _tell_num(self, unit: Unit) -> None:
        before = self.previous.kind if self.previous else ""
        pieces = list(unit.pieces)
        follows = self.units[0].kind if self.units else ""
        if self.subject is not None and follows == "adj" and before != "verb" and self.mood != "request":
            lead = " and" if self.predicates else ""
            self._say(f"{lead} {conjugate_be(self.person, self.tense)}", ())
            self.predicates += 1
        elif before not in ("", "verb", "slash", "text", "is", "conj", "more", "neg"):
            pieces[0] = pieces[0]._replace(text=f",{pieces[0].text}")
        self.pieces.extend(pieces)

    def _tell_slash(self, unit: Unit) -> None:
        if self.previous is None or not self.units:
            self._say("" if self.negation[0] else " about", unit.pieces[0].spans)
            return
        follows = self.units[0]
        if self.previous.kind == "verb" and self.verb is not None:
            is_plain = (follows.kind == "verb" and self.verb.base in TAKES_TO) or not self.verb.about
            said = "" if is_plain else f" {self.verb.about}"
        elif self.previous.kind == "modal" or (
            follows.kind == "adj" and self.previous is self.subject and self.is_asked
        ):
            said = ""
        elif follows.kind == "adj" and self.previous is self.subject and self.mood != "request":
            said = f" {conjugate_be(self.person, self.tense)}"
            self.predicates += 1
        elif self.previous.kind == "adj":
            said = " for" if self.previous.node is not None and self.previous.node.says == "eligible" else " about"
        elif self.previous.node is not None and self.previous.node.is_action:
            said = " about"
        elif self.previous.kind in ("np", "list", "num") and self.previous.pieces[-1].text not in (" X", " what"):
            said = " of"
        else:
            said = " about"
        self._say(said, unit.pieces[0].spans)

    def _tell_join(self, unit: Unit) -> None:
        first = unit.pieces[0]
        is_clause = first.text in (" then", " else", " however", " although")
        self.pieces.append(first._replace(text=f",{first.text}") if is_clause and self.pieces else first)

    def _tell_is(self, unit: Unit) -> None:
        self._say(f" {conjugate_be(self.person, self.tense)}", unit.pieces[0].spans)
        self.predicates += 1

    def _tell_rel(self, unit: Unit) -> None:
        who = self.previous is not None and self.previous.kind == "np" and self.previous.is_agent
        self._say(" who" if who else " that", unit.pieces[0].spans)
        if not (self.units and self.units[0].kind in ("verb", "modal", "neg")):
            self._say(" is", (), inferred=True)
        self.predicates = max(self.predicates, 0)

    def _close(self) -> None:
        if self.more:
            self._say(" more", self.more)
        word, spans = self.negation
        if word:
            self._say(f" {word}", spans)
        if self.can:
            self._say(" can", self.can)

    def _say(self, text: str, spans: tuple[Span, ...], unit: Unit | None = None, *, inferred: bool = False) -> None:
        if not text:
            if spans and self.pieces:
                last = self.pieces[-1]
                self.pieces[-1] = last._replace(spans=(*last.spans, *spans))
            return
        basis = "inferred" if inferred else (unit.pieces[0].basis if unit is not None and unit.pieces else "exact")
        self.pieces.append(Piece(text, tuple(dict.fromkeys(spans)), basis))


def _without_article(piece: Piece) -> Piece:
    return piece._replace(text=f" {piece.text.strip().removeprefix('the ')}")


_BE_VERB = Verb(base="be", third="is", past="was", participle="been", gerund="being")


def conjugate_can(tense: str) -> str:
    """`can`, `could`, `will be able to`."""
    return {"past": "could", "future": "will be able to"}.get(tense, "can")
