"""Placing fields in the record: which names of a message each value fills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._record import Failure, Message, Priority
from .fields import TagRead
from .tables import ACTS, FRAMES, RANGES


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
