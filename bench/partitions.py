"""`python -m bench.partitions`: the keys that stand between the schema and shards, and what partitions would change.

Messages are copied until eight workspaces share them evenly. Then the table of messages is put in place twice, with the
same rows and indexes and without foreign keys: whole, and in eight partitions by the hash of the workspace, where each
unique key begins with the workspace. The product's own search runs on both, as it is; so do a COPY of new messages and
the removal of one workspace, which are undone.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, Final

from .installation import Installation
from .product import Product, enter_product
from .scaling import QUESTIONS, count_blocks
from .searching import TERMS, copy_seed, make_workspace, plant, time_statements

LARGE: Final = (
    *("threads_message", "threads_conversation", "threads_task", "threads_block", "threads_fact", "threads_read"),
    *("intake_record", "intake_sighting", "audit_finding"),
)
WORKSPACES = PARTITIONS = 8
COPIED = 2_000
ROUNDS, TURNS = 3, 5
_KEYS: Final = """
WITH keys AS (
    SELECT t.oid, relname, CASE WHEN indisprimary THEN 'primary' ELSE 'unique' END AS kind, indkey::int2[] AS numbers
      FROM pg_index JOIN pg_class t ON t.oid = indrelid WHERE indisunique AND relkind = 'r'
    UNION ALL
    SELECT t.oid, relname, 'foreign', conkey FROM pg_constraint JOIN pg_class t ON t.oid = conrelid
     WHERE contype = 'f' AND confrelid::regclass::text !~ '^accounts_'
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
    """List, fill, measure by turns, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000, help="of all workspaces (default 200,000)")
    parser.add_argument("--records", type=int, default=5_000, help="of the log that is copied (default 5,000)")
    options = parser.parse_args(arguments)
    with Installation() as installation, enter_product(installation) as product:
        print(list_keys(product.execute), flush=True)
        copies = max(1, options.messages // WORKSPACES // options.records)
        plant(product, copies * options.records, records=options.records)
        # The product's own has as many, and one has words of its own.
        for workspace in (make_workspace(f"bench-{number}") for number in range(WORKSPACES - 2)):
            for copy in range(copies):
                copy_seed(product, copy, workspace=workspace)
        product.execute("ALTER TABLE threads_message RENAME TO original")
        for name in ("whole", "partitions"):
            make_form(product, name)
        (rows,) = product.execute("SELECT count(*) FROM whole")[0]
        print(f"\n{product.tell_settings()}; {rows:,} messages, as much time and memory for both\n", flush=True)
        print(f"| what | whole | {PARTITIONS} partitions |\n|---|---|---|")
        # What is undone leaves entries in the indexes: searches come first.
        for ask in (measure_searches, measure_writes):
            rounds = [(ask(product, "whole"), ask(product, "partitions")) for _ in range(ROUNDS)]
            for what in rounds[0][0]:
                whole, parts = (median(each[number][what] for each in rounds) for number in range(2))
                print(f"| {what} | {whole:,.1f} | {parts:,.1f} |", flush=True)
    return 0


def make_form(product: Product, name: str) -> None:
    """A table with the rows and the indexes of the product's, whole or in partitions."""
    split = name == "partitions"
    by = " PARTITION BY HASH (workspace_id)" if split else ""
    product.execute(f"CREATE TABLE {name} (LIKE original INCLUDING DEFAULTS){by}")
    for number in range(PARTITIONS * split):
        values = f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
        product.execute(f"CREATE TABLE {name}_{number} PARTITION OF {name} {values}")
    product.execute(f"INSERT INTO {name} SELECT * FROM original ORDER BY order_time")
    indexes = product.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'original' ORDER BY indexname")
    for number, (written,) in enumerate(indexes):
        made = re.sub(r"INDEX \S+ ON \S+", f"INDEX {name}_index_{number} ON {name}", written)
        product.execute(made.replace("(", "(workspace_id, ", 1) if split and "UNIQUE" in made else made)
    product.execute(f"VACUUM ANALYZE {name}")


def measure_searches(product: Product, name: str) -> dict[str, float]:
    """The time of a conversation without its workspace; of each question the time and the blocks of its statements."""
    (conversation,) = product.execute(f"SELECT conversation_id FROM {name} ORDER BY id LIMIT 1")[0]
    opened = f"SELECT id FROM {name} WHERE conversation_id = '{conversation}' ORDER BY order_time LIMIT 50"
    figures = {"a conversation by its id alone, ms": time_undone(lambda: product.execute(opened))}
    product.execute(f"ALTER TABLE {name} RENAME TO threads_message")
    for question in QUESTIONS:
        figures[f"search, {question}, median ms"] = time_statements(product, TERMS[question]).p50
        figures[f"search, {question}, blocks"] = count_blocks(product, TERMS[question])
    product.execute(f"ALTER TABLE threads_message RENAME TO {name}")
    return figures


def measure_writes(product: Product, name: str) -> dict[str, float]:
    """The time of a COPY of new messages, and of the removal of one workspace."""
    fresh = f"(SELECT {list_columns(product, fresh=True)} FROM {name} LIMIT {COPIED})"
    copied = {f"{name} ({list_columns(product)})": product.dump([fresh])[fresh]}
    removal = f"DELETE FROM {name} WHERE workspace_id = '{product.workspace.pk}'"
    return {
        f"COPY of {COPIED:,} messages, ms": time_undone(lambda: product.copy_back(copied)),
        "removal of one workspace, ms": time_undone(lambda: product.execute(removal)),
    }


def list_columns(product: Product, *, fresh: bool = False) -> str:
    """The columns of a message; `fresh` with other ids, so that it can be there once more."""
    rows = product.execute("SELECT attname FROM pg_attribute WHERE attrelid = 'original'::regclass AND attnum > 0")
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
