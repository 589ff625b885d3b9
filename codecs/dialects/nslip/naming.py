"""What the log around a tag calls the agents, the conversation and the goal that the tag numbers: names, until a number
has two of them or a name two numbers."""

from __future__ import annotations

from .._context import Context, Within
from .._english import say_name
from .._envelope import DISAGREES, NAMES, is_name_of_number
from .._record import Entry, Note, Reading

# By the name of a message: what it numbers.
_NUMBERED = {"sender": "agent", "receivers": "agent", "conversation_id": "conversation", "trace_id": "goal"}


def learn_names(reading: Reading, context: Context) -> tuple[list[Entry], list[Note]]:
    """What a record's envelope names, and a note on each name that contradicts what was established before it."""
    entries: list[Entry] = []
    notes: dict[str, Note] = {}
    for message in reading.messages if reading.envelope else ():
        for name, source in NAMES:
            said, outside = getattr(message, name), getattr(reading.envelope, source)
            if name not in _NUMBERED or not is_name_of_number(said, outside):
                continue
            what = _NUMBERED[name]
            number, called = (each if isinstance(each, str) else each[0] for each in (said, outside))
            known = Within(context, entries)
            earlier = known.find(f"{what}-name", number)
            other = known.find(f"{what}-number", called)
            if earlier is not None and earlier.value != called:
                text = f"the log calls {what} {number} {say_name(called)} here, and {say_name(earlier.value)} before"
            elif other is not None and other.value != number:
                text = f"the log calls {what} {number} {say_name(called)}, as it does {what} {other.value}"
            else:
                if earlier is None:
                    at = (context.record, message.part)
                    entries.append(Entry(kind=f"{what}-name", name=number, value=called, source=at))
                    entries.append(Entry(kind=f"{what}-number", name=called, value=number, source=at))
                continue
            notes.setdefault(text, DISAGREES.note(f"{text}: the wire's number stands"))
    return entries, list(notes.values())
