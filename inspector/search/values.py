"""Values of a query that have an order: times, numbers and severities, read with errors that say how to write them."""

from __future__ import annotations

import re
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from django.utils import timezone

from .language import QueryError, Term

SEVERITIES: Final = ("none", "info", "notice", "warning", "error")
_AGO: Final = re.compile(r"(\d{1,6})(s|m|h|d|w)")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NUMBER: Final = re.compile(r"-?\d{1,18}(\.\d{1,9})?")

# A day of a query is a day where its reader lives.
zone_of_query: ContextVar[tzinfo] = ContextVar("zone_of_query", default=UTC)


def read_time(term: Term) -> datetime:
    """The instant that a term names: `2026-11-21`, `2026-11-21T09:30`, with a zone or in the reader's, or `7d` ago.

    Raises:
        QueryError: for anything else.
    """
    value = ",".join(term.values)
    ago = _AGO.fullmatch(value)
    try:
        if ago:
            return timezone.now() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(value)
        return found if found.tzinfo else found.replace(tzinfo=zone_of_query.get())
    except (ValueError, OverflowError):
        hint = "write a day as 2026-11-21, a time as 2026-11-21T09:30, or how long ago as 30m, 12h, 7d, 2w"
        raise QueryError(f"{term.name}: {value!r} is no time; {hint}", term.start, term.end) from None


def read_number(term: Term) -> str:
    """The number of a term, as digits.

    Raises:
        QueryError: for anything else.
    """
    (value, *more) = term.values
    if more or not _NUMBER.fullmatch(value):
        raise QueryError(f"{term.name}: {','.join(term.values)!r} is no number", term.start, term.end)
    return value


def is_number(value: str) -> bool:
    """Whether a value is written as a number that can be compared."""
    return _NUMBER.fullmatch(value) is not None


def read_severity(value: str) -> int:
    """The rank of a severity that is one of `SEVERITIES`."""
    return SEVERITIES.index(value.casefold())
