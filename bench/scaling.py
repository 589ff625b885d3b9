"""`python -m bench.scaling`: what a filled database takes, measured, and what that makes of up to ten billion messages.

Bytes and processor time are those of the second of two logs that the product itself reads, so that what is there once
counts for nothing. Of questions the blocks of 8 kB are counted that the database looks at, as messages are copied to
become more: unlike a time that does not depend on what else the machine does. They grow by some power of the number of
messages, which is carried on. What is measured and what is extrapolated stand apart. No partition, no shard and no
replica is in it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .installation import Installation
from .logs import SESSIONS, Log
from .product import Product, enter_product
from .searching import TERMS, plant, time_statements

GROUPS = {
    "messages": ("threads_message",),
    "their exact bytes": ("intake_record", "intake_sighting", "intake_scaffold"),
    "findings": ("audit_finding", "audit_examination"),
}
REST = "all else"
QUESTIONS = ("one common word", "a rare word", "a name", "a path", "only old messages", "a miss")
DECADES = tuple(10**power for power in range(6, 11))
MEMORY_GB = 64
CALLS = 5
# Nothing that is measured: what a good disk takes for a block that is not in memory.
READ_S = 0.0001


@dataclass(frozen=True)
class Sizes:
    """Of a group of tables the rows, and the bytes of these and of their indexes."""

    rows: float
    data: float
    indexes: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill, measure, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000, help="of a log (default 10,000)")
    parser.add_argument("--copies", type=int, default=16, help="how often messages are copied at most (default 16)")
    options = parser.parse_args(arguments)
    if options.records < 1 or options.copies < 4:  # three steps, each twice the one before
        parser.error("at least one record, and four copies")
    with Installation() as installation, enter_product(installation) as product:
        print(f"{product.tell_settings()}\n", flush=True)
        each, spent_s = measure_message(product, options.records)
        write_measured(each, spent_s)
        blocks = measure_questions(product, options.records, [options.copies // part for part in (4, 2, 1)])
    write_questions(blocks)
    write_extrapolated(each, spent_s, blocks)
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


def measure_questions(product: Product, records: int, steps: Sequence[int]) -> dict[str, list[tuple[int, int]]]:
    """Of each question, at each step, the number of messages and the blocks that its statements look at."""
    product.clear()
    blocks: dict[str, list[tuple[int, int]]] = {name: [] for name in QUESTIONS}
    for step in steps:
        count = plant(product, step * records, records=records)
        print(f"scaling: {count:,} messages", file=sys.stderr, flush=True)
        for name, held in blocks.items():
            held.append((count, count_blocks(product, TERMS[name])))
    for name in QUESTIONS:
        print(f"scaling: {name}: {time_statements(product, TERMS[name]).p50:.1f} ms", file=sys.stderr, flush=True)
    return blocks


def count_blocks(product: Product, query: str) -> int:
    """How many blocks are looked at to find a search's first page of messages, in tries that were given up too."""
    from inspector.pages.search import PAGE_ROWS
    from inspector.search.selectors import find_messages

    counts = []
    for _ in range(CALLS):
        before = _read_looked_at(product)
        find_messages(workspace=product.workspace, query=query, limit=PAGE_ROWS + 1)
        counts.append(_read_looked_at(product) - before)
    return int(median(counts))


def _read_looked_at(product: Product) -> int:
    product.execute("SELECT pg_stat_force_next_flush()")
    ((count,),) = product.execute("SELECT sum(hits + reads) FROM pg_stat_get_backend_io(pg_backend_pid())")
    return int(count)


def find_power(blocks: Sequence[tuple[int, int]]) -> float:
    """By which power of the number of messages the blocks grew, from the first step to the last; 0 at least."""
    (few, before), (many, after) = blocks[0], blocks[-1]
    return max(0.0, math.log(after / before) / math.log(many / few))


def write_measured(each: dict[str, Sizes], spent_s: float) -> None:
    """The first table."""
    print(f"Measured: a message takes {1000 * spent_s:.2f} ms of processor time, and\n")
    print("| | rows | bytes | bytes of indexes |\n|---|---|---|---|")
    for group, size in each.items():
        print(f"| {group} | {size.rows:.2f} | {size.data:,.0f} | {size.indexes:,.0f} |", flush=True)


def write_questions(blocks: dict[str, list[tuple[int, int]]]) -> None:
    """The second part of what is measured."""
    counts = [count for count, _ in next(iter(blocks.values()))]
    print("\nMeasured: blocks that the statements of a search's first page look at\n")
    print(f"| | {' | '.join(f'{count:,}' for count in counts)} | power |\n|---|{'---|' * (len(counts) + 1)}")
    for name, held in blocks.items():
        print(f"| {name} | {' | '.join(f'{looked:,}' for _, looked in held)} | {find_power(held):.2f} |")


def write_extrapolated(each: dict[str, Sizes], spent_s: float, blocks: dict[str, list[tuple[int, int]]]) -> None:
    """What was not run."""
    rows, data, indexes = (sum(getattr(size, part) for size in each.values()) for part in Sizes.__annotations__)
    print(
        f"\nExtrapolated: straight lines, and those powers; seconds where each block is read in {READ_S * 1e3:g} ms\n"
    )
    names = "".join(f" | {name}, s" for name in blocks)
    print(f"| messages | rows | data, GB | indexes, GB | × {MEMORY_GB} GB of memory | core-hours{names} |")
    print(f"|---|---|---|---|---|---|{'---|' * len(blocks)}")
    for count in DECADES:
        spent = [held[-1][1] * (count / held[-1][0]) ** find_power(held) * READ_S for held in blocks.values()]
        gigabytes = [count * size / 1e9 for size in (data, indexes)]
        print(
            f"| {count:,} | {count * rows:,.0f} | {gigabytes[0]:,.0f} | {gigabytes[1]:,.0f} "
            f"| {gigabytes[1] / MEMORY_GB:,.1f} | {count * spent_s / 3600:,.0f} "
            f"| {' | '.join(f'{seconds:,.2f}' for seconds in spent)} |"
        )


if __name__ == "__main__":
    sys.exit(main())
