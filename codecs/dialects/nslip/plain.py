"""The plain spelling of a tag: nearly every tag is written like this, and one expression reads it whole.

Complete header first, slots in the order of the tables, numbers without leading zeros, texts without escapes, and
nothing to note. What it yields is what the longer way yields; a tag that does not match takes the longer way.
"""

from __future__ import annotations

import re
from typing import Any

from .._record import Failure
from .fields import read_number
from .placing import place_field
from .tables import ACTS, ALPHABET, FRAMES, HEADER, RANGES, SLOTS, Slot

# Ten digits of base 62 always fit in 64 bits.
_NUMBER = "(0|[1-9A-Za-z][0-9A-Za-z]{0,9}+)"
_TEXT = r'"([^"\\]*+)"'


def _pattern_of(slot: Slot) -> str:
    if slot.is_text:
        return slot.prefix + _TEXT
    if slot.prefix in RANGES:
        low, high = RANGES[slot.prefix]
        return f"{slot.prefix}([{ALPHABET[low : high + 1]}])"
    return slot.prefix + _NUMBER


# Act and frame are one group: what the two mean together is looked up once.
_KIND = rf"([{ALPHABET[min(ACTS) : max(ACTS) + 1]}]\|f[{ALPHABET[min(FRAMES) : max(FRAMES) + 1]}])"
_HEADER = rf"a{_KIND}\|" + r"\|".join(_pattern_of(SLOTS[prefix]) for prefix in HEADER if prefix not in "af")
_SLOTS = "".join(rf"(?>(?:\|{_pattern_of(slot)})?)" for slot in SLOTS.values() if not slot.is_header)
_match_plain = re.compile(f"@{_HEADER}{_SLOTS}#").fullmatch

_KINDS = {
    f"{ALPHABET[act.code]}|f{ALPHABET[frame.code]}": (act.performative, act.name, frame.name)
    for act in ACTS.values()
    for frame in FRAMES.values()
}
_PRIORITIES = {digit: place_field("q", ALPHABET.index(digit), digit)["priority"] for digit in ALPHABET[1:4]}


# So many numbers are held: a conversation, its turns and its tasks come again and again.
_MAX_HELD = 1 << 13


class _Numbers(dict[str, int]):
    """Numbers by their digits: those of one or two digits are held, longer ones as they come, while there is room."""

    def __missing__(self, digits: str) -> int:
        number = read_number(digits)
        if number is None:
            raise KeyError(digits)
        if len(self) < _MAX_HELD:
            self[digits] = number
        return number


class _Decimals(dict[str, str]):
    """Numbers as decimal text by their digits, held likewise."""

    def __missing__(self, digits: str) -> str:
        decimal = str(_NUMBERS[digits])
        if len(self) < _MAX_HELD:
            self[digits] = decimal
        return decimal


_SHORT = (tens + ones for tens in ("", *ALPHABET[1:]) for ones in ALPHABET)
_NUMBERS = _Numbers((digits, number) for number, digits in enumerate(_SHORT))
_DECIMALS = _Decimals((digits, str(number)) for digits, number in _NUMBERS.items())


def read_plain(wire: str) -> dict[str, Any] | None:
    """The names that the text fills if it is one tag in the plain spelling, else None."""
    found = _match_plain(wire)
    if found is None:
        return None
    (
        kind,
        conversation,
        sender,
        receiver,
        turn,
        goal,
        task,
        parent,
        result,
        priority,
        score,
        status,
        error,
        tag,
    ) = found.groups()
    performative, act, frame = _KINDS[kind]
    values: dict[str, Any] = {
        "performative": performative,
        "native_act": act,
        "frame": frame,
        "conversation_id": _DECIMALS[conversation],
        "sender": _DECIMALS[sender],
        "receivers": (_DECIMALS[receiver],),
        "turn": _NUMBERS[turn],
    }
    if goal:
        values["trace_id"] = _DECIMALS[goal]
    if task:
        values["task_id"] = _DECIMALS[task]
    if parent:
        values["parent_task_id"] = _DECIMALS[parent]
    if result:
        values["result_id"] = _DECIMALS[result]
    if priority:
        values["priority"] = _PRIORITIES[priority]
    if score:
        values["score"] = _NUMBERS[score]
    if status is not None:
        values["status"] = status
    if error:
        values["error"] = Failure(code=_DECIMALS[error])
    if tag is not None:
        values["topic"] = tag
    return values
