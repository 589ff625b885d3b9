"""The time field: delays, exact times, repeats, and amounts of several units.

Specification: 0.4.0 Time Encoding. `~=` and `~@` are both an exact time, in Unix seconds or ISO 8601; a compound
amount such as `+1d15h` is not in the grammar but in the examples.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .._english import quote
from .._record import Moment, Note
from .._time import instant_of_seconds, instant_of_text
from .notes import TIME_COMPOUND, TIME_IMPLAUSIBLE, TIME_UNREAD, TIME_WITHOUT_ZONE
from .tables import TIME_SYMBOLS, UNITS

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
    return _unread(value, symbol if kind else "", span)


def _unread(value: str, symbol: str, span: tuple[int, int, int]) -> Time:
    note = TIME_UNREAD.note(f"the time {quote(value)} is not of the form symbol, number, unit", span)
    return Time(Moment(raw=value, kind="unread"), symbol, (), (note,))


def _read_exact(value: str, symbol: str, rest: str, span: tuple[int, int, int]) -> Time:
    if _UNIX.match(rest):
        number = float(rest) if "." in rest else int(rest)
        instant = instant_of_seconds(number)
    else:
        instant = instant_of_text(rest)
        if instant is None and not _DATE.match(rest) and not rest[:4].isdecimal():
            return _unread(value, symbol, span)
    moment = Moment(raw=value, kind="exact", instant=instant)
    if _DATE.match(rest):
        return Time(moment, symbol, (), ())
    if instant is None:
        note = TIME_IMPLAUSIBLE.note(f"{quote(rest)} is no time between 2000 and 2100: kept as written", span)
        return Time(moment, symbol, (), (note,))
    if not _UNIX.match(rest) and not _ZONE.search(rest, 10):
        return Time(moment, symbol, (), (TIME_WITHOUT_ZONE.note(f"{quote(rest)} names no zone: taken as UTC", span),))
    return Time(moment, symbol, (), ())
