"""Giving freed memory back: where the allocator can, seldom, and never a reason to fail."""

from __future__ import annotations

import threading

from inspector import memory


class TestGiveBack:
    def test_asks_the_allocator_once_in_a_moment(self, monkeypatch):
        asked = []
        monkeypatch.setattr(memory, "_trim", asked.append)
        monkeypatch.setattr(memory, "_last", threading.local())
        memory.give_back()
        memory.give_back()
        assert asked == [0]

    def test_asks_again_after_a_while(self, monkeypatch):
        asked = []
        monkeypatch.setattr(memory, "_trim", asked.append)
        monkeypatch.setattr(memory, "_last", threading.local())
        monkeypatch.setattr(memory, "_EVERY_SECONDS", 0.0)
        memory.give_back()
        memory.give_back()
        assert asked == [0, 0]

    def test_where_the_allocator_has_no_such_call_nothing_happens(self, monkeypatch):
        monkeypatch.setattr(memory, "_trim", None)
        memory.give_back()

    def test_a_library_without_the_call_is_none(self, monkeypatch):
        def open_library(_name):
            raise OSError

        monkeypatch.setattr(memory.ctypes, "CDLL", open_library)
        assert memory._find_trim() is None
