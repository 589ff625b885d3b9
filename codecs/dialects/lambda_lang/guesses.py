"""The one reading of a list of words that may be meant: actor, action, object, state. Nothing else rests on it.

It is made only where every word is an exact atom and the words' classes leave no second order: `nd hb ok` is
"node heartbeat is successful", `A bg ta id=alpha` is "an agent begins task alpha". Any other list has no reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .lexicon import Mode, conjugate, conjugate_be
from .nodes import Node
from .wording import say_amount, say_id, say_person, say_plural

# p somebody, g a thing that acts, n any other, h and i the same with an id, c counted things; v an action; a a state,
# s success, k a status that is given; t now. Two things side by side are one, "node heartbeat"; three may be anything.
_THING = "(?:[chi]|[ng]{1,2})"
_CLAUSE = re.compile(rf"[pgh]v[cghin]t?|(?:p|{_THING})vs?t?|p[chi]k?[as]{{1,3}}t?|(?:p|{_THING})k?[as]{{0,3}}t?")
_ORDER = re.compile(rf"(?:[pgh]v[cghin]|(?:p|{_THING})v)t?\Z")
_MAX_GUESSES = 12


class _Unit(NamedTuple):
    letter: str
    text: str
    node: Node
    is_plural: bool = False

    @property
    def person(self) -> str:
        return "plural" if self.is_plural else {"I": "first", "you": "second"}.get(self.text, "third")


def guess_reading(nodes: Sequence[Node], mood: str) -> str | None:
    """The reading in words, without a capital or a stop; None where there is none or more than one."""
    held = [node for node in nodes if node.kind not in ("space", "domain")]
    units = _read_units(held) if mood in ("inform", "request") and len(held) <= 4 * _MAX_GUESSES else None
    if units is None or not 2 <= len(units) <= _MAX_GUESSES:
        return None
    letters = "".join(unit.letter for unit in units)
    if mood == "request":
        if any("v" in unit.node.uses for unit in units[:-1] if unit.letter in "ghin"):
            # The word may as well be what is ordered.
            return None
        return _say_action(units, is_order=True) if _ORDER.match(letters) else None
    said: list[str] = []
    at = 0
    while at < len(units):
        found = _CLAUSE.match(letters, at)
        if found is None or not re.search("[vkas]", found[0]):
            return None
        said.append((_say_action if "v" in found[0] else _say_states)(units[at : found.end()]))
        at = found.end()
    return ", ".join(said)


def _read_units(nodes: Sequence[Node]) -> list[_Unit] | None:
    units: list[_Unit] = []
    at = 0
    has_pair = False
    while at < len(nodes):
        if _is_pair(nodes, at):
            # What another key gives is certain, and told before.
            at, has_pair = at + 3, True
            continue
        unit, at = _read_unit(nodes, at)
        if unit is None:
            return None
        units.append(unit)
    # An action may be what the key beside it is about.
    return None if has_pair and any(unit.letter == "v" for unit in units) else units


def _read_unit(nodes: Sequence[Node], at: int) -> tuple[_Unit | None, int]:
    """The unit at a place and the place behind it; no unit where the word is of no class that has one place."""
    node, after, value = nodes[at], *(nodes[at + by] if at + by < len(nodes) else None for by in (1, 2))
    if node.kind == "entity":
        is_all = after is not None and after.kind == "star"
        return _Unit("p", say_person(node.text, is_all=is_all), node, is_all), at + 1 + is_all
    is_key = value is not None and value.text == "="
    if node.kind in ("number", "quantity", "star") and after is not None and not is_key:
        return _count(node, after), at + 2
    if not _is_known(node):
        return None, at
    if after is not None and after.text == "=":
        is_status = node.text == "st" and value is not None and value.kind == "value-word" and value.uses[:1] in "va"
        return (_Unit("k", "", value), at + 3) if is_status and value is not None else (None, at)
    noun = node.noun()
    if node.uses[0] == "n" and noun is not None:
        letter = "g" if noun.is_agent else "n"
        if after is not None and after.text == "id" and is_key and at + 3 < len(nodes):
            return _Unit("h" if noun.is_agent else "i", f"{noun.one} {say_id(nodes[at + 3])}", node), at + 4
        return _Unit(letter, noun.one, node), at + 1
    if node.text == "n" and node.uses == "t":
        return _Unit("t", " now", node), at + 1
    letter = "s" if node.says == "success" else node.uses[0]
    return (_Unit(letter, node.adjective() or "", node) if letter in "vas" else None), at + 1


def _is_pair(nodes: Sequence[Node], at: int) -> bool:
    """Whether `key=value` stands there, but for an id and for a status that is a word."""
    key, sign, value = [*nodes[at : at + 3], None, None, None][:3]
    if key is None or sign is None or value is None or sign.text != "=" or not value.kind.startswith("value-"):
        return False
    return key.kind == "word" and key.text != "id" and not (key.text == "st" and value.uses[:1] in ("v", "a"))


def _is_known(node: Node) -> bool:
    return node.kind == "word" and node.basis == "exact" and node.entry is None and bool(node.uses)


def _count(number: Node, node: Node) -> _Unit | None:
    """`$3 ta` is "3 tasks", `$10 ct` is the state "10 complete"."""
    amount = say_amount(number.says)
    if not _is_known(node):
        return None
    if node.uses[0] == "a" and number.kind == "number" and node.says != "success":
        return _Unit("a", f"{amount} {node.adjective()}", node)
    noun = node.noun()
    if node.uses[0] != "n" or noun is None:
        return None
    is_one = number.says in ("1", "one")
    return _Unit("c", f"{amount} {noun.one if is_one else say_plural(node)}", node, not is_one)


def _say_action(units: Sequence[_Unit], *, is_order: bool = False) -> str:
    """Who does what; a thing that does not act by itself is what it is done to."""
    at = next(place for place, unit in enumerate(units) if unit.letter == "v")
    verb = units[at].node.verb()
    if verb is None:
        return ""
    subject, last = " ".join(unit.text for unit in units[:at]), units[at - 1]
    behind = "".join(" successfully" if unit.letter == "s" else f" {unit.text.strip()}" for unit in units[at + 1 :])
    be = conjugate_be(last.person)
    is_done_to = last.letter in "nci" and verb.takes_object
    if is_order:
        return f"{subject} {be} to {f'be {verb.participle}' if is_done_to else verb.base}{behind}"
    does = f"{be} {verb.participle}" if is_done_to else " ".join(conjugate(verb, Mode(last.person))).strip()
    return f"{subject} {does}{behind}"


def _say_states(units: Sequence[_Unit]) -> str:
    things = [unit for unit in units if unit.letter in "pnghic"]
    states = [_say_state(unit) for unit in units if unit.letter in "kas"]
    lead = f"for {things.pop(0).text}, " if things[0].letter == "p" and len(things) > 1 else ""
    now = " now" if units[-1].letter == "t" else ""
    subject = " ".join(unit.text for unit in things)
    return f"{lead}{subject} {conjugate_be(things[-1].person)} {' and '.join(states)}{now}"


def _say_state(unit: _Unit) -> str:
    verb = unit.node.verb() if unit.letter == "k" and unit.node.uses[:1] == "v" else None
    return verb.gerund if verb is not None else unit.text or unit.node.adjective() or unit.node.says
