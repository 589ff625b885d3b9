"""Bounds on time, with no more measuring than decides them."""

from __future__ import annotations

from collections.abc import Callable

_FRAMES = 40


def is_within(bound: float, measure: Callable[[], float], *, tries: int = 3) -> bool:
    """Whether the least of so many measurements, in seconds, is below a bound: one that is, decides it.

    CPython keeps frames in pieces of 16 KiB, and a loop whose calls cross the end of a piece maps and unmaps the next
    one each time, which can double its time. So each try stands at another depth of the stack.
    """
    return any(_measure_at(_FRAMES * number, measure) < bound for number in range(tries))


def _measure_at(depth: int, measure: Callable[[], float]) -> float:
    return _measure_at(depth - 1, measure) if depth else measure()
