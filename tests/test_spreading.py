"""The order in which workers begin the tests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest

from .each import for_each
from .spreading import order_places, spread


@dataclass(frozen=True)
class Item:
    """A test as far as its order goes."""

    nodeid: str
    seconds: float = 0
    waits: bool = False

    def get_closest_marker(self, name: str) -> Any:
        assert name == "long"
        return pytest.mark.long(seconds=self.seconds, waits=self.waits).mark if self.seconds else None


SHORT = [Item(f"test_short.py::test_{number}") for number in range(10)]
LONGEST = Item("test_a.py::test_longest", 90)
LONG = Item("test_b.py::test_long", 50)
PAIR = [Item("test_c.py::test_first", 20), Item("test_c.py::test_second", 20)]
WAITING = Item("test_d.py::test_waiting", 200, waits=True)
EVERY = [*SHORT, *PAIR, WAITING, LONG, LONGEST]


def order(items: list[Item], workers: int) -> list[Item]:
    return cast(list[Item], spread(cast(list[pytest.Item], items), workers))


def test_half_of_the_workers_begin_with_what_waits_and_the_others_with_as_much_work_each() -> None:
    """As xdist cuts the list: of fifteen tests three workers get five each."""
    ordered = order(EVERY, 3)
    assert ordered[0] == WAITING
    assert ordered[5] == LONGEST
    assert ordered[10:13] == [LONG, *PAIR]


def test_the_long_tests_of_a_module_stay_together_and_in_their_order() -> None:
    ordered = order([PAIR[0], *SHORT, PAIR[1], LONGEST], 4)
    assert ordered[ordered.index(PAIR[0]) + 1] == PAIR[1]


def test_what_is_not_long_keeps_its_order() -> None:
    assert [item for item in order(EVERY, 4) if not item.seconds] == SHORT


@for_each(product(range(2, 9), [0, 1, 10]))
def test_every_test_is_there_once(workers: int, short: int) -> None:
    items = [*SHORT[:short], *PAIR, WAITING, LONG, LONGEST]
    ordered = order(items, workers)
    assert len(ordered) == len(items)
    assert set(ordered) == set(items)


def test_files_come_before_the_folders_beside_them_and_what_is_in_these(tmp_path: Path) -> None:
    for name in ("a/b/test_d.py", "a/b/test_e.py", "a/test_c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    named = ["a/b/test_d.py::test_one", "a/b", "a/test_c.py", "a", "a/b/test_e.py"]
    expected = ["a/test_c.py", "a", "a/b/test_d.py::test_one", "a/b/test_e.py", "a/b"]
    assert order_places(named, tmp_path) == expected
