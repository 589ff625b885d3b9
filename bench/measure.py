"""Measuring two callables side by side: interleaved rounds, the median of their ratios, outputs compared before."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

ROUNDS = 7
MIN_SECONDS = 0.15


@dataclass(frozen=True)
class Goal:
    """What is to be reached: how many times as fast as the rival, or what share of its time at most."""

    id: str
    about: str
    required: float
    stretch: float
    is_share: bool = False

    def verdict(self, value: float) -> str:
        """`stretch`, `met` or `missed`."""
        if self.is_share:
            return "stretch" if value <= self.stretch else "met" if value <= self.required else "missed"
        return "stretch" if value >= self.stretch else "met" if value >= self.required else "missed"


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    goal: Goal
    value: float | None
    low: float | None = None
    high: float | None = None
    remark: str = ""

    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        goal = self.goal
        sign = "<=" if goal.is_share else ">="
        if self.value is None:
            return (
                goal.id,
                goal.about,
                "not measured",
                "",
                f"{sign} {goal.required:g}",
                f"{goal.stretch:g}",
                self.remark,
            )
        spread = f"{self.low:.2f}-{self.high:.2f}" if self.low is not None and self.high is not None else ""
        verdict = goal.verdict(self.value)
        return (
            goal.id,
            goal.about,
            f"{self.value:.2f}",
            spread,
            f"{sign} {goal.required:g}",
            f"{goal.stretch:g}",
            f"{verdict}{'; ' if self.remark else ''}{self.remark}",
        )


def compare(
    goal: Goal,
    ours: Callable[[Any], object],
    rival: Callable[[Any], object],
    inputs: Sequence[Any],
    *,
    agree: Callable[[Any], bool] | None = None,
    remark: str = "",
) -> Row:
    """Time both over all inputs in interleaved rounds.

    Args:
        goal: what to reach; where it is a share, the value is our time by the rival's, else the rival's by ours.
        ours, rival: called with each input.
        inputs: the same for both.
        agree: called with each input before anything is timed; one False makes the row worth nothing.
        remark: said beside the verdict.
    """
    if agree is not None:
        wrong = [one for one in inputs if not agree(one)]
        if wrong:
            return Row(
                goal, 0.0, remark=f"the outputs differ on {len(wrong)} of {len(inputs)} inputs: {wrong[0]!r:.80}"
            )
    repeat = max(1, math.ceil(MIN_SECONDS / max(_time(rival, inputs, 1), 1e-6)))
    ratios, spent = [], []
    for _ in range(ROUNDS):
        mine, theirs = _time(ours, inputs, repeat), _time(rival, inputs, repeat)
        ratios.append(mine / theirs if goal.is_share else theirs / mine)
        spent.append((mine / repeat / len(inputs) * 1e6, theirs / repeat / len(inputs) * 1e6))
    told = f"{median(pair[0] for pair in spent):.1f} v {median(pair[1] for pair in spent):.1f} us"
    return Row(goal, median(ratios), min(ratios), max(ratios), f"{told}{'; ' if remark else ''}{remark}")


def summarise(goal: Goal, pairs: Sequence[tuple[float, float]], *, remark: str = "") -> Row:
    """A row of rounds that were timed elsewhere.

    Args:
        goal: what to reach; where it is a share, the value is our time by the rival's, else the rival's by ours.
        pairs: seconds, ours and the rival's, of each round.
        remark: said beside the verdict.
    """
    ratios = [ours / theirs if goal.is_share else theirs / ours for ours, theirs in pairs]
    told = f"{median(pair[0] for pair in pairs):.2f} v {median(pair[1] for pair in pairs):.2f} s"
    return Row(goal, median(ratios), min(ratios), max(ratios), f"{told}{'; ' if remark else ''}{remark}")


def _time(call: Callable[[Any], object], inputs: Sequence[Any], repeat: int) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(repeat):
            for one in inputs:
                call(one)
        return time.perf_counter() - start
    finally:
        gc.enable()


def find_exponent(
    call: Callable[[str], object], make: Callable[[int], str], sizes: Sequence[int]
) -> tuple[float, float]:
    """How time grows with size: the exponent over the whole range, and the milliseconds of the largest.

    A fixed cost for each call makes the exponent look smaller, never larger.
    """
    times = []
    for size in sizes:
        text = make(size)
        call(text)
        repeat = max(1, 200_000 // max(size, 1) // 4)
        times.append(min(_time(call, [text], repeat) / repeat for _ in range(3)))
    return math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0]), times[-1] * 1000


def time_call(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """The seconds that a call takes by a clock."""
    start = clock()
    call()
    return clock() - start


def write_table(rows: Sequence[Row]) -> str:
    """The rows as an aligned table."""
    head = ("goal", "what", "measured", "spread", "required", "stretch", "verdict")
    return align([head, *(row.cells() for row in rows)])


def align(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells, each as wide as the widest of its column."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
