"""The forms of a file besides the report: JSON Lines, CSV, and findings as rows of either.

JSON Lines: one record a line, in the envelope form that every door of the product reads back. The line is the record as
its log held it: `raw` and the names of its envelope, and nothing that the log did not say. So a file that is delivered
again gives the same wires, and where a record has an id or a time, the same record. What the inspector makes of it
stands apart, under `inspected`, which is passed over when the line is read back. The characters are ASCII, with escapes
for all others: lone surrogates, NUL and line ends of any kind come back as they were. A number that JSON has not
becomes text.

CSV by RFC 4180: one message a row, with every name of the normalised record as a column, safe in a spreadsheet. A cell
that would begin a formula has an apostrophe before it (ASVS 5.0, 1.2.10), and lines end with CR LF. What cannot be
seen, or not be held by UTF-8, is made visible. CSV is for reading; what must be exact is in JSON Lines.

Findings: one a row, with the text of the message that it is about, and as it stands when its row is written. What a
message says of itself is as long as `MAX_FINDING_BYTES` allows: there can be many findings about one message.
"""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Final

from dialects import HIDDEN_CLASS, INSPECTED, Message, make_visible, write_json
from inspector.audit.findings.services import list_decisions
from inspector.audit.models import Finding, FindingAct
from inspector.audit.rules import name_rule
from inspector.audit.rules.rule import SEVERITIES
from inspector.intake.readings import (
    MAX_BYTES_LOOKED_THROUGH,
    conceal_around,
    find_outer_secrets,
    mask,
    read_with_facts,
    unfold_reading,
)

from .entries import Part, Row, find_findings
from .models import Export

# A longer record carries its text alone, so that its line is not longer than a door takes.
MAX_WHOLE_BYTES: Final = 1024 * 1024
# What is nested deeper could not be read back by every reader; the record carries it in its text anyway.
MAX_DEPTH: Final = 200
# Brackets, and whole strings, so that a bracket within one is none.
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_NAMES: Final = {"sender": "from", "receivers": "to"}


def write_line(row: Row, channels: Mapping[str, str]) -> bytes:
    """The line of a record, its end included.

    Args:
        row: the record.
        channels: the names of the workspace's channels by their ids.
    """
    is_masked, digest, shown = row.is_masked, row.sha256, row.shown
    text = "null" if shown is None else write_text(shown)
    line = "".join((
        '{"raw":', text, *_write_envelope(row.envelope), f',"{INSPECTED}":',
        '{"record":"', row.id,
        '","sha256":', f'"{digest}"' if digest else "null",
        ',"is_changed":', "false" if digest else "true",
        ',"channel":', encode_basestring_ascii(channels[row.channel]),
        ',"at":"', write_instant(row.parts[0].at),
        '","at_basis":"', row.parts[0].at_basis,
        '","dialect":"', row.parts[0].read_in,
        '","is_masked":', "true" if is_masked else "false",
        *(() if is_masked else _write_source(row)),
        ',"messages":[', ",".join(_write_part(part, is_long=len(row.source) > MAX_WHOLE_BYTES)
                                  for part in row.parts),
        "]}}\n",
    ))  # fmt: skip
    # Of a long text each character has its own bytes, unless one has none.
    return line.encode("utf-8", "surrogatepass")


def write_text(text: str) -> str:
    """The text as a JSON string, in ASCII; a very long one as it stands, where it can."""
    if len(text) <= MAX_WHOLE_BYTES:
        return encode_basestring_ascii(text)
    written = encode_basestring(text)
    try:
        written.encode()
    except UnicodeEncodeError:
        return encode_basestring_ascii(text)
    return written


def _write_envelope(envelope: str) -> Iterator[str]:
    if not envelope:
        return
    said: dict[str, Any] = json.loads(envelope)
    extra = said.pop("extra", {})
    instant, at_raw = said.pop("at", None), said.pop("at_raw", None)
    if at_raw or instant:
        yield f',"at":{encode_basestring_ascii(at_raw or instant)}'
    for name, value in said.items():
        yield f',"{_NAMES.get(name, name)}":{write_value(value)}'
    for name, value in extra.items():
        if name == INSPECTED:
            continue
        yield f",{encode_basestring_ascii(name)}:{write_value(value)}"


def write_value(value: Any) -> str:
    """A JSON type, in ASCII; a number that JSON has not becomes text."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    try:
        return _encode(value)
    except ValueError:
        return _encode(json.loads(write_json(value)))


def _write_source(row: Row) -> Iterator[str]:
    """The exact slice, where it is not the text itself."""
    if row.wire is None or row.source == row.wire or len(row.source) > MAX_WHOLE_BYTES:
        return
    try:
        yield f',"source":{encode_basestring_ascii(row.source.decode())}'
    except UnicodeDecodeError:
        yield f',"source_base64":"{b64encode(row.source).decode()}"'


def _write_part(part: Part, *, is_long: bool) -> str:
    return "".join((
        '{"id":"', part.id,
        '","part":', str(part.part),
        ',"conversation":"', part.conversation,
        '","position":', str(part.position),
        ',"parent":', f'"{part.parent}"' if part.parent else "null",
        ',"parent_basis":"', part.parent_basis,
        '","severity":"', SEVERITIES[part.severity],
        '","english":', "null" if is_long else encode_basestring_ascii(part.told),
        ',"told":', "null" if is_long else _write_body(part.body),
        "}",
    ))  # fmt: skip


def _write_body(body: str) -> str:
    """What was told, as it is stored; null where it is not told yet, or nested too deeply."""
    if not body or nests_deeply(body):
        return "null"
    if "NaN" in body or "Infinity" in body:
        return write_value(json.loads(body))
    return body


def nests_deeply(text: str) -> bool:
    """Whether a JSON text is nested deeper than `MAX_DEPTH`."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(text):
        if bracket in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif bracket in ("]", "}"):
            depth -= 1
    return False


def write_second(instant: datetime) -> str:
    """An instant for people: to the second, in UTC."""
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def write_instant(instant: datetime) -> str:
    """An instant as ISO 8601 in UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def mask_row(row: Row) -> None:
    """Set what stands for the record's text, where it holds a secret or is too long to be looked through."""
    if len(row.source) > MAX_BYTES_LOOKED_THROUGH or not row.source:
        row.is_withheld = True
        return
    spans, envelope = [], row.envelope
    for dialect in {part.read_in for part in row.parts}:
        reading = read_with_facts(row.text, row.envelope, row.facts, dialect=dialect)
        spans += find_outer_secrets(unfold_reading(reading))
        envelope = conceal_around(reading, envelope)
    if spans or envelope != row.envelope:
        row.masked, row.envelope = mask(row.text, spans), envelope


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
    yield from (part.id, row.id, part.part, make_cell(channels[row.channel]), part.conversation, part.position)
    yield from (write_instant(part.at), part.at_basis, part.dialect, SEVERITIES[part.severity])
    yield from (part.parent or "", part.parent_basis, make_cell(row.shown or ""), "yes" if row.is_masked else "no")
    yield from (row.sha256 or "", "yes" if row.changed is not None else "no")
    body = json.loads(part.body) if 0 < len(part.body) <= _MAX_CELL_LENGTH else {"message": {}, "record": {}}
    told: Mapping[str, Any] = body["message"]
    cells: list[str] = [""] * len(RECORDS)
    # Most names are absent of most messages.
    for name, value in told.items():
        if name in _PLACES:
            cells[_PLACES[name]] = _make_value(value, name)
    # Nobody reads the sentence without what is doubtful of it.
    cells[_PLACES["english"]] = make_cell(part.told)
    yield from cells


def _make_value(value: Any, name: str = "") -> str:
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


# Of a longer record neither text nor English is in a row.
MAX_FINDING_BYTES: Final = 64 * 1024
FINDING_COLUMNS: Final = (
    *("id", "rule", "title", "severity", "state", "holds", "is_suppressed", "assignee", "snoozed_until"),
    *("decided_by", "decided_at", "reason", "text", "cites", "at", "found_at", "sender", "channel", "conversation"),
    *("message", "record", "part", "span", "english", "raw", "is_masked", "sha256", "is_changed"),
)

Said = Mapping[tuple[str, int], Sequence[tuple[Finding, FindingAct | None]]]


def load_findings(export: Export, rows: Sequence[Row]) -> Said:
    """The findings that an export means of these records, by record and part, each with the latest decision on it."""
    found = list(find_findings(export, export.workspace).filter(record__in=[row.id for row in rows]))
    decisions = list_decisions(findings=found)
    said = defaultdict(list)
    for finding in found:
        said[str(finding.record_id), finding.part].append((finding, decisions.get(finding.pk)))
    return said


def write_findings(row: Row, *, said: Said, channels: Mapping[str, str], is_csv: bool) -> bytes:
    """The rows of the findings about a record's messages."""
    listed = (
        list(_list_finding(finding, act, row, part, channels[row.channel]))
        for part in row.parts
        for finding, act in said.get((row.id, part.part), ())
    )
    if is_csv:
        return write_cells([_make_value(value) for value in values] for values in listed)
    # ASCII, as every line of an export.
    return b"".join(json.dumps(dict(zip(FINDING_COLUMNS, values, strict=True))).encode() + b"\n" for values in listed)


def _list_finding(finding: Finding, act: FindingAct | None, row: Row, part: Part, channel: str) -> Iterator[Any]:
    """What stands in a row, in the order of `FINDING_COLUMNS`, as JSON types."""
    has_text = len(row.source) <= MAX_FINDING_BYTES and not row.is_withheld
    yield from (str(finding.pk), finding.rule, name_rule(finding.rule))
    yield from (SEVERITIES[finding.severity], finding.state, finding.holds, finding.is_suppressed)
    yield finding.assignee.get_username() if finding.assignee else None
    yield write_instant(finding.snoozed_until) if finding.snoozed_until else None
    yield from (act.by.get_username(), write_instant(act.at), act.reason) if act else (None, None, None)
    yield from (finding.text, finding.cites, write_instant(finding.at), write_instant(finding.found_at))
    yield from (finding.sender, channel, str(finding.conversation_id), part.id, row.id, part.part, finding.place)
    yield part.told if has_text else None
    yield row.shown if has_text else None
    yield from (row.is_masked, row.sha256, row.changed is not None)
