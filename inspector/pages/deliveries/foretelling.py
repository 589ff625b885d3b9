"""The beginning of a log as it would be told: records read with what their delivery says of them, nothing stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from dialects import Context, LogRecord, Message, Reading, choose_dialect, identify, tell
from inspector.intake.concealing import conceal_reading, conceal_told
from inspector.intake.facts import facts_at, read_with_facts
from inspector.intake.identity import find_time, write_envelope
from inspector.threads.placing.keys import key_of_conversation

# A longer one takes too long to tell while somebody waits for it.
MAX_WIRE = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """A record of a preview. `reading` is None for what is quarantined, and for what is too long to be told here.
    `time_basis` is wire or envelope where the record carries a time, else empty."""

    record: LogRecord
    reading: Reading | None
    time: str | None
    time_basis: str


def foretell(
    *, records: Iterable[LogRecord], options: Mapping[str, Any], start: datetime | None = None
) -> list[Foretold]:
    """The first records of a log in their order, each told in the context of its conversation. `options` are the
    delivery's (`facts.facts_at`), `start` is when the log begins, for records that carry no time."""
    contexts: dict[bytes, Context] = defaultdict(Context)
    held = list(records)
    now = timezone.now()
    times = {record.index: _find_time(record) for record in held}
    timeline = sorted(held, key=lambda record: (find_time(*times[record.index], start, now)[0], record.index))
    told = {record.index: _foretell(record, times[record.index], options, contexts) for record in timeline}
    return [told[record.index] for record in held]


def _find_time(record: LogRecord) -> tuple[str | None, str | None]:
    """The time on the wire and the time of the envelope, as far as there are any."""
    own = identify(record.wire).time if record.wire is not None else None
    return own, record.envelope.at if record.envelope else None


def _foretell(
    record: LogRecord,
    times: tuple[str | None, str | None],
    options: Mapping[str, Any],
    contexts: dict[bytes, Context],
) -> Foretold:
    if record.wire is None or len(record.wire) > MAX_WIRE:
        return Foretold(record=record, reading=None, time=None, time_basis="")
    facts = facts_at(options, record.index).write()
    reading = read_with_facts(record.wire, write_envelope(record.envelope), facts)
    context = contexts[_find_conversation(reading.messages[0])]
    context.record = str(record.index)
    # Its dialect may be settled otherwise than it was read, and is then read from the wire.
    chosen = choose_dialect(reading, context)
    shown = conceal_reading(chosen)
    whole = conceal_told(tell(shown, context), shown).whole
    for message in chosen.messages:
        contexts[_find_conversation(message)].position += 1
    own, outer = times
    basis = "wire" if own else "envelope" if outer else ""
    return Foretold(record=record, reading=whole, time=own or outer, time_basis=basis)


def _find_conversation(message: Message) -> bytes:
    """What stands for the conversation of a message within this file."""
    return key_of_conversation(message, source=b"", is_from_file=True)[0]
