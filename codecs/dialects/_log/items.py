"""What framing yields: records, the bytes between them, and the pieces of a record that is over the limit.

Offsets and lengths count bytes of the stream as it was fed (decompressed). In the order of their offsets, the
bytes of `Scaffold`, `Piece` and `LogRecord.source` give the stream back: nothing is dropped and nothing is shown twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .._record import Envelope
from .._value import Value

MAX_RECORD_BYTES = 16 * 1024 * 1024
MAX_BLOCK_LINES = 100_000

# A record over the limit is handed on in pieces of this size, and the bytes between two records in these.
PIECE_BYTES = 1024 * 1024
SCAFFOLD_BYTES = 4096

Form = Literal["lines", "ndjson", "array", "csv"]


class LogOptions(Value):
    """How to frame a log.

    Attributes:
        form: `lines` (text and JSON Lines, each line decides by itself), `ndjson` (one JSON value a line: what is none
            is a text of its own, and no record has two lines), `array` (a JSON array, or an object that holds one as
            `messages`) or `csv`; None looks at the first bytes.
        name: the file's name; its extension only helps where the bytes leave it open.
        prefixes: whether a time, a bracketed label and a speaker before a text become the envelope.
        fields: names of the log's own fields by the envelope's name, as {"raw": "message", "at": "ts"}; for objects
            and for CSV columns.
        max_record_bytes: a longer record is quarantined.
        max_block_lines: a block of more lines is cut.
    """

    form: Form | None = None
    name: str | None = None
    prefixes: bool = True
    fields: Mapping[str, str] = {}
    max_record_bytes: int = MAX_RECORD_BYTES
    max_block_lines: int = MAX_BLOCK_LINES


class Problem(Value):
    """Why a record is quarantined: its bytes cannot become text.

    `code` is `not-utf-8`, `utf-16`, `too-long` or `cut`; `offset` counts bytes of the stream to the first that is
    at fault.
    """

    code: Literal["not-utf-8", "utf-16", "too-long", "cut"]
    reason: str
    offset: int


class LogRecord(Value):
    """One stretch of the stream that carries messages.

    Attributes:
        index: its place among the records of the delivery, from 0; quarantined ones count.
        offset: where it begins, in bytes; `length` is its size in bytes.
        line: the line it begins on, from 1.
        source: its exact bytes, envelope included; None where it is over the limit and its bytes were handed on as
            the pieces just before it.
        wire: the text read from it; None for a quarantined record.
        envelope: what the log says around the text, or None.
        chain: 32 bytes that stand for the stream up to and including this record: the SHA-256 of the chain of the
            record before (32 zeros for the first) and all bytes from its end to the end of this one. Where that is
            more than one scaffold of 4096 bytes, or a record in pieces, each of these is a link of its own.
        problem: why it is quarantined, or None.
    """

    index: int
    offset: int
    length: int
    line: int
    source: bytes | None
    chain: bytes
    wire: str | None = None
    envelope: Envelope | None = None
    problem: Problem | None = None

    @property
    def dialect(self) -> str | None:
        """The dialect that the log names for this record."""
        return self.envelope.dialect if self.envelope else None

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON types; bytes as hexadecimal text."""
        return super().to_dict()


class Piece(Value):
    """Some bytes of a record over the limit; the `LogRecord` they belong to follows, without its source."""

    offset: int
    data: bytes


class Scaffold(Value):
    """Bytes between records: line ends, blank lines, brackets, commas, comments, a CSV header, a byte order mark."""

    offset: int
    data: bytes


Item = LogRecord | Piece | Scaffold
