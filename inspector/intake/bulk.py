"""Many rows at once: one INSERT … ON CONFLICT DO NOTHING, or one UPDATE, of a temporary table that COPY has filled.

Per-row saves are ten times slower (architecture, decision 4), and unsorted concurrent inserts deadlock. A few rows
stand in the statement itself: making and dropping the table takes several times as long as they do, and leaves dead
rows in the catalogue, of which every session is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any, TypeVar

from django.db import connection, models

T = TypeVar("T")

# So many values are few, as long as they hold no more characters and bytes than that.
MAX_VALUES, MAX_VALUES_BYTES = 500, 64 * 1024


def copy_rows(*, model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows that are known to be new, straight into their table; the server writes while they are being made.

    Args:
        model: the model whose table takes the rows.
        columns: database column names, in the order of each row's values.
        rows: the values, as for `insert_rows`.

    Raises:
        psycopg.IntegrityError: if one of them is there already.
    """
    left = iter(rows)
    first = next(left, None)
    if first is None:
        return
    statement = f'COPY "{model._meta.db_table}" ({_list_names(tuple(columns))}) FROM STDIN'
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in chain([first], left):
            copy.write_row(row)


def insert_rows(
    *, model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]], order_by: Sequence[str]
) -> int:
    """Insert rows, passing over those that a unique constraint refuses. Needs an open transaction.

    Args:
        model: the model whose table takes the rows.
        columns: database column names, in the order of each row's values.
        rows: the values; bytes, str, datetime, uuid.UUID, lists and None as psycopg adapts them.
        order_by: the columns of the key; concurrent writers that insert in its order cannot deadlock.

    Returns:
        how many were inserted.
    """
    names = _list_names(tuple(columns))
    with _lay_out(model=model, name="incoming", columns=columns, rows=rows) as laid_out:
        if laid_out is not None:
            source, values = laid_out
            into, keys = f'"{model._meta.db_table}" ({names})', _list_names(tuple(order_by))
            chosen = f"SELECT {names} FROM {source} ORDER BY {keys}"  # noqa: S608  # names of our own
            return _execute(f"INSERT INTO {into} {chosen} ON CONFLICT DO NOTHING", values)
    return 0


def write_array(texts: Sequence[str]) -> str:
    """The literal of an array of texts: for rows by the thousand, a quarter of what adapting their lists takes."""
    joined = "".join(texts)
    if '"' in joined or "\\" in joined:
        texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    return '{"' + '","'.join(texts) + '"}' if texts else "{}"


def cut_windows(
    items: Iterable[T], *, size_of: Callable[[T], int], max_items: int, max_bytes: int
) -> Iterator[list[T]]:
    """The items in order, in windows of at most so many items and bytes; one larger than that is alone in its window.

    Whatever is loaded record by record is loaded in such windows, so that memory depends on no record's size.
    """
    window: list[T] = []
    held = 0
    for item in items:
        size = size_of(item)
        if window and (len(window) == max_items or held + size > max_bytes):
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
    table = f'"{model._meta.db_table}"'
    same = _pair(f"{table}.", tuple(columns[:key_columns]), " AND ")
    assigned = _pair("", tuple(columns[key_columns:]), ", ")
    with _lay_out(model=model, name="changed", columns=columns, rows=rows) as laid_out:
        if laid_out is not None:
            source, values = laid_out
            statement = f"UPDATE {table} SET {assigned} FROM {source} WHERE {same}"  # noqa: S608  # names of our own
            _execute(statement, values)


@contextmanager
def _lay_out(
    *, model: type[models.Model], name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Iterator[tuple[str, list[Any]] | None]:
    """Rows as something to select from by a name, with its values; None where there are no rows."""
    left = iter(rows)
    taken, is_all = _take_few(left, len(columns))
    names = _list_names(tuple(columns))
    if is_all:
        values = ", ".join([_spell_row(model, tuple(columns))] * len(taken))
        yield (f"(VALUES {values}) AS {name} ({names})", list(chain.from_iterable(taken))) if taken else None
        return
    table = model._meta.db_table
    copied = f'"{name}_{table}"'
    with connection.cursor() as cursor:
        nothing = f'SELECT {names} FROM "{table}" WITH NO DATA'  # noqa: S608  # names of our own
        cursor.execute(f"CREATE TEMPORARY TABLE {copied} ON COMMIT DROP AS {nothing}")
        with cursor.copy(f"COPY {copied} ({names}) FROM STDIN") as copy:
            for row_values in chain(taken, left):
                copy.write_row(row_values)
    yield f"{copied} AS {name}", []
    _execute(f"DROP TABLE {copied}", [])


def _take_few(rows: Iterator[Sequence[Any]], width: int) -> tuple[list[Sequence[Any]], bool]:
    """The first of these rows, and whether they are all of them and few."""
    taken: list[Sequence[Any]] = []
    size = 0
    for row in rows:
        taken.append(row)
        size += sum(len(value) for value in row if isinstance(value, (str, bytes, memoryview)))
        if len(taken) * width > MAX_VALUES or size > MAX_VALUES_BYTES:
            return taken, False
    return taken, True


@cache
def _spell_row(model: type[models.Model], columns: tuple[str, ...]) -> str:
    """A place for a value of each column, of the column's type. It has no length: a cast to one would cut."""
    types = {field.column: re.sub(r"\(.*?\)", "", field.db_type(connection) or "") for field in model._meta.fields}
    return "(" + ", ".join(f"CAST(%s AS {types[column]})" for column in columns) + ")"


@cache
def _list_names(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


@cache
def _pair(prefix: str, columns: tuple[str, ...], joint: str) -> str:
    """What each column is to equal, or to become, of what is laid out."""
    return joint.join(f'{prefix}"{column}" = changed."{column}"' for column in columns)


def _execute(statement: str, values: Sequence[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return int(cursor.rowcount)
