"""Instants: times as whole microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def count_microseconds(at: datetime) -> int:
    """The microseconds from 1970 to a time."""
    return (at - _EPOCH) // _MICROSECOND


def read_instant(microseconds: int) -> datetime:
    """The time that so many microseconds after 1970 is."""
    return _EPOCH + timedelta(microseconds=microseconds)
