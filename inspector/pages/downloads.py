"""Rows as a file to download: CSV that no spreadsheet runs, and JSON Lines with each value as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.http import StreamingHttpResponse

from inspector.exports.cells import make_safe, write_cells

_KINDS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}


def answer_rows(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, form: str, name: str
) -> StreamingHttpResponse:
    """The rows, each with all of the columns in their order, as a file of this name; `form` is `csv` or `jsonl`."""
    lines = _write_csv(rows, columns) if form == "csv" else (json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return StreamingHttpResponse(lines, content_type=_KINDS[form], headers=headers)


def _write_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[bytes]:
    yield write_cells([columns])
    for row in rows:
        yield write_cells([map(_make_cell, row.values())])


def _make_cell(value: Any) -> Any:
    if isinstance(value, list):
        value = " ".join(value)
    elif isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False)
    return make_safe(value) if isinstance(value, str) else value
