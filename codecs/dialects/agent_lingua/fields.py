"""The target, the time and the condition of a statement, each as written and as understood.

Specification: 0.4.0 Target, Time and Condition Encoding.

- `@H`, `@A` and `@S` hold everywhere, numbers are Moltbook's, and a name is an agent, an object or a place by its
  domain.
- `~=` and `~@` are both an exact time, in Unix seconds or ISO 8601; a compound amount such as `+1d15h` is not in the
  grammar but in the examples.
- A partition, `P1/3`, needs no operator.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, cast

from .._english import quote, say_name
from .._record import Moment, Note, Target
from .._time import instant_of_seconds, instant_of_text
from .notes import (
    CONDITION_UNREAD,
    OPERATOR_BORROWED,
    TARGET_ASSUMED,
    TARGET_NUMBER,
    TARGET_UNNAMED,
    TIME_COMPOUND,
    TIME_IMPLAUSIBLE,
    TIME_UNREAD,
    TIME_WITHOUT_ZONE,
)
from .tables import (
    BORROWED_OPERATORS,
    CONDITIONS,
    DOMAINS,
    DYNAMIC,
    GENERAL_TARGETS,
    OPERATORS,
    SUBMOLTS,
    TIME_SYMBOLS,
    UNITS,
)

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


# Twelve digits of weeks are more than any schedule needs, and small enough to compute with.
_AMOUNT = re.compile(r"([0-9]{1,12})([smhdw])")
_AMOUNTS = re.compile(r"(?:[0-9]{1,12}[smhdw]){1,16}\Z")
_UNIX = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,9})?\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_ZONE = re.compile(r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)\Z")


class Amount(NamedTuple):
    """A number with its unit, and where it stands in the value."""

    start: int
    end: int
    digits: str
    unit: str


class Time(NamedTuple):
    """A time as read: its moment, its symbol, its amounts, and its notes."""

    moment: Moment
    symbol: str
    amounts: tuple[Amount, ...]
    notes: tuple[Note, ...]


def read_time(value: str, start: int) -> Time:
    """Read the characters after `~`. The kind is delay, before, exact, repeat or unread.

    Args:
        value: the characters.
        start: where they begin on the wire, for the notes.
    """
    span = (0, start, start + len(value))
    symbol, rest = value[:1], value[1:]
    kind = TIME_SYMBOLS.get(symbol)
    if kind == "exact":
        return _read_exact(value, symbol, rest, span)
    if kind is not None and _AMOUNTS.match(rest):
        amounts = tuple(Amount(*found.span(), found[1], found[2]) for found in _AMOUNT.finditer(value, 1))
        seconds = sum(int(amount.digits) * UNITS[amount.unit][1] for amount in amounts)
        notes = (TIME_COMPOUND.note(f"{value} names {len(amounts)} units", span),) if len(amounts) > 1 else ()
        return Time(Moment(raw=value, kind=kind, seconds=seconds), symbol, amounts, notes)
    return _unread_time(value, symbol if kind else "", span)


def _unread_time(value: str, symbol: str, span: tuple[int, int, int]) -> Time:
    note = TIME_UNREAD.note(f"the time {quote(value)} is not of the form symbol, number, unit", span)
    return Time(Moment(raw=value, kind="unread"), symbol, (), (note,))


def _read_exact(value: str, symbol: str, rest: str, span: tuple[int, int, int]) -> Time:
    if _UNIX.match(rest):
        number = float(rest) if "." in rest else int(rest)
        instant = instant_of_seconds(number)
    else:
        instant = instant_of_text(rest)
        if instant is None and not _DATE.match(rest) and not rest[:4].isdecimal():
            return _unread_time(value, symbol, span)
    moment = Moment(raw=value, kind="exact", instant=instant)
    if _DATE.match(rest):
        return Time(moment, symbol, (), ())
    if instant is None:
        note = TIME_IMPLAUSIBLE.note(f"{quote(rest)} is no time between 2000 and 2100: kept as written", span)
        return Time(moment, symbol, (), (note,))
    if not _UNIX.match(rest) and not _ZONE.search(rest, 10):
        return Time(moment, symbol, (), (TIME_WITHOUT_ZONE.note(f"{quote(rest)} names no zone: taken as UTC", span),))
    return Time(moment, symbol, (), ())


_PARTITION = re.compile(r"P([0-9]{1,9})/([0-9]{1,9})\Z")


class Condition(NamedTuple):
    """A condition as read: its moment, the table's words for type and operator, the value, and its notes.

    `operator_end` and `value_start` are offsets in the value of the field.
    """

    moment: Moment
    subject: str | None
    relation: str | None
    operand: str
    operator_end: int
    notes: tuple[Note, ...] = ()


def read_condition(value: str, start: int) -> Condition:
    """Read the characters after `%`; `start` is where they begin on the wire. The kind is the table's."""
    span = (0, start, start + len(value))
    row = CONDITIONS.get(value[:1])
    if row is None:
        return _unread_condition(value, span)
    kind, subject = row
    if _PARTITION.match(value):
        return Condition(Moment(raw=value, kind=kind), subject, None, value[1:], 1)
    operator = value[1:3] if value[1:3] in BORROWED_OPERATORS else value[1:2]
    operand = value[1 + len(operator) :]
    relation = BORROWED_OPERATORS.get(operator) or OPERATORS.get(operator)
    if relation is None or not operand:
        return _unread_condition(value, span)
    notes: tuple[Note, ...] = ()
    if len(operator) == 2:
        text = f"the operator {operator} is not in the table: read as “{relation}”"
        notes = (OPERATOR_BORROWED.note(text, (0, start + 1, start + 3)),)
    return Condition(Moment(raw=value, kind=kind), subject, relation, operand, 1 + len(operator), notes)


def _unread_condition(value: str, span: tuple[int, int, int]) -> Condition:
    note = CONDITION_UNREAD.note(f"the condition {quote(value)} is not of the form type, operator, value", span)
    return Condition(Moment(raw=value, kind="unread"), None, None, value, 0, (note,))
