"""The target field: whom or what a statement aims at, which depends on its domain.

Specification: 0.4.0 Target Encoding. `@H`, `@A` and `@S` hold everywhere, numbers are Moltbook's, and a name is an
agent, an object or a place by its domain.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

from .._english import say_name
from .._record import Note, Target
from .notes import TARGET_ASSUMED, TARGET_NUMBER, TARGET_UNNAMED
from .tables import DOMAINS, DYNAMIC, GENERAL_TARGETS, SUBMOLTS

Kind = Literal["agent", "human", "all", "self", "place", "object"]


class Aim(NamedTuple):
    """A target as read: the value, its meaning in words, and its notes. A board is a Moltbook place."""

    target: Target
    meaning: str
    is_board: bool = False
    notes: tuple[Note, ...] = ()


def read_target(value: str, domain: str | None, start: int) -> Aim:
    """Read the characters after `@`.

    Args:
        value: the characters, at least one.
        domain: the statement's domain code; None for a response or error, which has none.
        start: where the value begins on the wire, for the notes.
    """
    span = (0, start, start + len(value))
    general = GENERAL_TARGETS.get(value)
    if general is not None:
        return Aim(Target(raw=value, name=general[0], kind=cast("Kind", general[0])), general[1])
    if value == "0":
        text = "@0 is “self” among Moltbook's boards and undefined elsewhere: read as self"
        notes = () if domain == "7" else (TARGET_NUMBER.note(text, span),)
        return Aim(Target(raw=value, name="self", kind="self"), "the sender itself", notes=notes)
    if domain == "7":
        return _read_board(value, span)
    kind = DOMAINS[domain].target if domain in DOMAINS else ""
    notes = ()
    if value.isdecimal():
        notes = (TARGET_NUMBER.note(f"@{value} is a number that only Moltbook defines: kept as a name", span),)
    elif not kind:
        notes = (TARGET_ASSUMED.note(f"the kind of {say_name(value)} is not given: taken for an agent", span),)
    target = Target(raw=value, name=value, kind=cast("Kind", kind or "agent"))
    return Aim(target, {"": "agent", "place": "place", "object": "object"}.get(kind, "agent"), notes=notes)


def _read_board(value: str, span: tuple[int, int, int]) -> Aim:
    known = SUBMOLTS.get(value)
    if known is not None:
        return Aim(Target(raw=value, name=known, kind="place"), f"Moltbook board {known}", True)
    if value == DYNAMIC:
        note = TARGET_UNNAMED.note("@99 is followed by the board's name, and none follows", span)
        return Aim(Target(raw=value, name=value, kind="place"), "a board named elsewhere", True, (note,))
    if value.isdecimal():
        note = TARGET_NUMBER.note(f"@{value} names no board in the table", span)
        return Aim(Target(raw=value, name=value, kind="place"), "a board outside the table", True, (note,))
    name = value
    if value.startswith(DYNAMIC):
        name = value[len(DYNAMIC) :].lstrip(":-=/. ") or value
    return Aim(Target(raw=value, name=name, kind="place"), f"Moltbook board {say_name(name)}", True)
