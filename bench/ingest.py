"""Ingest beside PostgreSQL itself: P8 to P11 of the goals. Both sides write the same rows into the same tables.

A round empties the tables, lets the product take a log in and settle it, keeps the rows, empties the tables again, and
lets COPY write those rows. The product's time holds framing, reading, telling and outlining; COPY's nothing of it.
"""

from __future__ import annotations

import gc
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

from .growth import measure_growth, measure_memory
from .installation import Installation
from .logs import Log
from .measure import Goal, Row, summarise
from .posting import measure_posting
from .product import LOG_TABLES, Product, enter_product
from .workers import WorkerPool

P8 = Goal("P8", "ingest and settling v COPY of the same rows, 1 process", 2.0, 1.3, is_share=True)
P9 = Goal("P9", "the same, framed here and read and settled by 2 workers", 1.25, 0.95, is_share=True)
P10_BULK = Goal("P10", "insertion of finished rows alone v bulk_create of the same rows", 2, 2.5)
P10_SAVE = Goal("P10", "insertion of finished rows alone v save() of the same rows", 5, 8)
P11 = Goal("P11", "an identical file again v its first ingest", 1.0, 0.5, is_share=True)
FILES = 4
SAVED_ROWS = 1000


def measure_ingest(options: Namespace) -> Iterator[Row]:
    """Every row of the suite, or of the goals that were asked for."""
    wanted = set(options.only.split(",")) if options.only else {"P8", "P9", "P10", "P11", "P12", "P13", "P24"}
    with Installation() as installation:
        with enter_product(installation) as product:
            print(product.tell_settings(), file=sys.stderr)
            if wanted & {"P8", "P11"}:
                yield from measure_rounds(product, options)
            if "P9" in wanted:
                yield measure_workers(product, installation, options)
            if "P10" in wanted:
                yield from measure_writing(product, options)
            if "P12" in wanted:
                yield from measure_growth(product, options)
        if "P13" in wanted:
            yield from measure_memory(installation, options)
        if "P24" in wanted:
            yield from measure_posting(installation, options)


def measure_rounds(product: Product, options: Namespace) -> Iterator[Row]:
    """P8 and P11, in the same rounds."""
    pairs, again, framing_again = [], [], []
    stages: dict[str, float] = {"framed and stored": 0.0, "read": 0.0, "settled": 0.0}
    for number in range(options.rounds):
        pieces = list(Log(seed=number, records=options.records).pieces())
        product.clear()
        framed = _time(lambda pieces=pieces: product.take(pieces))
        read = _time(lambda: product.work(kinds=("ingest",)))
        settled = _time(product.work)
        rows = product.count_rows()
        second_framed = _time(lambda pieces=pieces: product.take(pieces))
        second = second_framed + _time(product.work)
        grown = {table: count for table, count in product.count_rows().items() if rows[table] != count}
        if set(grown) - {"intake_delivery", "intake_sighting", "intake_scaffold", "intake_job"}:
            yield Row(P11, None, remark=f"the same file added rows: {grown}")
            return
        product.clear()
        product.take(pieces)
        product.work()
        # What is announced depends on when the work was done: COPY writes what was there this time.
        dumped, rows = product.dump(), product.count_rows()
        product.clear()
        floor = _time(lambda dumped=dumped: product.copy_back(dumped))
        if product.count_rows() != rows:
            yield Row(P8, None, remark="COPY wrote other rows than the product")
            return
        pairs.append((framed + read + settled, floor))
        again.append((second, framed + read + settled))
        framing_again.append(second_framed / framed)
        for name, seconds in zip(stages, (framed, read, settled), strict=True):
            stages[name] += seconds / options.rounds / options.records * 1e6
    told = ", ".join(f"{name} {spent:.0f}" for name, spent in stages.items())
    yield summarise(P8, pairs, remark=f"ms per 1,000 records: {told}")
    median_again = sorted(framing_again)[len(framing_again) // 2]
    yield summarise(P11, again, remark=f"framing and storing alone {median_again:.2f}; no new record or message")


def measure_workers(product: Product, installation: Installation, options: Namespace) -> Row:
    """P9: four files; this process frames them while two others read and settle what is there already."""
    pairs = []
    with WorkerPool(installation, count=2) as pool:
        for number in range(options.rounds):
            logs = [
                list(Log(seed=1000 + number * FILES + part, records=options.records // FILES).pieces())
                for part in range(FILES)
            ]
            product.clear()
            start = time.perf_counter()
            pool.go()
            for part, pieces in enumerate(logs):
                product.take(pieces, name=f"bench-{part}.jsonl")
            product.wait_until_done()
            ours = time.perf_counter() - start
            pool.rest()
            dumped = product.dump()
            product.clear()
            pairs.append((ours, _time(lambda dumped=dumped: product.copy_back(dumped))))
    return summarise(P9, pairs)


def measure_writing(product: Product, options: Namespace) -> Iterator[Row]:
    """P10: the insertion of rows beside Django's ways, on the tables that hold most of them.

    Both sides are given the same finished rows: no framing, reading, telling or settling is in either time. What the
    product takes for all of it is P8.
    """
    from django.apps import apps
    from django.db import transaction

    from inspector.database import insert_rows

    models = {model._meta.db_table: model for model in apps.get_models() if model._meta.db_table in LOG_TABLES}
    product.clear()
    product.take(Log(seed=77, records=options.records).pieces())
    product.work()
    held = {table: list(models[table].objects.order_by("pk")) for table in LOG_TABLES}
    for goal, most in ((P10_BULK, None), (P10_SAVE, SAVED_ROWS)):
        chosen = _choose_rows(held, most)

        def write_ours(chosen: dict[str, list[Any]] = chosen) -> None:
            with transaction.atomic():
                for table, rows in chosen.items():
                    fields = models[table]._meta.concrete_fields
                    values = ([_adapt(field, getattr(row, field.attname)) for field in fields] for row in rows)
                    key = (models[table]._meta.pk.column,)
                    insert_rows(
                        model=models[table], columns=[field.column for field in fields], rows=values, order_by=key
                    )

        def bulk_create(chosen: dict[str, list[Any]] = chosen) -> None:
            with transaction.atomic():
                for table, rows in chosen.items():
                    models[table].objects.bulk_create(rows, batch_size=1000)

        def save(chosen: dict[str, list[Any]] = chosen) -> None:
            with transaction.atomic():
                for rows in chosen.values():
                    for row in rows:
                        row.save(force_insert=True)

        theirs = bulk_create if goal is P10_BULK else save
        pairs = []
        for _ in range(options.rounds):
            product.clear()
            ours = _time(write_ours)
            counts = product.count_rows()
            product.clear()
            pairs.append((ours, _time(theirs)))
            if product.count_rows() != counts:
                yield Row(goal, None, remark="the two wrote different rows")
                return
        yield summarise(goal, pairs, remark=f"{sum(map(len, chosen.values())):,} rows of {len(chosen)} tables")


def _choose_rows(held: dict[str, list[Any]], most: int | None) -> dict[str, list[Any]]:
    """All rows, or the records up to a number with what belongs to them."""
    if most is None:
        return held
    records = {row.pk for row in held["intake_record"][:most]}
    belonging = {
        "intake_record": lambda row: row.pk in records,
        "intake_sighting": lambda row: row.record_id in records,
        "threads_message": lambda row: row.record_id in records,
    }
    return {table: [row for row in rows if belonging.get(table, lambda _: True)(row)] for table, rows in held.items()}


def _adapt(field: Any, value: Any) -> Any:
    from django.db import connection

    return field.get_db_prep_save(value, connection)


def _time(call: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start
    finally:
        gc.enable()
