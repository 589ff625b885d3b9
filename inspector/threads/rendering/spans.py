"""The spans of time in which a message lies, from two minutes to a year, as entries of the index of search.

That index has the messages of a word in the order in which they were stored. By the spans beside the words it finds the
newest of them among many without looking at the others, and by the sample it tells when to look for them. It makes
these entries itself, of the columns of the row: whatever changes the time of a message changes them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from django.contrib.postgres.fields import ArrayField
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, F, Func, TextField, Value
from django.db.models.sql.compiler import SQLCompiler

from .terms import mark_workspace

# So many last bits of the number of seconds since 1970 say nothing in which span of a size one lies.
SIZES: Final = (7, 13, 19, 25)
# One message of so many is in the sample: those whose ids, which are random at their end, end with so many zero bits.
SAMPLED: Final = 512
_SAMPLE: Final = "sample"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def write_sample(workspace_id: uuid.UUID) -> list[str]:
    """The entry of the sampled messages; it begins with the mark of the workspace, as all entries do."""
    return [f"{mark_workspace(workspace_id)}{_SAMPLE}"]


def write_spans(workspace_id: uuid.UUID, since: datetime, until: datetime) -> list[str]:
    """The entries of the fewest spans that hold the time between two moments, these included."""
    mark = mark_workspace(workspace_id)
    return [f"{mark}{bits}:{number}" for bits, number in _cover(_count_seconds(since), _count_seconds(until))]


def _count_seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)


def _cover(first: int, last: int) -> Iterator[tuple[int, int]]:
    start, end = first >> SIZES[0], (last >> SIZES[0]) + 1
    for bits, wider in pairwise(SIZES):
        many = 1 << wider - bits
        # What does not fill a wider span at either side.
        while start < end and start % many:
            yield bits, start
            start += 1
        while start < end and end % many:
            end -= 1
            yield bits, end
        start, end = start // many, end // many
    yield from ((SIZES[-1], number) for number in range(start, end))


class Spans(Func):
    """The entries of a message: of each size the span in which it lies, and whether it is in the sample."""

    output_field = ArrayField(TextField())

    def __init__(self) -> None:
        super().__init__(F("workspace_id"), F("order_time"), F("id"))

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *given: Any, **more: Any
    ) -> tuple[str, tuple[()]]:
        """An array that is the same for a row whoever asks: an index takes no other."""
        workspace, moment, own = (compiler.compile(each)[0] for each in self.get_source_expressions())
        mark = f"ENCODE(SUBSTRING(UUID_SEND({workspace}) FROM 14), 'base64')"
        second = f"FLOOR(EXTRACT(EPOCH FROM {moment} AT TIME ZONE 'UTC'))::bigint"
        spans = ", ".join(f"{mark} || '{bits}:' || ({second} >> {bits})" for bits in SIZES)
        end = f"SUBSTRING(UUID_SEND({own}) FROM 13)"
        return (
            f"ARRAY[{spans}] || CASE WHEN {end} < '\\x{2**32 // SAMPLED:08x}'::bytea"
            f" THEN ARRAY[{mark} || '{_SAMPLE}'] ELSE '{{}}'::text[] END",
            (),
        )


class IsWithin(Func):
    """Whether a message has one of these entries."""

    template = "(%(expressions)s)"
    arg_joiner = " && "
    output_field = BooleanField()

    def __init__(self, entries: list[str]) -> None:
        super().__init__(Spans(), Value(entries, output_field=ArrayField(TextField())))
