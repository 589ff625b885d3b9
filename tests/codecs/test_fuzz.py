"""The short form of `make fuzz`: a few thousand inputs a dialect; the long form has two million."""

from __future__ import annotations

from tests.each import for_each

from .fuzzing import MAX_MS, SOUP, fuzz


@for_each(list(SOUP))
def test_nothing_raises_and_nothing_is_slow(dialect: str) -> None:
    report = fuzz(dialect, 1500, seed=1)
    assert report.inputs == 1500
    assert report.failures == []
    assert report.slowest_ms <= MAX_MS, report.slowest
