"""CSV with a header row: one column is the wire, the columns it knows are the envelope, the rest is kept in `extra`.

A cell in double quotes may hold line ends; a doubled quote is one quote (RFC 4180). A quote that is never closed
takes no other row with it: its line stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .envelopes import COLUMNS, envelope_of_row
from .items import LogOptions
from .lines import explain_bytes, find_line
from .tape import Tape

_NAME = re.compile(r"\s*[^\W\d][\w .\-/]{0,63}\s*\Z")
_QUOTED = re.compile(r'"((?>(?:[^"]++|"")*))"')
_CR = 13


def read_header(line: str, options: LogOptions) -> tuple[str, list[str]] | None:
    """The delimiter and the columns (by the envelope's names where they are known); None where it is no header.

    A header names its columns in words, one of them the wire and, unless the form is forced, another one known.
    """
    for delimiter in ",;\t":
        names = [name.strip() for name in split_row(line, delimiter)]
        columns = name_columns(names, options.fields)
        is_known = len(names) > 1 and "raw" in columns and any(name in COLUMNS for name in columns if name != "raw")
        if is_known and all(_NAME.match(name) for name in names):
            return delimiter, columns
    if options.form != "csv":
        return None
    delimiter = max(",;\t", key=line.count)
    return delimiter, name_columns([name.strip() for name in split_row(line, delimiter)], options.fields)


def name_columns(names: Sequence[str], fields: Mapping[str, str]) -> list[str]:
    """The names of a header as the envelope's, each at most once; others stay as they are."""
    lower = [name.lower().replace(" ", "_").replace("-", "_") for name in names]
    columns = list(names)
    for name, known in COLUMNS.items():
        wanted = (fields[name].lower(),) if name in fields else known
        place = next((lower.index(one) for one in wanted if one in lower), None)
        if place is not None:
            columns[place] = name
    return columns


def split_row(row: str, delimiter: str) -> list[str]:
    """The cells of a row, without their quotes."""
    if '"' not in row:
        return row.split(delimiter)
    cells = []
    at = 0
    while True:
        quoted = _QUOTED.match(row, at)
        if quoted and row[quoted.end() : quoted.end() + 1] in ("", delimiter):
            cells.append(quoted[1].replace('""', '"'))
            end = quoted.end()
        else:
            end = row.find(delimiter, at)
            end = len(row) if end < 0 else end
            cells.append(row[at:end])
        if end >= len(row):
            return cells
        at = end + 1


class CsvForm:
    """Frames the rows of a CSV file; its header is scaffold."""

    name = "csv"

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self._delimiter: str = state.get("delimiter", ",")
        # None until the header was read.
        self._columns: list[str] | None = state.get("columns")
        # A row of several lines under way: where its first line stops, where the second and the next begin.
        self._row: tuple[int, int, int] | None = None

    def to_state(self, *, is_in_long: bool = False) -> dict[str, Any]:
        """What must be known to go on at the cursor."""
        return {"delimiter": self._delimiter, "columns": self._columns}

    def run(self, tape: Tape, *, is_last: bool) -> bool:
        """Read what can be read. The rows end with their stream, so the answer is always False."""
        while True:
            if self._row:
                if not self._go_on(tape, *self._row, is_last=is_last):
                    return False
                continue
            found = find_line(tape, is_last=is_last)
            if found is None:
                return False
            stop, after = found
            raw = bytes(tape.buffer[tape.at : stop])
            if not raw.strip():
                tape.skip_to(after)
            elif self._columns is None:
                header = read_header(raw.decode(errors="replace"), tape.options)
                self._delimiter, self._columns = header or (",", ["raw"])
                tape.skip_to(after)
            elif raw.count(b'"') % 2:
                self._row = (tape.offset + stop, tape.offset + after, tape.offset + after)
            else:
                self._take(tape, stop)
                tape.skip_to(after)

    def _go_on(self, tape: Tape, first_stop: int, second: int, next_start: int, *, is_last: bool) -> bool:
        """Whether the row under way came to its end, and was read."""
        buffer, limit = tape.buffer, tape.options.max_record_bytes
        while True:
            start = next_start - tape.offset
            end = buffer.find(b"\n", max(start, tape.scanned))
            if end < 0:
                tape.scanned = len(buffer)
            is_over = (end if end >= 0 else len(buffer)) - tape.at > limit
            if end < 0 and not is_last and not is_over:
                self._row = (first_stop, second, next_start)
                return False
            end = len(buffer) if end < 0 else end
            is_closed = not is_over and buffer.count(b'"', start, end) % 2
            if is_closed or is_over or end >= len(buffer):
                break
            next_start = tape.offset + end + 1
        self._row = None
        tape.scanned = 0
        if is_closed:
            stop = end - 1 if buffer[end - 1] == _CR else end
            self._take(tape, stop)
        else:
            # No line that was looked at has an odd number of quotes, so none is looked at again.
            self._take(tape, first_stop - tape.offset)
            tape.skip_to(second - tape.offset)
        return True

    def _take(self, tape: Tape, stop: int) -> None:
        raw = bytes(tape.buffer[tape.at : stop])
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            tape.take_to(stop, problem=explain_bytes(error, tape.position))
            return
        cells: dict[str, str] = {}
        columns = self._columns or []
        for place, cell in enumerate(split_row(text, self._delimiter)):
            name = columns[place] if place < len(columns) else f"column {place + 1}"
            cells.setdefault(name, cell)
        if "raw" in cells:
            tape.take_to(stop, cells["raw"], envelope_of_row(cells))
        else:
            tape.take_to(stop, text)
