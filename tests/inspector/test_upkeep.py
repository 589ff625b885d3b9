"""Freed memory is given back, circles are looked for seldom, and tables that have grown are analyzed, once."""

from __future__ import annotations

import gc
import runpy
import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from inspector import upkeep


class TestGiveBack:
    @pytest.mark.parametrize(("seconds", "expected"), [(upkeep._EVERY_SECONDS, [0]), (0.0, [0, 0])])
    def test_asks_the_allocator_once_in_a_moment_and_again_after_a_while(self, monkeypatch, seconds, expected):
        asked = []
        monkeypatch.setattr(upkeep, "_trim", asked.append)
        monkeypatch.setattr(upkeep, "_last", threading.local())
        monkeypatch.setattr(upkeep, "_EVERY_SECONDS", seconds)
        upkeep.give_back()
        upkeep.give_back()
        assert asked == expected

    def test_where_the_allocator_has_no_such_call_nothing_happens(self, monkeypatch):
        monkeypatch.setattr(upkeep, "_trim", None)
        upkeep.give_back()

    def test_a_library_without_the_call_is_none(self, monkeypatch):
        def open_library(_name):
            raise OSError

        monkeypatch.setattr(upkeep.ctypes, "CDLL", open_library)
        assert upkeep._find_trim() is None


@pytest.fixture
def collector() -> Iterator[None]:
    """The collector as it is by default, and afterwards as it was."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


class TestCollectSeldom:
    def test_what_is_there_is_passed_over_and_circles_are_still_found(self, collector: None) -> None:
        upkeep.collect_seldom()
        frozen = gc.get_freeze_count()
        assert frozen > 0
        assert gc.get_threshold()[0] > 700
        # What is frozen may still be freed by whoever held it, so that the count may fall; these would make it rise.
        fresh = [[number] for number in range(1000)]
        upkeep.collect_seldom()
        assert gc.get_freeze_count() <= frozen, "once for a process"
        assert len(fresh) == 1000
        circle: list[object] = []
        circle.append(circle)
        del circle
        assert gc.collect() >= 1

    def test_so_it_does_in_what_serves_pages(self, collector: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("django.core.wsgi.get_wsgi_application", object)
        runpy.run_module("inspector.wsgi")
        assert gc.get_threshold()[0] > 700


def look_again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(upkeep, "_looked", float("-inf"))
    return upkeep.analyze_grown()


@pytest.mark.django_db
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
