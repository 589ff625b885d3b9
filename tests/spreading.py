"""Who begins with what: the long tests are dealt out among the workers, those that wait apart from those that work.

A worker gets a stretch of the list, and whoever has done its own takes the end of another's. Long tests at the end of
the list would be begun last, and one of them would go on alone. Tests that start, install and kill whole processes wait
for the disk and for each other more than they use a processor: beside each other they leave it idle, so that half of
the workers begin with them and the others with those that compute.

They come before tests that a rollback undoes, though theirs empty the tables: no test needs a row that a migration
made, and whoever takes the end of another's stretch has them in that order anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pytest

AnyItem = TypeVar("AnyItem", bound=pytest.Item)


def order_places(places: Iterable[str], folder: Path) -> list[str]:
    """What was named on the command line in this folder, files and outer folders first.

    A file makes pytest go through its folder anew: the tests of a folder in that one, where it comes after the file and
    had come before, would not find the fixtures of their conftest.
    """

    def rank(place: str) -> tuple[int, bool]:
        path = folder / place.partition("::")[0]
        return len(path.parts) - path.is_file(), path.is_dir()

    return sorted(places, key=rank)


def spread(items: Sequence[AnyItem], count: int) -> list[AnyItem]:
    """The same tests in the order in which `count` workers begin with the long ones, each with about as much of them.

    What is long is marked so, with about how many seconds it takes and whether it waits for most of them:
    `@pytest.mark.long(seconds=40, waits=True)`. The long tests of a module stay together and in their order: they may
    share what takes long to make.
    """
    waiting: dict[str, list[AnyItem]] = defaultdict(list)
    working: dict[str, list[AnyItem]] = defaultdict(list)
    others = []
    for item in items:
        mark = item.get_closest_marker("long")
        if mark is None:
            others.append(item)
        else:
            modules = waiting if mark.kwargs.get("waits") else working
            modules[item.nodeid.partition("::")[0]].append(item)
    half = count // 2
    return _join([*_deal(waiting, half), *_deal(working, count - half)], others)


def _deal(modules: Mapping[str, list[AnyItem]], count: int) -> list[list[AnyItem]]:
    """Each module to whoever has the least, the longest first."""
    seconds = {
        name: sum(mark.kwargs["seconds"] for item in items if (mark := item.get_closest_marker("long")))
        for name, items in modules.items()
    }
    shares: list[list[AnyItem]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for name in sorted(modules, key=lambda name: (-seconds[name], name)):
        least = loads.index(min(loads))
        loads[least] += seconds[name]
        shares[least] += modules[name]
    return shares


def _join(shares: Sequence[Sequence[AnyItem]], others: Sequence[AnyItem]) -> list[AnyItem]:
    """Each share at the beginning of a stretch, as xdist cuts them: about equal in number."""
    rest = iter(others)
    left = sum(map(len, shares)) + len(others)
    joined: list[AnyItem] = []
    for number, share in enumerate(shares):
        size = left // (len(shares) - number)
        stretch = [*share, *islice(rest, max(0, size - len(share)))]
        left -= len(stretch)
        joined += stretch
    return [*joined, *rest]
