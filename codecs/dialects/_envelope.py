"""The envelope's part in a record: it fills what the wire leaves open and never overrides what the wire says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ._english import say_name
from ._record import Envelope, Message, Note, NoteKind, Reading
from ._time import instant_of_log

DISAGREES = NoteKind(
    code="envelope.disagrees",
    severity="warning",
    group="protocol",
    about="The log's envelope and the wire name different values; the wire's stands.",
)

TIMES_DISAGREE = NoteKind(
    code="envelope.times-disagree",
    severity="warning",
    group="protocol",
    about="The log's envelope and the wire name times a minute or more apart; the wire's stands.",
)
TIMES_DIFFER = NoteKind(
    code="envelope.times-differ",
    severity="info",
    group="protocol",
    about="The log's envelope and the wire name times less than a minute apart; the wire's stands.",
)

NOTES = (DISAGREES, TIMES_DISAGREE, TIMES_DIFFER)

# What an export adds of its own to the record of a line stands under this name; no log said it.
INSPECTED = "inspected"
_KNOWN = {"raw", "at", "from", "to", "conversation", "trace", "parent", "id", "dialect", "label", "prior", "keys"}


def envelope_of(mapping: Mapping[str, Any]) -> Envelope:
    """The envelope that a JSON object of the HTTP contract describes; names it does not know are kept in `extra`.

    Args:
        mapping: at (a time in text, or its number), from, to (a name or a list), conversation, trace, parent, id,
            dialect and label; `raw`, `prior`, `keys` and `inspected` are not the envelope's and are passed over.
    """
    at = mapping.get("at")
    at_raw = _text(at)
    to = mapping.get("to")
    receivers = to if isinstance(to, list) else [to]
    return Envelope(
        at=instant_of_log(at_raw) if at_raw else None,
        at_raw=at_raw,
        sender=_text(mapping.get("from")),
        receivers=tuple(str(name) for name in receivers if name not in (None, "")),
        conversation=_text(mapping.get("conversation")),
        trace=_text(mapping.get("trace")),
        parent=_text(mapping.get("parent")),
        id=_text(mapping.get("id")),
        dialect=_text(mapping.get("dialect")),
        label=_text(mapping.get("label")),
        extra={name: value for name, value in mapping.items() if name not in _KNOWN and name != INSPECTED},
    )


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


# (name of the message, name of the envelope)
NAMES = (
    ("sender", "sender"),
    ("receivers", "receivers"),
    ("conversation_id", "conversation"),
    ("trace_id", "trace"),
    ("parent_id", "parent"),
    ("message_id", "id"),
    ("sent_at", "at"),
)


def apply_envelope(reading: Reading, envelope: Envelope | None, *, is_numbered: bool = False) -> Reading:
    """The reading with the envelope's names where the wire is silent; a disagreement becomes a note.

    A message id names one message: with several parts the envelope's id goes to the first alone. Where the dialect
    numbers its parties (`is_numbered`), a name in the envelope is the number's name, and no disagreement.
    """
    if envelope is None:
        return reading
    if not reading.messages:
        return reading.replace(envelope=envelope)
    filled: set[str] = set()
    notes: list[Note] = []
    messages = tuple(_fill(message, envelope, filled, notes, is_numbered=is_numbered) for message in reading.messages)
    return reading.replace(
        messages=messages,
        envelope=envelope,
        from_envelope=tuple(name for name, _ in NAMES if name in filled),
        notes=(*reading.notes, *notes),
    )


def _fill(message: Message, envelope: Envelope, filled: set[str], notes: list[Note], *, is_numbered: bool) -> Message:
    given: dict[str, Any] = {}
    for name, source in NAMES:
        said, outside = getattr(message, name), getattr(envelope, source)
        if not outside or (name == "message_id" and message.part > 1):
            continue
        # Who speaks inside a message, and to whom, its carrier has decided by what the log says.
        if message.carrier_part is not None and name in ("sender", "receivers") and not said:
            continue
        if name == "receivers" and (message.broadcast or (message.target is not None and said)):
            continue
        if not said:
            given[name] = outside
            filled.add(name)
            if name == "sent_at":
                given["sent_at_raw"] = message.sent_at_raw or envelope.at_raw
        # A text inside a message may call its speakers otherwise than the log around it does.
        elif (
            said != outside and message.carrier_part is None and not (is_numbered and is_name_of_number(said, outside))
        ):
            notes.append(_compare_times(said, outside) if name == "sent_at" else _compare(name, said, outside))
    return message.replace(**given) if given else message


def is_name_of_number(said: Any, outside: Any) -> bool:
    """Whether the wire has a number for what the envelope has a name for."""
    numbers: tuple[str, ...] = (said,) if isinstance(said, str) else said or ()
    names: tuple[str, ...] = (outside,) if isinstance(outside, str) else outside or ()
    return len(numbers) == len(names) == 1 and numbers[0].isdecimal() and not names[0].isdecimal()


def _compare(name: str, said: Any, outside: Any) -> Note:
    return DISAGREES.note(f"the wire says {name} {_show(said)}, the envelope {_show(outside)}: the wire's stands")


def _compare_times(said: str, outside: str) -> Note:
    apart = abs(datetime.fromisoformat(said) - datetime.fromisoformat(outside))
    kind = TIMES_DIFFER if apart < timedelta(minutes=1) else TIMES_DISAGREE
    return kind.note(f"the message says {said} and the log {outside}, {apart} apart: the message's own time is used")


def _show(value: Any) -> str:
    return ", ".join(map(say_name, value)) if isinstance(value, tuple) else say_name(str(value))
