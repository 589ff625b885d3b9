"""Tables that have grown are analyzed, once."""

from __future__ import annotations

import pytest
from django.db import connection

from inspector import upkeep

pytestmark = pytest.mark.django_db


def look_again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(upkeep, "_looked", float("-inf"))
    return upkeep.analyze_grown()


def test_a_table_that_has_grown_is_analyzed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    look_again(monkeypatch)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE grown AS SELECT n, repeat('x', 500) AS text FROM generate_series(1, 3000) AS n")
        assert look_again(monkeypatch) == ["grown"]
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'grown'")
        assert cursor.fetchone() == (3000,)
        # What has not grown manifold since is left alone, and nobody looks twice in a second.
        assert look_again(monkeypatch) == []
        cursor.execute("INSERT INTO grown SELECT n, repeat('x', 500) FROM generate_series(1, 20000) AS n")
        assert upkeep.analyze_grown() == []
        assert look_again(monkeypatch) == ["grown"]
