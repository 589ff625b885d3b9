"""What must never happen, counted: P18, R5 to R7, R12, R14, R16, R18, R19, R23, R27, R28. R1 to R3: `bench.crash`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from .installation import Installation
from .large import measure_large
from .measure import Row
from .migrating import measure_migrating
from .overlapping import measure_overlapping
from .poison import measure_poison
from .product import enter_product
from .proofs import PROVED, measure_proofs
from .roundtrip import measure_roundtrip
from .slow import measure_slow

HURT = {"R5", "R7", "R12", "R27", "R28"}
GOALS = HURT | PROVED | {"R23"}


def measure_reliability(options: Namespace) -> Iterator[Row]:
    """Every row of the suite, or of the goals that were asked for."""
    wanted = set(options.only.split(",")) if options.only else GOALS
    if wanted & HURT:
        yield from _measure_hurt(wanted, shuffles=options.shuffles)
    if "R23" in wanted:
        yield from measure_migrating(options.messages)
    yield from measure_proofs(wanted, permutations=options.permutations)


def _measure_hurt(wanted: set[str], *, shuffles: int) -> Iterator[Row]:
    """What a running installation is put through."""
    with Installation(variables={"LIMIT_REQUESTS_PER_MINUTE": "0"}) as installation:
        with enter_product(installation) as product:
            if "R5" in wanted:
                yield from measure_overlapping(product, installation, shuffles=shuffles)
            if "R12" in wanted:
                yield from measure_roundtrip(product, installation)
        if "R7" in wanted:
            yield from measure_poison(installation)
        if "R27" in wanted:
            yield from measure_slow(installation)
        if "R28" in wanted:
            yield from measure_large(installation)
