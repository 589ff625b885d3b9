"""Many rows at once: COPY into a temporary table, then one INSERT … ON CONFLICT DO NOTHING, or one UPDATE.

Per-row saves are ten times slower (architecture, decision 4), and unsorted concurrent inserts deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from django.db import connection, models
from psycopg import sql

T = TypeVar("T")


def copy_rows(*, model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows that are known to be new, straight into their table; the server writes while they are being made.

    Args:
        model: the model whose table takes the rows.
        columns: database column names, in the order of each row's values.
        rows: the values, as for `insert_rows`.

    Raises:
        psycopg.IntegrityError: if one of them is there already.
    """
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(model._meta.db_table), names)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def insert_rows(
    *, model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]], order_by: Sequence[str]
) -> None:
    """Insert rows, passing over those that a unique constraint refuses. Needs an open transaction.

    Args:
        model: the model whose table takes the rows.
        columns: database column names, in the order of each row's values.
        rows: the values; bytes, str, datetime, uuid.UUID, lists and None as psycopg adapts them.
        order_by: the columns of the key; concurrent writers that insert in its order cannot deadlock.
    """
    table = sql.Identifier(model._meta.db_table)
    incoming = sql.Identifier(f"incoming_{model._meta.db_table}")
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    key = sql.SQL(", ").join(map(sql.Identifier, order_by))
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA").format(
                incoming, names, table
            )
        )
        with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(incoming, names)) as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} ORDER BY {} ON CONFLICT DO NOTHING").format(
                table, names, names, incoming, key
            )
        )
        cursor.execute(sql.SQL("DROP TABLE {}").format(incoming))


def write_array(texts: Sequence[str]) -> str:
    """The literal of an array of texts: for rows by the thousand, a quarter of what adapting their lists takes."""
    joined = "".join(texts)
    if '"' in joined or "\\" in joined:
        texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    return '{"' + '","'.join(texts) + '"}' if texts else "{}"


def cut_windows(
    items: Iterable[T], *, size_of: Callable[[T], int], most_items: int, most_bytes: int
) -> Iterator[list[T]]:
    """The items in order, in windows of at most so many items and bytes; one larger than that is alone in its window.

    Whatever is loaded record by record is loaded in such windows, so that memory depends on no record's size.
    """
    window: list[T] = []
    held = 0
    for item in items:
        size = size_of(item)
        if window and (len(window) == most_items or held + size > most_bytes):
            yield window
            window, held = [], 0
        window.append(item)
        held += size
    if window:
        yield window


def update_rows(
    *, model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]], key_columns: int = 1
) -> None:
    """Give existing rows new values. Needs an open transaction.

    Args:
        model: the model whose table holds the rows.
        columns: database column names; the first is the primary key.
        rows: the values, in that order.
        key_columns: how many of the columns, from the first on, must be as given for a row to be written at all.
    """
    table = sql.Identifier(model._meta.db_table)
    changed = sql.Identifier(f"changed_{model._meta.db_table}")
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    assignments = sql.SQL(", ").join(
        sql.SQL("{0} = {1}.{0}").format(sql.Identifier(name), changed) for name in columns[key_columns:]
    )
    is_same = sql.SQL(" AND ").join(
        sql.SQL("{0}.{2} = {1}.{2}").format(table, changed, sql.Identifier(name)) for name in columns[:key_columns]
    )
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA").format(
                changed, names, table
            )
        )
        with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(changed, names)) as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute(sql.SQL("UPDATE {} SET {} FROM {} WHERE {}").format(table, assignments, changed, is_same))
        cursor.execute(sql.SQL("DROP TABLE {}").format(changed))
