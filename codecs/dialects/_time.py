"""Instants as the record writes them: ISO 8601 in UTC, `2026-11-21T09:00:00Z`, a fraction only where there is one.

A time is plausible from the year 2000 up to the year 2100. One outside stays as it was written and orders nothing:
zero and minus one are how broken clocks speak. What stands around a text may be written in more ways than a dialect
allows, and a number there is of the unit in which it is plausible: no two units give a plausible time for one number.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Literal

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_SECONDS = EARLIEST.timestamp()
_LATEST_SECONDS = LATEST.timestamp()
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|[+-]\d\d(?::?\d\d)?)?\Z", re.ASCII
)

_NUMBER = re.compile(r"\d{9,20}(?:\.\d{1,9})?\Z", re.ASCII)
# How large floating-point numbers are written.
_FLOAT = re.compile(r"\d(?:\.\d{1,17})?[eE]\+?1\d\Z", re.ASCII)
# RFC 2822, with or without the day of the week.
_MAIL = re.compile(
    r"(?:[A-Za-z]{3},\s*)?\d{1,2}\s+[A-Za-z]{3}\s+\d{4}\s+\d\d:\d\d(?::\d\d)?(?:\s+([+-]\d{4}|[A-Za-z]{1,5}))?\Z",
    re.ASCII,
)
_MAIL_ZONES = frozenset(("UT", "UTC", "GMT", "Z", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT"))
_ZONE = re.compile(r"(?:[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)\Z", re.ASCII)
_MAX_CHARACTERS = 64

Assumed = Literal["zone", "milliseconds", "microseconds", "nanoseconds"]
_UNITS: tuple[tuple[int, Assumed | None], ...] = (
    (1, None),
    (1_000, "milliseconds"),
    (1_000_000, "microseconds"),
    (1_000_000_000, "nanoseconds"),
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


def instant_of_log(said: str) -> str | None:
    """The instant that a log names, or None for what is no time.

    Args:
        said: ISO 8601 in any of its forms, a time as in mail (RFC 2822), or a number of seconds, milliseconds,
            microseconds or nanoseconds since 1970. What has no zone is taken as UTC.
    """
    instant = instant_of_text(said)
    if instant or len(said) > _MAX_CHARACTERS:
        return instant
    text = _spell(said)
    if _NUMBER.match(text):
        return _read_number(text)[0]
    zoned = text.removesuffix("UTC").removesuffix("GMT").rstrip()
    return instant_of_text(zoned) or _instant_of_iso(zoned) or _instant_of_mail(text)


def assumption_of(said: str) -> Assumed | None:
    """What had to be assumed for the instant of a text that names one: its zone, or a unit other than seconds."""
    text = _spell(said)
    if _NUMBER.match(text):
        return _read_number(text)[1]
    mail = _MAIL.match(text)
    if mail:
        return "zone" if mail[1] in (None, "-0000") else None
    # The last part of a date alone looks like an offset.
    return None if len(text) > 10 and _ZONE.search(text) else "zone"


def _spell(said: str) -> str:
    text = said.strip()
    return str(int(float(text))) if _FLOAT.match(text) else text


def _read_number(text: str) -> tuple[str | None, Assumed | None]:
    whole, _, fraction = text.partition(".")
    for per_second, unit in _UNITS:
        seconds, rest = divmod(int(whole), per_second)
        if _EARLIEST_SECONDS <= seconds < _LATEST_SECONDS:
            below = f"{rest:0{len(str(per_second)) - 1}d}" if per_second > 1 else ""
            micro = int((below + fraction).ljust(6, "0")[:6])
            return write_instant(_EPOCH + timedelta(seconds=seconds, microseconds=micro)), unit
    return None, None


def _instant_of_iso(text: str) -> str | None:
    """Of the forms of ISO 8601 that are seldom written: without separators, by the week, a date alone."""
    if len(text) < 10:
        return None
    try:
        return _plausible(datetime.fromisoformat(text.upper().replace(" Z", "Z")))
    except (ValueError, OverflowError):
        return None


def _instant_of_mail(text: str) -> str | None:
    found = _MAIL.match(text)
    if not found or (found[1] and found[1][0] not in "+-" and found[1].upper() not in _MAIL_ZONES):
        return None
    try:
        return _plausible(parsedate_to_datetime(text))
    except (ValueError, OverflowError):
        return None


def _plausible(moment: datetime) -> str | None:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return write_instant(moment) if EARLIEST <= moment < LATEST else None
