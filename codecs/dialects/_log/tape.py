"""The bytes that were fed and not yet handed on, with the counters that every form of log shares."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from .._record import Envelope
from .items import PIECE_BYTES, SCAFFOLD_BYTES, Item, LogOptions, LogRecord, Piece, Problem, Scaffold

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
