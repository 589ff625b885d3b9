"""Telling nSLIP: each message's sentence, what that sentence leaves out, and the gloss, every field in wire order. What
the log around a tag calls the agents, the conversation and the goal that the tag numbers are names, until a number has
two of them or a name two numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._context import Context, Keys, Within
from .._decoding import DISAGREES, NAMES, is_name_of_number
from .._english import enclose, quote, say_name
from .._record import Basis, Entry, Message, Note, Reading, Segment, Told
from .fields import Read, TagRead
from .parsing import Prose, Record, parse_record
from .sentence import TagSentence, span_of
from .tables import ACTS, FRAMES, HEADER, MAX_FIELDS, SLOTS

_BETWEEN = Segment(text=" · ")


def gloss_tag(text: str, read: TagRead) -> tuple[Segment, ...]:
    """One segment a field, in wire order, with marks between."""
    segments: list[Segment] = []
    for field in read.fields:
        if segments:
            segments.append(_BETWEEN)
        basis: Basis = "exact" if field.role in ("used", "empty") else "unknown"
        spans = ((0, field.start, field.end),)
        segments.append(Segment.trust({"text": _gloss_field(text, field), "spans": spans, "basis": basis}))
    return tuple(segments)


def _gloss_field(text: str, field: Read) -> str:
    if field.role == "again":
        return f"{quote(text[field.start : field.end])} not used"
    label = field.slot.label if field.slot else f"unknown field {say_name(field.prefix)}"
    if field.role == "empty":
        return f"{label} without a value"
    if field.slot is None or field.role == "unread":
        return f"{label} {quote(field.written)}"
    if isinstance(field.value, str):
        return f"{label} {quote(field.value)}"
    number = field.value
    match field.slot.prefix:
        case "a" if number in ACTS:
            return ACTS[number].name
        case "f" if number in FRAMES:
            return FRAMES[number].name
        case "S":
            return f"from agent {number}"
        case "d":
            return f"to agent {number}"
    return f"{label} {number}"


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


def tell(reading: Reading, context: Context, keys: Keys) -> Told:
    """The messages with their English, what the sentence leaves out, and the gloss. Never raises."""
    wire = reading.wire
    record = parse_record(wire)
    entries, notes = learn_names(reading, context)
    context = Within(context, entries) if entries else context
    if record.error:
        messages = tuple(_tell_malformed(message, record, wire, context) for message in reading.messages)
    else:
        pairs = zip(reading.messages, record.parts, strict=True)
        tags = record.tags
        messages = tuple(_tell_part(message, part, tags, wire, context) for message, part in pairs)
    return Told(reading=reading, messages=messages, entries=tuple(entries), notes=tuple(notes))


def _tell_part(
    message: Message, part: Prose | TagRead, tags: Sequence[TagRead], wire: str, context: Context
) -> Message:
    if isinstance(part, Prose):
        span = (0, part.start, part.end)
        before, text, after = enclose(wire[part.start : part.end])
        said = Segment(text=text, spans=(span,))
        english = (Segment(text=f"{_say_where(part, tags)}: {before}"), said, Segment(text=f"{after}."))
        return message.replace(english=english, gloss=(Segment(text=before), said, Segment(text=after)))
    sentence = TagSentence(message, part, context)
    return message.replace(english=sentence.tell(), also=tuple(_tell_rest(wire, part)), gloss=gloss_tag(wire, part))


def _say_where(part: Prose, tags: Sequence[TagRead]) -> str:
    """Where text stands beside the tags, so that it is not taken for a message of its own."""
    what = "the tag" if len(tags) == 1 else "the tags"
    if part.end <= tags[0].tag.start:
        return f"Text before {what}"
    return f"Text after {what}" if part.start >= tags[-1].tag.end else f"Text between {what}"


def _tell_malformed(message: Message, record: Record, wire: str, context: Context) -> Message:
    """Who sent it to whom, as far as that is known, and its text; why it cannot be read is a caution of its own."""
    tag = record.tags[0] if len(record.tags) == 1 else None
    sentence = TagSentence(message, tag, context).tell_sending().say(" that cannot be read")
    for index, (words, field) in enumerate(_find_readable(tag)):
        sentence.say(", " if index else "; what can be read of it: ").say(words, span_of(field))
    sentence.say("; as it stands: ").say(quote(wire), (0, 0, len(wire)), basis="unknown").say(".")
    gloss = gloss_tag(wire, tag) if tag else ()
    also = tuple(_tell_rest(wire, tag)) if tag else ()
    return message.replace(english=sentence.segments(), also=also, gloss=gloss)


def _find_readable(tag: TagRead | None) -> Iterator[tuple[str, Read]]:
    """What a broken tag still says beside its parties, in words."""
    for prefix, field in (tag.used() if tag else {}).items():
        value, slot = field.value, SLOTS[prefix]
        if prefix in "Sd":
            continue
        if prefix == "a" and value in ACTS:
            yield f"its act is “{ACTS[value].name.lower()}”", field
        elif prefix == "f" and value in FRAMES:
            yield f"its frame is “{FRAMES[value].name.lower()}”", field
        else:
            yield f"{slot.label} {quote(value) if isinstance(value, str) else value}", field


def _tell_rest(wire: str, read: TagRead) -> Iterator[Segment]:
    """What the message carries beyond its sentence, one phrase each."""
    told = [
        Segment(text=phrase, spans=(span_of(field),), basis=basis)
        for field in read.fields
        for phrase, basis in _tell_field(wire, field)
    ]
    # What is said comes before what is not.
    yield from sorted(told, key=lambda segment: segment.basis == "unknown")
    present = {field.slot.prefix for field in read.fields if field.slot}
    if not read.tag.fault:
        for prefix in HEADER:
            if prefix in _BESIDE and prefix not in present:
                yield Segment(text=f"no {SLOTS[prefix].label} is given", basis="unknown")
    if len(read.tag.pieces) > MAX_FIELDS:
        rest = (0, read.tag.pieces[MAX_FIELDS][0], read.tag.pieces[-1][1])
        count = len(read.tag.pieces) - MAX_FIELDS
        yield Segment(text=f"{count} further fields are not read", spans=(rest,), basis="unknown")


# The header fields that the sentence leaves to these phrases.
_BESIDE = {"c": "in conversation {}", "T": "turn {}"}
_EVAL = 8
# What a reader would look for beside a number, and neither the message nor the specification gives.
_OPEN = {
    "q": "the specification does not define which end of the priorities is highest",
    "r": "the result itself is not in the message",
}


def _tell_field(wire: str, field: Read) -> Iterator[tuple[str, Basis]]:
    slot = field.slot
    label = slot.label if slot else f"field {say_name(field.prefix)}"
    if field.role == "again":
        yield f"a second {label}, {quote(wire[field.start : field.end])}, is not used", "exact"
    elif field.role == "used" and slot and slot.prefix == "a" and field.value == _EVAL:
        yield "the plan or result that is evaluated is not in the message", "unknown"
    elif field.role == "used" and slot and slot.prefix in _OPEN:
        yield _OPEN[slot.prefix], "unknown"
    elif slot and slot.prefix in _BESIDE and field.role == "unread":
        yield f"the {label} is written {quote(field.written)}, which is not understood", "unknown"
    elif slot and slot.prefix in _BESIDE:
        is_same = str(field.value) == field.written
        written = "" if is_same else f" (base 62: {say_name(field.written)})"
        yield f"{_BESIDE[slot.prefix].format(field.value)}{written}", "exact"
    if field.rest < field.end:
        yield f"{quote(wire[field.rest : field.end])} stands after the closing quote and is not read", "unknown"
