"""The beginning of a log as it would be told: records read with what their delivery says of them, nothing stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dialects import Context, LogRecord, Reading, choose_dialect, identify, tell
from inspector.intake.concealing import conceal_reading, conceal_told
from inspector.intake.facts import facts_at, read_with_facts
from inspector.intake.identity import write_envelope

# A longer one takes too long to tell while somebody waits for it.
LONGEST_WIRE = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """A record of a preview. `reading` is None for what is quarantined, and for what is too long to be told here.

    `time_basis` is wire or envelope where the record carries a time, else empty.
    """

    record: LogRecord
    reading: Reading | None
    time: str | None
    time_basis: str


def foretell(*, records: Iterable[LogRecord], options: Mapping[str, Any]) -> list[Foretold]:
    """Read and tell the first records of a log in their order, each in the context of its conversation.

    Args:
        records: from the first on, as framing gives them.
        options: the delivery's, see `facts.facts_at`.
    """
    contexts: dict[object, Context] = defaultdict(lambda: Context(position=0))
    return [_foretell(record, options, contexts) for record in records]


def _foretell(record: LogRecord, options: Mapping[str, Any], contexts: dict[object, Context]) -> Foretold:
    if record.wire is None or len(record.wire) > LONGEST_WIRE:
        return Foretold(record=record, reading=None, time=None, time_basis="")
    facts = facts_at(options, record.index).write()
    reading = read_with_facts(record.wire, write_envelope(record.envelope), facts)
    first = reading.messages[0]
    parties = frozenset((first.sender, *first.receivers)) if first.sender and first.receivers else None
    context = contexts[first.conversation_id or parties]
    context.record, context.position = str(record.index), context.position + 1
    # Its dialect may be settled otherwise than it was read, and is then read from the wire.
    chosen = conceal_reading(choose_dialect(reading, context))
    whole = conceal_told(tell(chosen, context), chosen).whole
    own = identify(record.wire).time
    outer = record.envelope.at if record.envelope else None
    basis = "wire" if own else "envelope" if outer else ""
    return Foretold(record=record, reading=whole, time=own or outer, time_basis=basis)
