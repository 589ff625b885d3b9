"""What one message more costs where there are ten times as many: settling it, drawing its trace, examining it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from .measure import Goal, Row
from .product import Product

ADDED: Final = Goal(
    "late", "{step} after one {kind} {where}, in {large:,} v {small:,} messages", 1.5, 1.1, is_share=True
)
# Both so long that they are many blocks.
COUNTS: Final = (5_000, 50_000)
ROUNDS: Final = 5
START: Final = 1_763_715_600
# One of so many lines of CLowl answers a request that has not come.
LOST: Final = 200


class Case(NamedTuple):
    """Messages of one conversation.

    `held` gives the line of the so manieth. `added` are what may come after so many: its name, and its line from the
    so manieth second and a number that no other has.
    """

    kind: str
    steps: tuple[str, ...]
    held: Callable[[int], bytes]
    added: dict[str, Callable[[int, int], bytes]]


def write(second: int, name: str) -> bytes:
    """A line of the one conversation and trace of these measures."""
    said = {"raw": f"Line {name}.", "id": name, "conversation": "c", "from": "a", "to": ["b"], "trace": "t"}
    return json.dumps(said | {"at": START + second}).encode() + b"\n"


def write_clowl(second: int, name: str, answered: str | None = None) -> bytes:
    """A request in CLowl, or an answer to one: each of both establishes how its task stands."""
    pair = {"from": "a", "to": "b"} if answered is None else {"from": "b", "to": "a", "pid": answered}
    said = {"clowl": "0.2", "mid": name, "cid": "c", "p": "REQ" if answered is None else "DONE", **pair}
    return json.dumps(said | {"ts": START + second, "body": {"t": "work", "d": {}}}).encode() + b"\n"


def write_exchanged(number: int) -> bytes:
    """A line of an exchange in CLowl: each odd one answers the one before; some answer what has not come."""
    if number % LOST == LOST - 1:
        return write_clowl(10 + number, f"m{number}", f"lost {number // LOST}")
    return write_clowl(10 + number, f"m{number}", f"m{number - 1}" if number % 2 else None)


CASES: Final = (
    Case(
        "message",
        ("settle", "trace", "examine"),
        lambda number: write(10 + number, f"m{number}"),
        {
            "near the front": lambda _, number: write(11, f"near the front {number}"),
            "late by ten": lambda count, number: write(count, f"late by ten {number}"),
            "at the end": lambda count, number: write(10 + count + number, f"at the end {number}"),
        },
    ),
    # Half of them ask and half of them answer.
    Case(
        "message of CLowl",
        ("settle",),
        write_exchanged,
        {
            "near the front": lambda _, number: write_clowl(11, f"front {number}"),
            "near the front that is answered at the end": (
                lambda count, number: write_clowl(11, f"lost {count // LOST - 1 - number}")
            ),
            "late by ten": lambda count, number: write_clowl(count, f"late {number}"),
            "that asks": lambda count, number: write_clowl(10 + count + number, f"new {number}"),
            "that answers the first": lambda count, number: write_clowl(20 + count + number, f"old {number}", "m0"),
        },
    ),
)


def measure_added(product: Product) -> Iterator[Row]:
    """Each step of the work after one message more: the least of five times on the clock."""
    for case in CASES:
        spent: dict[tuple[int, str, str], float] = {}
        for count in COUNTS:
            product.clear()
            product.take([case.held(number) for number in range(count)])
            product.work()
            for where, add in case.added.items():
                times: dict[str, list[float]] = {step: [] for step in case.steps}
                for number in range(ROUNDS):
                    product.take([add(count, number)])
                    product.work(kinds=("ingest",))
                    for step in case.steps:
                        times[step].append(_time_work(product, step))
                spent |= {(count, where, step): min(times[step]) for step in case.steps}
        small, large = COUNTS
        for step in case.steps:
            for where in case.added:
                few, many = spent[small, where, step], spent[large, where, step]
                about = ADDED.about.format(step=step, kind=case.kind, where=where, large=large, small=small)
                goal = Goal(ADDED.id, about, ADDED.required, ADDED.stretch, ADDED.is_share)
                yield Row(goal, many / few, remark=f"{1000 * many:.0f} v {1000 * few:.0f} ms")


def _time_work(product: Product, step: str) -> float:
    start = time.perf_counter()
    product.work(kinds=(step,))
    return time.perf_counter() - start
