"""`python -m bench.partitions`: what `manage.py partition_tables` changes, and the keys that lack a workspace then.

Messages are copied until eight workspaces share them evenly. The product's own search runs as it is; so do a COPY of
new messages and the removal of one workspace, which are undone. Then the large tables are put in eight partitions, and
the same is measured again.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, Final

from inspector.trail.partitions import LARGE

from .installation import Installation
from .product import Product, enter_product
from .reliability import write_meanwhile
from .scaling import QUESTIONS, count_blocks
from .searching import TERMS, copy_seed, make_workspace, plant, time_statements

WORKSPACES = PARTITIONS = 8
COPIED = 2_000
TURNS = 5
_KEYS: Final = """
WITH keys AS (
    SELECT t.oid, relname, CASE WHEN indisprimary THEN 'primary' ELSE 'unique' END AS kind, indkey::int2[] AS numbers
      FROM pg_index JOIN pg_class t ON t.oid = indrelid WHERE indisunique AND NOT relispartition
    UNION ALL
    SELECT t.oid, relname, 'foreign', conkey FROM pg_constraint JOIN pg_class t ON t.oid = conrelid
     WHERE contype = 'f' AND conparentid = 0 AND confrelid::regclass::text !~ '^accounts_'
), spelt AS (
    SELECT relname, kind, ARRAY(
        SELECT attname FROM unnest(numbers) WITH ORDINALITY AS held (number, place)
          JOIN pg_attribute ON attrelid = keys.oid AND attnum = number ORDER BY place) AS columns FROM keys
)
SELECT relname, string_agg(kind || ' (' || array_to_string(columns, ', ') || ')', '; ' ORDER BY kind, columns)
  FROM spelt WHERE 'workspace_id' <> ALL (columns) GROUP BY 1 ORDER BY 1
"""


def is_large(table: str) -> bool:
    """Whether a table grows with the messages, or with what is entered of them."""
    return table in LARGE or table.startswith("ledger_")


def list_keys(execute: Callable[[str], list[Any]]) -> str:
    """The keys of large tables that lack `workspace_id`, as a table; without foreign keys to accounts."""
    rows = [f"| `{table}` | {keys} |" for table, keys in execute(_KEYS) if is_large(table)]
    return "\n".join(("| table | keys without `workspace_id` |\n|---|---|", *rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill, measure, put in partitions, measure again, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000, help="of all workspaces (default 200,000)")
    parser.add_argument("--records", type=int, default=5_000, help="of the log that is copied (default 5,000)")
    options = parser.parse_args(arguments)
    with Installation() as installation, enter_product(installation) as product:
        copies = max(1, options.messages // WORKSPACES // options.records)
        plant(product, copies * options.records, records=options.records)
        # The product's own has as many, and one has words of its own.
        for workspace in (make_workspace(f"bench-{number}") for number in range(WORKSPACES - 2)):
            for copy in range(copies):
                copy_seed(product, copy, workspace=workspace)
        [(rows,)] = product.execute("SELECT count(*) FROM threads_message")
        print(f"\n{product.tell_settings()}; {rows:,} messages\n", flush=True)
        whole = measure(product)
        [(message,)] = product.execute("SELECT id FROM threads_message LIMIT 1")
        with write_meanwhile(installation, message) as waits:
            spent = partition()
        print(
            f"{spent:.1f} s for putting them in partitions; of {len(waits):,} changes of a message meanwhile", end=" "
        )
        print(f"the longest waited {max(waits):.2f} s\n\n{list_keys(product.execute)}\n", flush=True)
        parts = measure(product)
        print(f"| what | whole | {PARTITIONS} partitions |\n|---|---|---|")
        for what, figure in whole.items():
            print(f"| {what} | {figure:,.1f} | {parts[what]:,.1f} |", flush=True)
    return 0


def partition() -> float:
    """Put the large tables in partitions; in how many seconds."""
    from django.core.management import call_command

    start = time.perf_counter()
    call_command("partition_tables", partitions=PARTITIONS, stdout=io.StringIO())
    return time.perf_counter() - start


def measure(product: Product) -> dict[str, float]:
    """Of indexes that are made anew for both; searches first, for undone rows leave entries in them."""
    for table in LARGE:
        product.execute(f"REINDEX TABLE {table}")
    product.execute("VACUUM ANALYZE")
    [(rows, size)] = product.execute(
        "SELECT (SELECT count(*) FROM threads_message), sum(pg_relation_size(indexrelid)) FROM pg_index"
        " WHERE indisunique AND coalesce(pg_partition_root(indrelid), indrelid)"
        f" = ANY('{{{','.join(LARGE)}}}'::regclass[])"
    )
    return {"unique indexes, bytes a message": float(size / rows)} | measure_searches(product) | measure_writes(product)


def measure_searches(product: Product) -> dict[str, float]:
    """The time of a conversation without its workspace; of each question the time and the blocks of its statements."""
    (conversation,) = product.execute("SELECT conversation_id FROM threads_message ORDER BY id LIMIT 1")[0]
    opened = f"SELECT id FROM threads_message WHERE conversation_id = '{conversation}' ORDER BY order_time LIMIT 50"
    figures = {"a conversation by its id alone, ms": time_undone(lambda: product.execute(opened))}
    for question in QUESTIONS:
        figures[f"search, {question}, median ms"] = time_statements(product, TERMS[question]).p50
        figures[f"search, {question}, blocks"] = count_blocks(product, TERMS[question])
    return figures


def measure_writes(product: Product) -> dict[str, float]:
    """The time of a COPY of new messages, and of the removal of one workspace."""
    fresh = f"(SELECT {list_columns(product, fresh=True)} FROM threads_message LIMIT {COPIED})"
    copied = {f"threads_message ({list_columns(product)})": product.dump([fresh])[fresh]}
    removal = f"DELETE FROM threads_message WHERE workspace_id = '{product.workspace.pk}'"
    return {
        f"COPY of {COPIED:,} messages, ms": time_undone(lambda: product.copy_back(copied)),
        "removal of one workspace, ms": time_undone(lambda: product.execute(removal)),
    }


def list_columns(product: Product, *, fresh: bool = False) -> str:
    """The columns of a message; `fresh` with other ids, so that it can be there once more."""
    rows = product.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'threads_message'::regclass AND attnum > 0"
    )
    return ", ".join(
        "gen_random_uuid()" if fresh and column in ("id", "record_id") else f'"{column}"' for (column,) in rows
    )


def time_undone(call: Callable[[], object]) -> float:
    """Milliseconds in the middle of some turns, each of which is undone."""
    from django.db import transaction

    spent = []
    for _ in range(TURNS):
        with transaction.atomic():
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
            transaction.set_rollback(True)
    return 1000 * median(spent)


if __name__ == "__main__":
    raise SystemExit(main())
