"""Which record is new, and where it stands in order: the two rules everything rests on; and what the sender of a
delivery should be told of its records: all counted by code, the first hundred kept, and the first of each code. Pure
functions.
"""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any, Final

from dialects import Envelope, LogRecord, LogWarning, Problem, detect, identify, warning_of_end, warnings_of

BY_ID, BY_TIME, BY_FILE, BY_RECEIPT = 1, 2, 3, 4

_pack_length = struct.Struct(">Q").pack

OrderKey = tuple[datetime, bytes, int]


def digest_parts(*parts: bytes) -> bytes:
    """SHA-256 over the parts, each preceded by its length: no two lists of parts share a digest by their joints."""
    state = hashlib.sha256()
    for part in parts:
        state.update(_pack_length(len(part)))
        state.update(part)
    return state.digest()


def digest_texts(*texts: str) -> bytes:
    """`digest_parts` of texts, lone surrogates included."""
    return digest_parts(*(text.encode("utf-8", "surrogatepass") for text in texts))


def write_envelope(envelope: Envelope | None) -> str:
    """The envelope as canonical JSON text (ASCII), or the empty text: equal envelopes are equal texts."""
    if envelope is None:
        return ""
    said = {name: value for name, value in envelope.to_dict().items() if value not in (None, [], {})}
    return json.dumps(said, sort_keys=True, separators=(",", ":")) if said else ""


def read_envelope(text: str) -> Envelope | None:
    """The envelope that `write_envelope` wrote."""
    if not text:
        return None
    said = json.loads(text)
    return Envelope(**said | {"receivers": tuple(said.get("receivers", ()))})


@dataclass(slots=True)
class Draft:
    """A framed record with its identity and order, ready to be stored."""

    framed: LogRecord
    wire: bytes
    envelope: str
    rule: int
    likeness: bytes | None
    identity: bytes
    time: datetime
    basis: str
    is_quarantined: bool = False
    warnings: tuple[LogWarning, ...] = ()

    @property
    def index(self) -> int:
        """The record's place in its delivery, from zero."""
        return self.framed.index


def draft_record(
    framed: LogRecord,
    *,
    series: uuid.UUID | None,
    start: datetime | None,
    received_at: datetime,
    form: str | None = None,
) -> Draft:
    """Identify a framed record and fix its time. For rule 2 the count within the delivery is still open (n = 0).

    The warnings that it comes with decide nothing.

    Args:
        framed: the record as framing gives it.
        series: of a POST, the delivery or the first of its tries (rule 4); None for a file (rule 3).
        start: the delivery's declared start, if any.
        received_at: when the delivery was received.
        form: how the log was framed, as its sender declared.
    """
    wire = (framed.wire or "").encode("utf-8", "surrogatepass")
    envelope = write_envelope(framed.envelope)
    said = framed.envelope or Envelope()
    dialect = detect(framed.wire)[0].dialect if framed.wire is not None else ""
    own = identify(framed.wire, dialect) if framed.wire is not None else None
    name = (own.id if own else None) or said.id
    conversation = (own.conversation if own else None) or said.conversation or ""
    wire_time = own.time if own else None
    likeness: bytes | None = None
    if framed.problem is None and name:
        rule = BY_ID
        identity = digest_parts(digest_texts("id", conversation, name), wire)
    elif framed.problem is None and (wire_time or said.at):
        rule = BY_TIME
        likeness = digest_parts(b"timed", wire, envelope.encode())
        identity = count_equal(likeness, 0)
    elif series is None:
        rule = BY_FILE
        identity = digest_parts(b"file", framed.chain)
    else:
        rule = BY_RECEIPT
        identity = digest_parts(b"receipt", series.bytes, framed.chain)
    if framed.problem is not None:
        # What cannot be read is never what can be: where a file is cut right at the end of a line, the whole file has
        # the same bytes there, and they are to be read.
        identity = digest_parts(b"quarantined", identity)
    time, basis = find_time(wire_time, said.at, start, received_at)
    return Draft(
        framed=framed,
        wire=wire,
        envelope=envelope,
        rule=rule,
        likeness=likeness,
        identity=identity,
        time=time,
        basis=basis,
        is_quarantined=framed.problem is not None,
        warnings=warnings_of(framed, dialect, form=form),
    )


def count_equal(likeness: bytes, number: int) -> bytes:
    """The identity of the n-th of several equal timed records in one delivery, from zero."""
    return digest_parts(likeness, struct.pack(">Q", number))


def find_time(
    wire: str | None, envelope: str | None, start: datetime | None, received_at: datetime
) -> tuple[datetime, str]:
    """The time that a record is ordered by, and how it is known: wire, envelope, start or receipt."""
    if wire:
        return datetime.fromisoformat(wire), "wire"
    if envelope:
        return datetime.fromisoformat(envelope), "envelope"
    if start:
        return start, "start"
    return received_at, "receipt"


MAX_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class WarningRow:
    """A warning of one record: its place in the delivery from zero, and the line that it begins on from one."""

    index: int
    line: int
    code: str
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Warned:
    """The warnings of a delivery: the first of them, and how many there are, by code."""

    first: tuple[WarningRow, ...]
    counts: Mapping[str, int]

    @property
    def kinds(self) -> tuple[WarningRow, ...]:
        """Of those alike in their words the first."""
        found: dict[tuple[str, str], WarningRow] = {}
        for row in self.first:
            found.setdefault((row.reason, row.hint), row)
        return tuple(found.values())

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


def add_warnings(held: dict[str, Any], drafts: Iterable[Draft]) -> dict[str, Any]:
    """What is held of a delivery's warnings, with those of these records; what was given is left as it is."""
    rows = [
        WarningRow(draft.index, draft.framed.line, warning.code, warning.reason, warning.hint)
        for draft in drafts
        for warning in draft.warnings
    ]
    return _add(held, rows)


def add_ending(held: dict[str, Any], index: int, line: int, ending: Problem) -> dict[str, Any]:
    """The same with what is wrong with the stream as a whole, told at its end: behind its last record."""
    warning = warning_of_end(ending)
    return _add(held, [WarningRow(index, line, warning.code, warning.reason, warning.hint)])


def _add(held: dict[str, Any], rows: Sequence[WarningRow]) -> dict[str, Any]:
    if not rows:
        return held
    first = list(held.get("first", ()))
    counts = Counter(held.get("counts", {}))
    for row in rows:
        if len(first) < MAX_KEPT or row.code not in counts:
            first.append(astuple(row))
        counts[row.code] += 1
    return {"counts": dict(counts), "first": first}


def list_warnings(held: Mapping[str, Any]) -> Warned:
    """The warnings that `add_warnings` put together."""
    return Warned(tuple(WarningRow(*row) for row in held.get("first", ())), held.get("counts", {}))
