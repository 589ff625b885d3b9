"""Timestamps from the database: the same instants as Django's loader reads, in UTC, on every connection."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import DataError, connection
from psycopg.pq import Format

from inspector.database import IsoLoader

pytestmark = pytest.mark.django_db

INSTANTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2026, 11, 1, 0, 10, 10, tzinfo=UTC),
    datetime(2026, 11, 1, 0, 10, 10, 120, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]


def read(text: str) -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        return cursor.fetchone()[0]  # type: ignore[index,no-any-return]


@pytest.mark.parametrize("instant", INSTANTS, ids=str)
def test_an_instant_comes_back_as_it_was_given(instant: datetime) -> None:
    found = read(instant.isoformat())
    assert found == instant
    assert found.utcoffset() == timedelta(0)


def test_the_zone_that_it_was_given_in_makes_no_difference() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE 'Asia/Kathmandu'")
        cursor.execute("SELECT '2026-11-01 00:10:10+00'::timestamptz")
        assert cursor.fetchone() == (datetime(2026, 11, 1, 0, 10, 10, tzinfo=UTC),)
    assert read("2026-11-01 02:10:10+02") == read("2026-11-01 00:10:10+00")


def test_every_connection_has_the_loader() -> None:
    read("2026-11-01 00:10:10+00")
    oid = connection.connection.adapters.types["timestamptz"].oid
    assert issubclass(connection.connection.adapters.get_loader(oid, Format.TEXT), IsoLoader)


@pytest.mark.parametrize("text", ["infinity", "4713-01-01 BC"])
def test_what_python_has_no_time_for_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        read(text)
