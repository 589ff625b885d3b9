"""JSON Lines: one record a line, in the envelope form that every door of the product reads back.

The line is the record as its log held it: `raw` and the names of its envelope, and nothing that the log did not say.
So a file that is delivered again gives the same wires, and where a record has an id or a time, the same record. What
the inspector makes of it stands apart, under `inspected`, which is passed over when the line is read back.

The characters are ASCII, with escapes for all others: lone surrogates, NUL and line ends of any kind come back as they
were. A number that JSON has not becomes text.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Final

from dialects import INSPECTED, write_json
from inspector.intake.readings import (
    MAX_BYTES_LOOKED_THROUGH,
    conceal_around,
    find_outer_secrets,
    mask,
    read_with_facts,
    unfold_reading,
)

from .entries import Part, Row

# A longer record carries its text alone, so that its line is not longer than a door takes.
MAX_WHOLE_BYTES: Final = 1024 * 1024
# What is nested deeper could not be read back by every reader; the record carries it in its text anyway.
MAX_DEPTH: Final = 200
SEVERITIES: Final = ("none", "info", "notice", "warning", "error")
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
    is_masked, digest = row.masked is not None or row.is_withheld, row.sha256
    text = "null" if row.is_withheld else write_text(row.text if row.masked is None else row.masked)
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
