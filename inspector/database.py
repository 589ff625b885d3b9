"""The database where Django has no words for it: conditions, statements written out once, and the 404 where an address
names what is not there; texts as PostgreSQL can hold them, timestamps as it sends them; many rows at once: one INSERT …
ON CONFLICT DO NOTHING, or one UPDATE, of a temporary table that COPY has filled; and reads that a streaming replica may
answer, where `REPLICA_URL` names one: of the apps below, in views that say so.

Per-row saves are ten times slower (architecture, decision 4), and unsorted concurrent inserts deadlock. A few rows
stand in the statement itself: making and dropping the table takes several times as long as they do, and leaves dead
rows in the catalogue, of which every session is told.

Of the replica's reads: who asks, and what they may, was read from the primary before. The primary then says how far its
log is, and the replica is read once it has come so far: whatever anybody had posted, decided or erased when the view
began is in its answer. One that is away or further behind is left alone for a while, and the primary answers; also what
a replica broke off. Everything else is the primary's: what writes, jobs, receipts, reviews, sign-offs, proofs,
sessions, keys and roles.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, tzinfo
from functools import cache, wraps
from itertools import chain, islice
from typing import Any, ClassVar, Final, ParamSpec, TypeVar

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, F, Field, Func, Model, Q, QuerySet, Value
from django.db.models.expressions import BaseExpression
from django.db.models.sql.compiler import SQLCompiler
from django.http import Http404
from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader

from inspector.trail.row_security import stand_within

from .bounds import GoneError

P = ParamSpec("P")
T = TypeVar("T")
logger = logging.getLogger(__name__)

REPLICA: Final = "replica"
APPS: Final = frozenset({"threads", "intake", "audit"})
WAIT_SECONDS: Final = 0.05
STEP_SECONDS: Final = 0.005
REST_SECONDS: Final = 5.0
_CANCELLED: Final = "57014"

# What the primary had committed when the replica was taken, as PostgreSQL writes a snapshot; empty while it is not.
_snapshot: ContextVar[str] = ContextVar("replica", default="")


class ReplicaRouter:
    """Django's router: the replica within a view that may read from it, for these apps; else the primary."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        """Where a model is read."""
        return REPLICA if _snapshot.get() and model._meta.app_label in APPS else DEFAULT_DB_ALIAS

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        """The primary, also for what the replica showed."""
        return DEFAULT_DB_ALIAS

    def allow_relation(self, *rows: Model, **hints: Any) -> bool:
        """Both have the same rows."""
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """A replica gets its tables with the rows."""
        return db != REPLICA


def read_from() -> BaseDatabaseWrapper:
    """The connection for a statement that is written out and reads from tables of these apps alone."""
    return connections[REPLICA if _snapshot.get() else DEFAULT_DB_ALIAS]


def find_snapshot() -> str:
    """What the primary had committed when the replica was taken; empty where the primary is read."""
    return _snapshot.get()


def on_replica(view: Callable[P, T]) -> Callable[P, T]:
    """Let a view that only reads, and decides nothing, be answered by the replica where there is one that can.

    It stands below what asks who somebody is. Where the replica breaks off, the view is begun anew on the primary.
    """

    @wraps(view)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T:
        snapshot = _standing.take() if REPLICA in connections.settings else ""
        if snapshot:
            token = _snapshot.set(snapshot)
            try:
                return view(*args, **kwargs)
            except GoneError:
                raise
            except Error as error:
                if getattr(error.__cause__, "sqlstate", None) == _CANCELLED:
                    raise  # A statement that took too long takes as long there.
                _standing.leave(error)
            finally:
                _snapshot.reset(token)
        return view(*args, **kwargs)

    return answer


class _Standing:
    """Whether this process takes the replica, or leaves it alone for now; a line is logged when that changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_left = False
        self._until = 0.0

    def take(self) -> str:
        """What the primary has committed, where the replica has all of it; else empty."""
        now = time.monotonic()
        if now < self._until:
            return ""
        if self._is_left:
            self._until = now + REST_SECONDS  # One tries it, the others do not wait for that.
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            # The snapshot is taken before the place is asked for: nothing in it is beyond that place.
            cursor.execute(
                "SELECT pg_current_snapshot()::text, system_identifier, pg_current_wal_flush_lsn()"
                "  FROM pg_control_system()"
            )
            snapshot, *place = cursor.fetchone()
        try:
            has_come = _wait_for(place)
            stand_within(connections[REPLICA])
        except Error as error:
            self.leave(error)
            return ""
        if not has_come:
            self.leave(f"it is no replica of it, or more than {WAIT_SECONDS:g} s behind")
            return ""
        if self._is_left and self._change(is_left=False):
            self._until = 0.0
            logger.info("The replica answers again.")
        return str(snapshot)

    def leave(self, why: object) -> None:
        """Leave the replica alone for a while."""
        self._until = time.monotonic() + REST_SECONDS
        connections[REPLICA].close()
        if self._change(is_left=True):
            logger.warning("The replica is left alone and the primary answers: %s", " ".join(str(why).split()))

    def _change(self, *, is_left: bool) -> bool:
        with self._lock:
            was, self._is_left = self._is_left, is_left
        return was != is_left


_standing: Final = _Standing()


def _wait_for(place: list[Any]) -> bool:
    """Whether the replica comes to a place, of which server's log and where, in the time that it is waited for."""
    until = time.monotonic() + WAIT_SECONDS
    with connections[REPLICA].cursor() as cursor:
        while True:
            cursor.execute(
                "SELECT pg_is_in_recovery() AND system_identifier = %s AND pg_last_wal_replay_lsn() >= %s::pg_lsn"
                "  FROM pg_control_system()",
                place,
            )
            if cursor.fetchone()[0]:
                return True
            if time.monotonic() > until:
                return False
            time.sleep(STEP_SECONDS)


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


class IsoLoader(TimestamptzLoader):
    """Reads timestamptz in text; `timezone` is that in which the instant is given."""

    timezone: ClassVar[tzinfo]

    def load(self, data: Buffer) -> datetime:
        """The instant.

        Raises:
            psycopg.DataError: for one that Python has no datetime for.
        """
        try:
            found = datetime.fromisoformat(str(data, "ascii"))
        except ValueError:
            found = super().load(data)
        return found if found.tzinfo is self.timezone else found.astimezone(self.timezone)


def read_timestamps_directly(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Give a new connection the quick loader: a receiver of `connection_created`."""
    # Django looks at the loader's zone, and puts its own back where another is wanted.
    loader = type("ZonedLoader", (IsoLoader,), {"timezone": connection.timezone})
    connection.connection.adapters.register_loader("timestamptz", loader)


def make_storable(text: str) -> str:
    """The text with NUL as its visible symbol and lone surrogates as their escapes: nothing fails, nothing vanishes."""
    # Nearly every text is plain, and that is known without looking at it.
    if text.isascii() and "\x00" not in text:
        return text
    if "\x00" in text:
        text = text.replace("\x00", "\u2400")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


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
