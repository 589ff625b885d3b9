"""Placing fields in the record: which names of a message each value fills.

The plainest tags, which are nearly all of them, take a shorter way to the same message: every field is looked up
whole in a table that was made from the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._record import Failure, Message, Priority
from .base62 import is_number, read_number
from .fields import TagRead
from .tables import ACTS, ALPHABET, FRAMES, HEADER, RANGES


def _place_act(number: int, written: str) -> dict[str, Any]:
    act = ACTS.get(number)
    if act is None:
        return {"performative": "unknown", "native_act": str(number)}
    return {"performative": act.performative, "native_act": act.name}


def _place_frame(number: int, written: str) -> dict[str, Any]:
    return {"frame": FRAMES[number].name if number in FRAMES else str(number)}


def _place_priority(number: int, written: str) -> dict[str, Any]:
    low, high = RANGES["q"]
    return {"priority": Priority(raw=written, rank=number if low <= number <= high else None)}


# By prefix: what a number, and its digits as written, fill.
_PLACES: dict[str, Callable[[int, str], dict[str, Any]]] = {
    "a": _place_act,
    "f": _place_frame,
    "c": lambda number, written: {"conversation_id": str(number)},
    "S": lambda number, written: {"sender": str(number)},
    "d": lambda number, written: {"receivers": (str(number),)},
    "T": lambda number, written: {"turn": number},
    "g": lambda number, written: {"trace_id": str(number)},
    "k": lambda number, written: {"task_id": str(number)},
    "p": lambda number, written: {"parent_task_id": str(number)},
    "r": lambda number, written: {"result_id": str(number)},
    "q": _place_priority,
    "s": lambda number, written: {"score": number},
    "e": lambda number, written: {"error": Failure(code=str(number))},
}
_TEXT_PLACES = {"u": "status", "t": "topic"}


def place_field(prefix: str, value: int | str | None, written: str) -> dict[str, Any]:
    """The names of the record that the value of a field fills; ids are decimal text."""
    if isinstance(value, int):
        return _PLACES[prefix](value, written)
    return {_TEXT_PLACES[prefix]: value}


def message_of(read: TagRead, part: int) -> Message:
    """The message that a closed tag is; the values that could not be read are kept as written in `attributes`."""
    values: dict[str, Any] = {"performative": "unknown"}
    unread: dict[str, str] = {}
    for field in read.fields:
        if field.role == "unread":
            unread[field.slot.prefix if field.slot else field.prefix] = field.written
        elif field.role == "used" and field.slot:
            values.update(place_field(field.slot.prefix, field.value, field.written))
    if unread:
        values["attributes"] = {"unread": unread}
    if read.notes:
        values["notes"] = read.notes
    return Message(part=part, **values)


def _plain_fields() -> dict[str, dict[str, Any]]:
    """Every number field of one digit that asks for no note, whole, with the names it fills."""
    plain = {}
    for prefix, place in _PLACES.items():
        low, high = _PLAIN_RANGES.get(prefix, (0, 61))
        for number in range(low, high + 1):
            digit = ALPHABET[number]
            plain[prefix + digit] = place(number, digit)
    return plain


_PLAIN_RANGES = {"a": (min(ACTS), max(ACTS)), "f": (min(FRAMES), max(FRAMES)), **RANGES}
_PLAIN = _plain_fields()
# The prefixes whose numbers may have more digits without a note; ten digits always fit.
_LONG = frozenset(_PLACES) - frozenset(_PLAIN_RANGES)
_HEADER_NAMES = frozenset(name for prefix in HEADER for name in _PLACES[prefix](0, "0"))


def place_plain(wire: str) -> dict[str, Any] | None:
    """The names that the text fills if it is one complete tag without anything to note, else None."""
    if wire[:1] != "@" or wire[-1:] != "#":
        return None
    values: dict[str, Any] = {}
    fields = wire[1:-1].split("|")
    for field in fields:
        places = _PLAIN.get(field) or _place_longer(field)
        if places is None:
            return None
        values.update(places)
    # Each field fills a name of its own, the act two: fewer names mean that a field stands twice.
    return values if len(values) == len(fields) + 1 and values.keys() >= _HEADER_NAMES else None


def _place_longer(field: str) -> dict[str, Any] | None:
    prefix, written = field[:1], field[1:]
    if prefix in _LONG:
        if 2 <= len(written) <= 10 and written[0] != "0" and is_number(written):
            return place_field(prefix, read_number(written), written)
    elif prefix in _TEXT_PLACES and len(written) > 1 and written[0] == '"' == written[-1]:
        text = written[1:-1]
        if '"' not in text and "\\" not in text:
            return {_TEXT_PLACES[prefix]: text}
    return None
