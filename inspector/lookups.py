"""Conditions that Django's query language has no words for, and the 404 where an address names what is not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, F, Field, Func, Model, Q, QuerySet, Value
from django.db.models.expressions import BaseExpression
from django.db.models.sql.compiler import SQLCompiler
from django.http import Http404

from .replica import find_snapshot

T = TypeVar("T")
Row = TypeVar("Row", bound=Model)

# How many numbers there are for transactions before they begin anew.
_CIRCLE: Final = 2**32


class IsAny(Func):
    """Whether a column is one of the elements of an array: one parameter, where `in` takes one for each value.

    Args:
        column: its name, of a foreign key that of the id; or an expression in its place.
        values: all of one type; or an expression that is an array.
    """

    template = "(%(expressions)s))"
    arg_joiner = " = ANY("
    output_field = BooleanField()

    def __init__(self, column: str | Func, values: Iterable[Any] | BaseExpression | F) -> None:
        array = values if isinstance(values, BaseExpression | F) else Value(list(values))
        super().__init__(column, array)


class HasAnyBit(Func):
    """Whether a column of whole numbers has any of these bits set.

    Args:
        column: its name.
        bits: as a number.
    """

    template = "((%(expressions)s) <> 0)"
    arg_joiner = " & "
    output_field = BooleanField()

    def __init__(self, column: str, bits: int) -> None:
        super().__init__(F(column), Value(bits))


class WrittenSince(Func):
    """Whether a row was written by a transaction that began after another one, or is that one; also where it is near.

    PostgreSQL says of each row which transaction wrote it, by a number that begins anew after four thousand million.
    What lies more than half of that back may be taken for new.

    Args:
        transaction: as `find_oldest_transaction` gave it.
    """

    output_field = BooleanField()

    def __init__(self, transaction: int) -> None:
        self._transaction = transaction
        super().__init__(F("pk"))

    def as_sql(
        self,
        compiler: SQLCompiler,
        connection: BaseDatabaseWrapper,
        function: str | None = None,
        template: str | None = None,
        arg_joiner: str | None = None,
        **extra_context: Any,
    ) -> tuple[str, tuple[str | int, ...]]:
        """The condition on the row that the primary key is of."""
        table = compiler.quote_name_unless_alias(self.get_source_expressions()[0].alias)
        distance = f"mod({table}.xmin::text::bigint - %s + {_CIRCLE}, {_CIRCLE})"
        return f"({distance} < {_CIRCLE // 2})", (self._transaction % _CIRCLE,)


def find_oldest_transaction(snapshot: str = "") -> int:
    """The oldest transaction under way, or the next one: whatever is written from now on is not older than it.

    Args:
        snapshot: of which moment, in PostgreSQL's own form, such as "795:799:797"; without it, of now.
    """
    snapshot = snapshot or find_snapshot()
    if snapshot:
        return int(snapshot.split(":")[0])
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        return int(cursor.fetchone()[0])


def go_on(
    rows: QuerySet[Row], at: str, place: tuple[Any, Any] | None, *, is_newest_first: bool = True
) -> QuerySet[Row]:
    """The rows that come after a place in a list that is ordered by a time and the primary key, in no order yet.

    Args:
        rows: of the list.
        at: the name of the time.
        place: the time and the primary key of the last row seen; None for the whole list.
        is_newest_first: the direction of the list.
    """
    if place is None:
        return rows
    later = "lt" if is_newest_first else "gt"
    # Said so, an index finds the place; of the alternatives alone it would not.
    rows = rows.filter(**{f"{at}__{later}e": place[0]})
    return rows.filter(Q(**{f"{at}__{later}": place[0]}) | Q(**{f"pk__{later}": place[1]}))


def take_page(
    rows: QuerySet[Row], at: str, place: tuple[Any, Any] | None, limit: int, *, is_newest_first: bool = True
) -> list[Row]:
    """The first rows of `go_on`, at most so many."""
    sign = "-" if is_newest_first else ""
    after = go_on(rows, at, place, is_newest_first=is_newest_first)
    return list(after.order_by(f"{sign}{at}", f"{sign}pk")[:limit])


def or_404(found: T | None) -> T:
    """What a selector found.

    Raises:
        Http404: where it found nothing.
    """
    if found is None:
        raise Http404
    return found


class Written:
    """A statement that selects whole rows of several models side by side, written out once: of what every request asks
    the ORM takes several times as long to write the statement as PostgreSQL to answer it.

    Args:
        statement: with `{channel}` for all columns of the model Channel, whose table is called "channel" in it.
        models: in the order of their columns.
    """

    def __init__(self, statement: str, *models: type[Model]) -> None:
        self._models = {str(model._meta.model_name): (model, model._meta.concrete_fields) for model in models}
        lists = {
            name: ", ".join(f'"{name}"."{field.column}"' for field in fields)
            for name, (_, fields) in self._models.items()
        }
        self._statement = statement.format(**lists)

    def find(self, parameters: Sequence[Any]) -> list[Any]:
        """An object for each model from the first row, None where none was joined; an empty list where no row is."""
        with connection.cursor() as cursor:
            cursor.execute(self._statement, parameters)
            row = cursor.fetchone()
        left = iter(row or ())
        return [_make(*each, list(islice(left, len(each[1])))) for each in self._models.values()] if row else []


def _make(model: type[Row], fields: Sequence[Field[Any, Any]], values: list[Any]) -> Row | None:
    if values[fields.index(model._meta.pk)] is None:
        return None
    for at, field in enumerate(fields):
        for convert in field.get_db_converters(connection):
            values[at] = convert(values[at], None, connection)
    return model.from_db(connection.alias, [field.attname for field in fields], values)
