"""Logs of lines: text, JSON Lines, and files where each line decides by itself what it is; and CSV with a header row:
one column is the wire, the columns it knows are the envelope, the rest is kept in `extra`.

Only LF and CR LF end a line. Blank lines are scaffold, and so are a comma behind an object or a string, and lines that
begin with `//` as long as no text came before them: the comments of a file of JSON. Each line of prose is a record of
its own, also above a signed block: in a log of lines it is as likely another's. Where the sender declares NDJSON, a
line is a record whatever the lines around it hold: no comments, no prefixes.

A cell of CSV in double quotes may hold line ends; a doubled quote is one quote (RFC 4180). A quote that is never closed
takes no other row with it: its line stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._record import Envelope
from .blocks import JSON, Gathering, is_object, open_block
from .envelopes import COLUMNS, envelope_of_row, merge_envelopes, read_object, read_prefix, read_string
from .tape import LogOptions, Problem, Tape

_CR = 13


def find_line(tape: Tape, *, is_last: bool) -> tuple[int, int] | None:
    """The indexes where the text of the line at the cursor stops and where the next line begins.

    None where the line's end was not fed yet. A line over the limit is handed on in pieces, and never found.
    """
    buffer = tape.buffer
    limit = tape.options.max_record_bytes
    while tape.at < len(buffer):
        end = buffer.find(b"\n", max(tape.at, tape.scanned))
        if end < 0 and not is_last:
            tape.scanned = len(buffer)
            if tape.is_in_long or tape.unread > limit + 1:
                tape.take_long(len(buffer), is_end=False)
            return None
        after = end + 1 if end >= 0 else len(buffer)
        end = end if end >= 0 else len(buffer)
        stop = end - 1 if end > tape.at and buffer[end - 1] == _CR else end
        if not tape.is_in_long and stop - tape.at <= limit:
            return stop, after
        tape.take_long(stop, is_end=True)
        tape.skip_to(after)
    if is_last and tape.is_in_long:
        tape.take_long(len(buffer), is_end=True)
    return None


def explain_bytes(error: UnicodeDecodeError, offset: int) -> Problem:
    """The problem of bytes that begin at `offset` and are not UTF-8."""
    at = offset + error.start
    reason = f"byte 0x{error.object[error.start]:02x} at offset {at} is not UTF-8"
    return Problem(code="not-utf-8", reason=reason, offset=at)


class _Head:
    """The first line of a block under way: the bytes and the envelope of its prefix, and the text after it."""

    def __init__(self, prefix_bytes: int, envelope: Envelope | None, text: str) -> None:
        self.prefix_bytes = prefix_bytes
        self.envelope = envelope
        self.text = text
        # Who opened a block here and was cut short, and the offset that each came to.
        self.failed: dict[str, int] = {}


class LineForm:
    """Frames lines, and blocks of lines."""

    name = "lines"

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        # Up to which offset a block of an opener was cut short.
        self._cut: dict[str, int] = dict(state.get("cut", {}))
        self._has_text: bool = state.get("has_text", False)
        self._open: tuple[Gathering, _Head] | None = None

    def to_state(self, *, is_in_long: bool = False) -> dict[str, Any]:
        """What must be known to go on at the cursor. A block under way is read again from its first line."""
        return {"cut": dict(self._cut), "has_text": self._has_text}

    def run(self, tape: Tape, *, is_last: bool) -> bool:
        """Read what can be read. A log of lines ends with its stream, so the answer is always False."""
        while True:
            if self._open is None:
                found = find_line(tape, is_last=is_last)
                if found is None:
                    return False
                self._read_line(tape, *found)
            elif not self._go_on(tape, *self._open, is_last=is_last):
                return False

    def _read_line(self, tape: Tape, stop: int, after: int) -> None:
        raw = bytes(tape.buffer[tape.at : stop])
        if not raw.strip():
            tape.skip_to(after)
            return
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            tape.take_to(stop, problem=explain_bytes(error, tape.position))
            tape.skip_to(after)
            return
        if tape.options.form == "ndjson":
            take = self._take_object if is_object(text) else self._take
            take(tape, stop, _Head(0, None, text))
            tape.skip_to(after)
            return
        if not self._has_text and raw.lstrip().startswith(b"//"):
            tape.skip_to(after)
            return
        length, envelope = read_prefix(text) if tape.options.prefixes else (0, None)
        head = _Head(len(text[:length].encode()), envelope, text[length:])
        if not self._open_block(tape, head, stop, after):
            self._take(tape, stop, head)
            tape.skip_to(after)

    def _open_block(self, tape: Tape, head: _Head, stop: int, after: int) -> bool:
        """Whether another opens a block with this line; an object on one line is taken at once."""
        opened = open_block(head.text, self._cut, head.failed, tape.position)
        if opened is None:
            return False
        if opened.opener == JSON and opened.block.is_complete:
            self._take_object(tape, stop, head)
            tape.skip_to(after)
        else:
            self._open = (Gathering(opened, tape.offset + stop, tape.offset + after), head)
        return True

    def _go_on(self, tape: Tape, gathering: Gathering, head: _Head, *, is_last: bool) -> bool:
        """Whether the block under way came to its end, and was read."""
        count = gathering.gather(tape, is_last=is_last)
        if count is None:
            return False
        self._open = None
        tape.scanned = 0
        first_stop, after = gathering.ends[0] - tape.offset, gathering.second - tape.offset
        if not gathering.is_whole:
            head.failed[gathering.opener] = gathering.ends[-1]
            if self._open_block(tape, head, first_stop, after):
                return True
        stop = gathering.ends[count - 1] - tape.offset
        for opener, until in head.failed.items():
            self._cut[opener] = max(until, self._cut.get(opener, 0))
        self._cut = {opener: until for opener, until in self._cut.items() if until > tape.offset + stop}
        if gathering.opener == JSON and gathering.block.is_complete:
            self._take_object(tape, stop, head)
        else:
            self._take(tape, stop, head)
        return True

    def _take(self, tape: Tape, stop: int, head: _Head) -> None:
        """Read up to `stop` as text, which may be a JSON string."""
        wire = bytes(tape.buffer[tape.at + head.prefix_bytes : stop]).decode()
        if wire.lstrip()[:1] == '"' and self._take_string(tape, stop, head, wire):
            return
        self._has_text = True
        tape.take_to(stop, wire, head.envelope)

    def _take_string(self, tape: Tape, stop: int, head: _Head, wire: str) -> bool:
        inner = wire.strip().removesuffix(",").rstrip()
        text = read_string(inner)
        if text is None:
            return False
        self._take_inside(tape, stop, head, inner, text, None)
        return True

    def _take_object(self, tape: Tape, stop: int, head: _Head) -> None:
        """Read up to `stop` as a JSON object; white space around it and a comma behind it are scaffold."""
        text = bytes(tape.buffer[tape.at + head.prefix_bytes : stop]).decode()
        inner = text[: text.rindex("}") + 1].lstrip()
        wire, envelope = read_object(inner, tape.options.fields)
        self._take_inside(tape, stop, head, inner, wire, envelope)

    def _take_inside(
        self, tape: Tape, stop: int, head: _Head, inner: str, wire: str, envelope: Envelope | None
    ) -> None:
        start = tape.buffer.index(inner.encode(), tape.at + head.prefix_bytes)
        if not head.prefix_bytes:
            tape.skip_to(start)
        tape.take_to(start + len(inner.encode()), wire, merge_envelopes(envelope, head.envelope))
        tape.skip_to(stop)


_NAME = re.compile(r"\s*[^\W\d][\w .\-/]{0,63}\s*\Z")
_QUOTED = re.compile(r'"((?>(?:[^"]++|"")*))"')


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
