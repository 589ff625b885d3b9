"""The bytes that were fed and not yet handed on, with the counters that every form of log shares; and what framing
yields: records, the bytes between them, and the pieces of a record that is over the limit.

Offsets and lengths count bytes of the stream as it was fed (decompressed). In the order of their offsets, the bytes of
`Scaffold`, `Piece` and `LogRecord.source` give the stream back: nothing is dropped and nothing is shown twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
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

    `code` is `not-utf-8`, `utf-16`, `too-long` or `cut`; of a whole stream also `passed-over`. `offset` counts bytes of
    the stream to the first that is at fault.
    """

    code: Literal["not-utf-8", "utf-16", "too-long", "cut", "passed-over"]
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


_FIRST_CHAIN = bytes(32)


class Tape:
    """A buffer with a cursor. What lies before the cursor was handed on, or waits as the gap before the next record.

    `buffer[at:]` is unread; `offset` is the place of `buffer[0]` in the stream. `scanned` is an index up to which
    the form at work found nothing that ends its record, so that no byte is searched twice.
    """

    def __init__(self, options: LogOptions) -> None:
        self.options = options
        self.buffer = bytearray()
        self.at = 0
        self.scanned = 0
        self.items: list[Item] = []
        self.ending: Problem | None = None
        self.offset = 0
        self.index = 0
        self.line = 1
        self._chain = _FIRST_CHAIN
        self._gap = bytearray()
        # Where the record begins that is over the limit and is being handed on in pieces: (offset, line).
        self._long: tuple[int, int] | None = None

    @property
    def position(self) -> int:
        """The cursor's place in the stream."""
        return self.offset + self.at

    @property
    def unread(self) -> int:
        """How many bytes were fed and not yet read."""
        return len(self.buffer) - self.at

    @property
    def is_in_long(self) -> bool:
        """Whether a record over the limit is under way."""
        return self._long is not None

    def add(self, chunk: bytes) -> None:
        """Append what was fed."""
        self.buffer += chunk

    def collect(self) -> list[Item]:
        """What was handed on since the last time; the buffer forgets what was read."""
        if self.at:
            del self.buffer[: self.at]
            self.offset += self.at
            self.scanned = max(0, self.scanned - self.at)
            self.at = 0
        items, self.items = self.items, []
        return items

    def skip_to(self, end: int) -> None:
        """Read up to the index `end` as bytes that belong to no record."""
        passed = self.buffer[self.at : end]
        self.line += passed.count(b"\n")
        self._gap += passed
        self.at = end
        while len(self._gap) >= SCAFFOLD_BYTES:
            self._hand_on_gap(SCAFFOLD_BYTES)

    def take_to(
        self,
        end: int,
        wire: str | None = None,
        envelope: Envelope | None = None,
        problem: Problem | None = None,
    ) -> None:
        """Read up to the index `end` as one record."""
        source = bytes(self.buffer[self.at : end])
        offset = self.offset + self.at
        gap = bytes(self._gap)
        if gap:
            self.items.append(Scaffold(offset=offset - len(gap), data=gap))
            self._gap.clear()
        self._chain = sha256(self._chain + gap + source).digest()
        self.items.append(
            LogRecord(
                index=self.index,
                offset=offset,
                length=len(source),
                line=self.line,
                source=source,
                chain=self._chain,
                wire=wire,
                envelope=envelope,
                problem=problem,
            )
        )
        self.index += 1
        self.line += source.count(b"\n")
        self.at = end

    def take_long(self, end: int, *, is_end: bool, problem: Problem | None = None) -> None:
        """Hand on what is there of a record over the limit, up to the index `end`; with `is_end` it ends there.

        The pieces are cut by size alone, so that they do not depend on how the stream was fed.
        """
        if self._long is None:
            self._hand_on_gap(len(self._gap))
            self._long = (self.position, self.line)
        offset, line = self._long
        while end - self.at > PIECE_BYTES:
            self._hand_on_piece(self.at + PIECE_BYTES)
        if not is_end:
            return
        if end > self.at:
            self._hand_on_piece(end)
        length = self.position - offset
        self._long = None
        limit = self.options.max_record_bytes
        reason = f"the record has {length} bytes; the limit is {limit}"
        self.items.append(
            LogRecord(
                index=self.index,
                offset=offset,
                length=length,
                line=line,
                source=None,
                chain=self._chain,
                problem=problem or Problem(code="too-long", reason=reason, offset=offset + limit),
            )
        )
        self.index += 1

    def finish(self) -> None:
        """Hand on the gap that no record follows."""
        self._hand_on_gap(len(self._gap))

    def _hand_on_gap(self, size: int) -> None:
        if size:
            data = bytes(self._gap[:size])
            # The gap ends at the cursor.
            self.items.append(Scaffold(offset=self.position - len(self._gap), data=data))
            self._chain = sha256(self._chain + data).digest()
            del self._gap[:size]

    def _hand_on_piece(self, end: int) -> None:
        data = bytes(self.buffer[self.at : end])
        self.items.append(Piece(offset=self.position, data=data))
        self._chain = sha256(self._chain + data).digest()
        self.line += data.count(b"\n")
        self.at = end

    def to_state(self) -> dict[str, Any]:
        """The counters as JSON types; `offset` is where the stream must be read on from."""
        return {
            "offset": self.position,
            "index": self.index,
            "line": self.line,
            "chain": self._chain.hex(),
            "gap": self._gap.hex(),
            "long": self._long,
            # Of a long record some bytes were handed on, and some were searched that were not.
            "scanned": self.offset + self.scanned if self._long else None,
            "ending": self.ending.to_dict() if self.ending else None,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take the counters from `to_state`."""
        self.offset = state["offset"]
        self.index = state["index"]
        self.line = state["line"]
        self._chain = bytes.fromhex(state["chain"])
        self._gap = bytearray.fromhex(state["gap"])
        self._long = (state["long"][0], state["long"][1]) if state["long"] else None
        self.scanned = state["scanned"] - self.offset if self._long else 0
        # A checkpoint of an earlier version has none.
        ending = state.get("ending")
        self.ending = Problem(**ending) if ending else None
