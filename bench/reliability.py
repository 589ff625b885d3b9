"""What must never happen, counted: R5, R7 and R12 of the goals. R1 to R3 are the crash harness's."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from .installation import Installation
from .measure import Row
from .overlapping import measure_overlapping
from .poison import measure_poison
from .product import enter_product
from .roundtrip import measure_roundtrip

GOALS = {"R5", "R7", "R12"}


def measure_reliability(options: Namespace) -> Iterator[Row]:
    """Every row of the suite, or of the goals that were asked for."""
    wanted = set(options.only.split(",")) if options.only else GOALS
    with Installation(variables={"LIMIT_REQUESTS_PER_MINUTE": "0"}) as installation:
        with enter_product(installation) as product:
            if "R5" in wanted:
                yield from measure_overlapping(product, installation, shuffles=options.shuffles)
            if "R12" in wanted:
                yield from measure_roundtrip(product, installation)
        if "R7" in wanted:
            yield from measure_poison(installation)
