"""Empties the tables after a test that committed what it wrote: those with a row, by deleting what they hold.

Django truncates all of them, which gives each of some seventy tables and of its indexes a new file, and then writes the
permissions anew that it has just thrown away. After most tests a dozen tables have some rows: deleting these takes a
twentieth of that. Where a table has grown it is truncated with all the others, so that no test pays for what earlier
ones left on its pages.

After a test that is undone the rows it wrote count no more, and their pages are still there. When a module is over
those of grown tables are given back: the server of the tests does not do that by itself.

Only whoever owns the table of the trail can pass the trigger that keeps it: the role of the tests does, and that of
the product need not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management.commands import flush
from django.db import connection, transaction
from django.db.backends.postgresql.operations import DatabaseOperations
from psycopg import sql

# Their triggers let no row be deleted; those that are named here let no table be truncated. Nothing refers to the
# tables, so that each can be truncated alone.
NOT_TRUNCATED = {
    "trail_deed": "deeds_kept",
    **{f"ledger_ledger{name}": "ledger_whole" for name in ("entry", "hash", "checkpoint", "cosignature", "key")},
}
KEPT = (*NOT_TRUNCATED, "keyring_keyevent")
# Django writes them after each migration, and no test changes them.
WRITTEN_BY_DJANGO = ("django_content_type", "auth_permission")
# A table with more on its pages, whether it still counts or not, is grown.
GROWN_BYTES = 2 * 1024**2


@contextmanager
def empty_by_deleting() -> Iterator[None]:
    """Let Django's `flush`, with which it ends such a test, work as above."""
    truncate_all, write_permissions = DatabaseOperations.execute_sql_flush, flush.emit_post_migrate_signal
    is_truncated = False

    def empty(operations: DatabaseOperations, statements: Sequence[str]) -> None:
        nonlocal is_truncated
        with transaction.atomic():
            names, is_truncated = find_filled()
            kept = [name for name in NOT_TRUNCATED if is_truncated or name in names]
            for name in kept:
                execute("ALTER TABLE {} DISABLE TRIGGER {}", name, NOT_TRUNCATED[name])
            if is_truncated:
                truncate_all(operations, statements)
            else:
                # References are looked at when the transaction ends: any order will do.
                for name in names:
                    execute("TRUNCATE {}" if name in KEPT else "DELETE FROM {}", name)
            if kept:
                # With references that are not looked at yet no table can be altered.
                execute("SET CONSTRAINTS ALL IMMEDIATE")
            for name in kept:
                execute("ALTER TABLE {} ENABLE ALWAYS TRIGGER {}", name, NOT_TRUNCATED[name])

    def write(*arguments: Any, **names: Any) -> None:
        if is_truncated:
            write_permissions(*arguments, **names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "execute_sql_flush", empty)
        patch.setattr(flush, "emit_post_migrate_signal", write)
        yield


def give_pages_back() -> None:
    """Give the pages back that hold only what was undone; the connection has no transaction open."""
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM unnest(%s::text[]) AS name WHERE %s <"
            " (SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree(name::regclass))",
            [names, GROWN_BYTES],
        )
        grown = [name for (name,) in cursor.fetchall()]
    for name in grown:
        execute("VACUUM {}", name)


def find_filled() -> tuple[list[str], bool]:
    """The tables with a row, but for those of Django's own, and whether any table is grown."""
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    sought = [name for name in names if name not in WRITTEN_BY_DJANGO]
    each = sql.SQL(
        "SELECT {0}, EXISTS (SELECT FROM {1}), "
        "(SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree({2}::regclass)) > {3}"
    )
    asked = sql.SQL(" UNION ALL ").join(
        each.format(name, sql.Identifier(name), sql.Literal(f'"{name}"'), GROWN_BYTES) for name in sought
    )
    with connection.cursor() as cursor:
        cursor.execute(asked)  # type: ignore[arg-type]  # psycopg's own
        found = cursor.fetchall()
    return [name for name, is_filled, _ in found if is_filled], any(is_grown for *_, is_grown in found)


def execute(statement: str, *names: str) -> None:
    """One statement on these tables."""
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))  # type: ignore[arg-type]
