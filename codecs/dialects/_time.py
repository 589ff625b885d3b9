"""Instants as the record writes them: ISO 8601 in UTC, `2026-11-21T09:00:00Z`, a fraction only where there is one.

A time is plausible from the year 2000 up to the year 2100. One outside stays as it was written and orders nothing:
milliseconds taken for seconds, zero, and minus one are how broken clocks speak.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_SECONDS = EARLIEST.timestamp()
_LATEST_SECONDS = LATEST.timestamp()
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|[+-]\d\d(?::?\d\d)?)?\Z", re.ASCII
)


def write_instant(moment: datetime) -> str:
    """The instant in UTC as ISO 8601 with `Z`."""
    moment = moment.astimezone(UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def instant_of_seconds(seconds: int | float) -> str | None:
    """The instant of plausible Unix seconds, or None. A boolean is not a number here."""
    if isinstance(seconds, bool) or not _EARLIEST_SECONDS <= seconds < _LATEST_SECONDS:
        return None
    return write_instant(_EPOCH + timedelta(seconds=seconds))


def instant_of_text(text: str) -> str | None:
    """The instant of an ISO 8601 date and time, or None. Without a zone it is taken as UTC."""
    found = _ISO.match(text.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        micro = int((fraction or "0").ljust(6, "0")[:6])
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), micro, UTC)
    except ValueError:
        return None
    if zone and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
        ahead = timedelta(hours=hours, minutes=minutes)
        try:
            moment = moment - ahead if zone[0] == "+" else moment + ahead
        except OverflowError:
            return None
    return write_instant(moment) if EARLIEST <= moment < LATEST else None
