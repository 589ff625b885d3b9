"""Spans of time: the entries of the index of search by which the newest messages are found without the others."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, Func, TextField, Value

from inspector.threads.placing.places import count_microseconds
from inspector.threads.rendering.terms import SAMPLE, SIZES, Spans, mark_workspace


def write_sample(workspace_id: uuid.UUID) -> list[str]:
    """The entry of the sampled messages; it begins with the mark of the workspace, as all entries do."""
    return [f"{mark_workspace(workspace_id)}{SAMPLE}"]


def write_spans(workspace_id: uuid.UUID, since: datetime, until: datetime) -> list[str]:
    """The entries of the fewest spans that hold the time between two moments, these included."""
    mark = mark_workspace(workspace_id)
    first, last = (count_microseconds(moment) // 1_000_000 for moment in (since, until))
    return [f"{mark}{bits}:{number}" for bits, number in _cover(first, last)]


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


class IsWithin(Func):
    """Whether a message has one of these entries."""

    template = "(%(expressions)s)"
    arg_joiner = " && "
    output_field = BooleanField()

    def __init__(self, entries: list[str]) -> None:
        super().__init__(Spans(), Value(entries, output_field=ArrayField(TextField())))
