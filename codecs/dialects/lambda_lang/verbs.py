"""Verbs in a sentence: person, tense, aspect, negation, and the helping word that a question puts first."""

from __future__ import annotations

from typing import NamedTuple

from .lexicon import Verb

_BE = {
    ("first", "now"): "am",
    ("third", "now"): "is",
    ("first", "past"): "was",
    ("third", "past"): "was",
}
# After these, another verb stands with "to"; after any other it stands as "…ing".
TAKES_TO = frozenset({"want", "need", "decide", "choose", "hope", "help", "seek", "learn", "ask"})


class Mode(NamedTuple):
    """How a verb is put: person of its subject, tense, aspect, the word that negates it, whether it can."""

    person: str = "third"
    tense: str = "now"
    aspect: str | None = None
    negation: str = ""
    can: bool = False
    asks: bool = False


def conjugate_be(person: str, tense: str = "now") -> str:
    """`am`, `is`, `are`, `was`, `were`, `will be`."""
    if tense == "future":
        return "will be"
    return _BE.get((person, tense), "were" if tense == "past" else "are")


def conjugate(verb: Verb, mode: Mode) -> tuple[str, str]:
    """(the helping word, the rest): ("do", "know"), ("", "knows"), ("cannot", "know"), ("will", "be waiting")."""
    front, rest = _conjugate(verb, mode)
    if mode.asks and mode.negation:
        # A question keeps its helping word in front and says "not" after the subject.
        return front, f"{mode.negation} {rest}".strip()
    if mode.negation == "never":
        return (front, f"never {rest}".strip()) if front else ("", f"never {rest}")
    if mode.negation:
        if front == "can":
            return "cannot", rest
        return f"{front} not".strip(), rest
    return front, rest


_BEGIN = Verb(base="begin", third="begins", past="began", participle="begun", gerund="beginning")
_STOP = Verb(base="stop", third="stops", past="stopped", participle="stopped", gerund="stopping")


def _conjugate(verb: Verb, mode: Mode) -> tuple[str, str]:
    if mode.aspect in ("habitual", "beginning", "ending"):
        return _conjugate_old(verb, mode._replace(aspect=None))[mode.aspect]
    if mode.can:
        return _conjugate_can(verb, mode)
    if mode.aspect == "ongoing":
        if mode.tense == "future":
            return "will", f"be {verb.gerund}"
        return conjugate_be(mode.person, mode.tense), verb.gerund
    if mode.aspect == "done":
        if mode.tense == "future":
            return "will", f"have {verb.participle}"
        has = "has" if mode.person == "third" else "have"
        return "had" if mode.tense == "past" else has, verb.participle
    if verb.base == "be":
        if mode.tense == "future":
            return "will", "be"
        return conjugate_be(mode.person, mode.tense), ""
    if mode.tense == "future":
        return "will", verb.base
    if mode.asks or mode.negation == "not":
        do = "does" if mode.person == "third" else "do"
        return "did" if mode.tense == "past" else do, verb.base
    if mode.tense == "past":
        return "", verb.past
    return "", verb.third if mode.person == "third" else verb.base


def _conjugate_old(verb: Verb, mode: Mode) -> dict[str, tuple[str, str]]:
    """The three aspects that v0.3 alone has: what is done as a habit, what begins, and what ends."""
    front, rest = _conjugate(verb, mode)
    begins, stops = _conjugate(_BEGIN, mode), _conjugate(_STOP, mode)
    return {
        "habitual": (front, f"habitually {rest}".strip()),
        "beginning": (begins[0], f"{begins[1]} to {verb.base}"),
        "ending": (stops[0], f"{stops[1]} {verb.gerund}"),
    }


def _conjugate_can(verb: Verb, mode: Mode) -> tuple[str, str]:
    base = verb.base
    if mode.aspect == "ongoing":
        base = f"be {verb.gerund}"
    elif mode.aspect == "done":
        base = f"have {verb.participle}"
    if mode.tense == "future":
        return "will", f"be able to {base}"
    return "could" if mode.tense == "past" else "can", base
