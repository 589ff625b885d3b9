"""CSV by RFC 4180, one message a row, with every name of the normalised record as a column, safe in a spreadsheet.

A cell that would begin a formula has an apostrophe before it (ASVS 5.0, 1.2.10), every separator and quote is quoted
by the rules of the RFC, and lines end with CR LF. What cannot be seen, or not be held by UTF-8, is made visible:
controls as their symbols, the rest as escapes. CSV is for reading; what must be exact is in JSON Lines.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dialects import HIDDEN_CLASS, Message, make_visible

from .entries import Part, Row
from .lines import SEVERITIES, write_instant, write_value

MARK: Final = "\ufeff"
# What the inspector says of a message; these names have a point, those of the record have none.
OURS: Final = (
    *("inspector.id", "inspector.record", "inspector.part", "inspector.channel", "inspector.conversation"),
    *("inspector.position", "inspector.at", "inspector.at_basis", "inspector.dialect", "inspector.severity"),
    *("inspector.parent", "inspector.parent_basis", "inspector.raw", "inspector.is_masked", "inspector.sha256"),
    "inspector.is_changed",
)
# Telling in pieces: their texts are joined.
_TOLD: Final = {"english": "", "also": "; ", "gloss": " "}
_LEFT_OUT: Final = frozenset({"part", "parent"})
RECORDS: Final = tuple(name for name in Message._order if name not in _LEFT_OUT)
_PLACES: Final = {name: place for place, name in enumerate(RECORDS)}
COLUMNS: Final = OURS + RECORDS
# What a spreadsheet takes for the beginning of a formula, the full-width forms included, or passes over before one.
_FORMULA: Final = frozenset("=+-@\t\r\n\0␀＝＋－＠")
# An end of line is laid out, as tabs are.
_HIDDEN: Final = re.compile(rf"(?!\r\n){HIDDEN_CLASS}")
# Of a longer message the record is not taken apart: its cells would hold its text many times.
_MAX_CELL_LENGTH: Final = 1024 * 1024


def make_safe(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe stands before what would begin one."""
    return f"'{cell}" if cell[:1] in _FORMULA else cell


def write_head(columns: Sequence[str], *, has_mark: bool) -> bytes:
    """The row of names; with a byte order mark before it, by which some spreadsheets know UTF-8."""
    return (MARK if has_mark else "").encode() + write_cells([columns])


def write_rows(row: Row, channels: Mapping[str, str]) -> bytes:
    """The rows of a record's messages."""
    return write_cells(_list_cells(row, part, channels) for part in row.parts)


def _list_cells(row: Row, part: Part, channels: Mapping[str, str]) -> Iterator[Any]:
    is_masked = row.masked is not None or row.is_withheld
    text = "" if row.is_withheld else row.text if row.masked is None else row.masked
    yield from (part.id, row.id, part.part, make_cell(channels[row.channel]), part.conversation, part.position)
    yield from (write_instant(part.at), part.at_basis, part.dialect, SEVERITIES[part.severity])
    yield from (part.parent or "", part.parent_basis, make_cell(text), "yes" if is_masked else "no")
    yield from (row.sha256 or "", "yes" if row.changed is not None else "no")
    body = json.loads(part.body) if 0 < len(part.body) <= _MAX_CELL_LENGTH else {"message": {}, "record": {}}
    told: Mapping[str, Any] = body["message"]
    cells: list[str] = [""] * len(RECORDS)
    # Most names are absent of most messages.
    for name, value in told.items():
        if name in _PLACES:
            cells[_PLACES[name]] = _make_value(name, value)
    # Nobody reads the sentence without what is doubtful of it.
    cells[_PLACES["english"]] = make_cell(part.told)
    yield from cells


def _make_value(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        written = write_value(value)
        return make_cell(json.loads(written)) if written.startswith('"') else written
    if isinstance(value, str):
        return make_cell(value)
    if name in _TOLD:
        return make_cell(_TOLD[name].join(segment["text"] for segment in value))
    return make_cell(write_value(value))


def make_cell(text: str) -> str:
    """A text as a cell may hold it: with its lines and tabs, and every hidden character visible."""
    return make_safe(_HIDDEN.sub(lambda found: make_visible(found[0]), text))


def write_cells(rows: Iterable[Iterable[Any]]) -> bytes:
    """Rows of cells as lines of the file."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()
