"""`python -m bench.scaling`: what a filled database takes, measured, and what that makes of up to ten billion messages.

Bytes and processor time are those of the second of two logs that the product itself reads, so that what is there once
counts for nothing. Questions are timed as messages are copied to become more, a step at a time; from step to step a
time grows by some power of their number, and the last such power is carried on. What is measured and what is
extrapolated stand in two tables. No partition, no shard and no replica is in it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from .installation import Installation
from .logs import SESSIONS, Log
from .product import Product, enter_product
from .searching import SEED_RECORDS, TERMS, plant, time_statements

GROUPS = {
    "messages": ("threads_message",),
    "their exact bytes": ("intake_record", "intake_sighting", "intake_scaffold"),
    "findings": ("audit_finding", "audit_examination"),
}
REST = "all else"
QUESTIONS = ("one common word", "a rare word", "a name", "a path", "only old messages", "a miss")
DECADES = tuple(10**power for power in range(6, 11))
MEMORY_GB = 64


@dataclass(frozen=True)
class Sizes:
    """Of a group of tables the rows, and the bytes of these and of their indexes."""

    rows: float
    data: float
    indexes: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill, measure, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000, help="of each of the two logs (default 10,000)")
    parser.add_argument("--copies", type=int, default=16, help="how often messages are copied at most (default 16)")
    options = parser.parse_args(arguments)
    if options.records < 1 or options.copies < 4:  # three steps, each twice the one before
        parser.error("at least one record, and four copies")
    with Installation() as installation, enter_product(installation) as product:
        print(f"{product.tell_settings()}\n", flush=True)
        each, spent_s = measure_message(product, options.records)
        write_measured(each, spent_s)
        times = measure_questions(product, [options.copies // 4, options.copies // 2, options.copies])
    write_questions(times)
    write_extrapolated(each, spent_s, times)
    return 0


def measure_message(product: Product, records: int) -> tuple[dict[str, Sizes], float]:
    """What a message adds to each group of tables, and the seconds of processor time that it takes."""
    marks = []
    for number in range(2):
        log = Log(seed=50_000 + number, records=records, after_s=number * records, sessions_from=number * SESSIONS)
        pieces = list(log.pieces())
        before = product.count_processor_seconds()
        product.take(pieces, name=f"scaling-{number}.jsonl")
        product.work()
        spent_s = product.count_processor_seconds() - before
        marks.append((_read_sizes(product), spent_s))
    (first, _), (second, spent_s) = marks
    added = second["messages"].rows - first["messages"].rows
    each = {
        group: Sizes(*((getattr(size, part) - getattr(first[group], part)) / added for part in Sizes.__annotations__))
        for group, size in second.items()
    }
    return each, spent_s / added


def _read_sizes(product: Product) -> dict[str, Sizes]:
    product.execute("VACUUM ANALYZE")
    sizes = dict.fromkeys((*GROUPS, REST), Sizes(0, 0, 0))
    for name, data, indexes in product.execute(
        "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    ):
        group = next((group for group, tables in GROUPS.items() if name in tables), REST)
        (rows,) = product.execute(f'SELECT count(*) FROM "{name}"')[0]
        held = sizes[group]
        sizes[group] = Sizes(held.rows + rows, held.data + data, held.indexes + indexes)
    return sizes


def measure_questions(product: Product, steps: Sequence[int]) -> dict[str, list[tuple[int, float]]]:
    """Of each question, at each step, the number of messages and the median milliseconds of its SQL."""
    product.clear()
    times: dict[str, list[tuple[int, float]]] = {name: [] for name in QUESTIONS}
    for step in steps:
        count = plant(product, step * SEED_RECORDS)
        print(f"scaling: {count:,} messages", file=sys.stderr, flush=True)
        for name, held in times.items():
            held.append((count, time_statements(product, TERMS[name]).p50))
    return times


def find_power(times: Sequence[tuple[int, float]]) -> float:
    """By which power of the number of messages a time grew from the step before the last to the last; 0 at least."""
    (few, before), (many, after) = times[-2:]
    return max(0.0, math.log(after / before) / math.log(many / few))


def write_measured(each: dict[str, Sizes], spent_s: float) -> None:
    """The first table."""
    print(f"Measured: a message takes {1000 * spent_s:.2f} ms of processor time, and\n")
    print("| | rows | bytes | bytes of indexes |\n|---|---|---|---|")
    for group, size in each.items():
        print(f"| {group} | {size.rows:.2f} | {size.data:,.0f} | {size.indexes:,.0f} |", flush=True)


def write_questions(times: dict[str, list[tuple[int, float]]]) -> None:
    """The second part of what is measured."""
    counts = [count for count, _ in next(iter(times.values()))]
    print("\nMeasured: milliseconds of the SQL of a search's first page, median\n")
    print(f"| | {' | '.join(f'{count:,}' for count in counts)} | power |\n|---|{'---|' * (len(counts) + 1)}")
    for name, held in times.items():
        print(f"| {name} | {' | '.join(f'{spent:.1f}' for _, spent in held)} | {find_power(held):.2f} |")


def write_extrapolated(each: dict[str, Sizes], spent_s: float, times: dict[str, list[tuple[int, float]]]) -> None:
    """What was not run."""
    rows, data, indexes = (sum(getattr(size, part) for size in each.values()) for part in Sizes.__annotations__)
    print("\nExtrapolated: a straight line for rows, bytes and hours, the last power for seconds\n")
    names = "".join(f" | {name}, s" for name in times)
    print(f"| messages | rows | data, GB | indexes, GB | × {MEMORY_GB} GB of memory | core-hours{names} |")
    print(f"|---|---|---|---|---|---|{'---|' * len(times)}")
    for count in DECADES:
        spent = [held[-1][1] / 1000 * (count / held[-1][0]) ** find_power(held) for held in times.values()]
        told = " | ".join(f"{seconds:,.2f}" for seconds in spent)
        gigabytes = [count * size / 1e9 for size in (data, indexes)]
        print(
            f"| {count:,} | {count * rows:,.0f} | {gigabytes[0]:,.0f} | {gigabytes[1]:,.0f} "
            f"| {gigabytes[1] / MEMORY_GB:,.1f} | {count * spent_s / 3600:,.0f} | {told} |"
        )


if __name__ == "__main__":
    sys.exit(main())
