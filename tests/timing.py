"""Bounds on time, with no more measuring than decides them."""

from __future__ import annotations

from collections.abc import Callable


def is_within(bound: float, measure: Callable[[], float], *, tries: int = 3) -> bool:
    """Whether the least of so many measurements, in seconds, is below a bound: one that is, decides it."""
    return any(measure() < bound for _ in range(tries))
