"""The fields of a tag: what each piece means, a note wherever the wire leaves the specification, and which names of a
message each value fills.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from .._english import quote, say_name
from .._record import Failure, Message, Note, Priority, Span
from .tables import (
    ACTS,
    AFTER_QUOTE,
    ALPHABET,
    BARE_TEXT,
    DUPLICATE,
    EMPTY_FIELD,
    EMPTY_VALUE,
    ESCAPED_QUOTES,
    FRAMES,
    HEADER,
    LEADING_ZEROS,
    LEGACY_HEADER,
    MAX_FIELDS,
    MAX_NUMBER,
    MAX_NUMBER_LENGTH,
    MISSING_HEADER,
    NO_HEADER,
    NOT_A_NUMBER,
    OUT_OF_RANGE,
    QUOTED_NUMBER,
    RANGES,
    SLOTS,
    SPACE,
    TOO_LARGE,
    TOO_MANY_FIELDS,
    UNCLOSED,
    UNCLOSED_QUOTE,
    UNKNOWN_ACT,
    UNKNOWN_ESCAPE,
    UNKNOWN_FRAME,
    UNKNOWN_PREFIX,
    UNQUOTED,
    Slot,
)
from .tags import ESCAPED_TEXT, SPACES, Tag

_WORTH = {digit: worth for worth, digit in enumerate(ALPHABET)}


def is_number(text: str) -> bool:
    """Whether the text is digits of base 62 alone, and at least one."""
    return text.isalnum() and text.isascii()


def read_number(digits: str) -> int | None:
    """The number that these digits mean, or None where it does not fit; linear in their count."""
    digits = digits.lstrip("0")
    if len(digits) > MAX_NUMBER_LENGTH:
        return None
    number = 0
    for digit in digits:
        number = number * 62 + _WORTH[digit]
    return number if number <= MAX_NUMBER else None


def write_number(number: int) -> str:
    """The digits of a number that is not negative."""
    digits = ""
    while number >= 62:
        number, worth = divmod(number, 62)
        digits = ALPHABET[worth] + digits
    return ALPHABET[number] + digits


_QUOTED = re.compile(r'"((?>(?:[^"\\]++|\\.)*))"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

# How a quoted text begins: plainly, or with its quotation marks escaped.
_QUOTES = ('"', '\\"')

# What a value that is no number looks like, for the words of the note.
_SHAPES = (
    (re.compile(r"-[0-9]++(?>(?:\.[0-9]++)?)\Z"), "a negative number"),
    (re.compile(r"\+[0-9]++(?>(?:\.[0-9]++)?)\Z"), "a number with a sign"),
    (re.compile(r"[0-9]*+[.,][0-9]++\Z"), "a fraction"),
)

_FAULTS = {
    UNCLOSED.code: "the tag has no closing # outside quotes",
    UNCLOSED_QUOTE.code: "a quoted text is not closed",
}

# used: its value stands. again: the field stood before. unread: a value that could not be read, or an unknown
# prefix. empty: a prefix alone.
Role = Literal["used", "again", "unread", "empty"]


class Read(NamedTuple):
    """One field of a tag as read: `prefix` and `written` as on the wire, `value` where it could be read.

    text[start:rest] is what was read; the characters from `rest` to `end` stand after a closing quote.
    """

    slot: Slot | None
    prefix: str
    start: int
    rest: int
    end: int
    written: str
    value: int | str | None
    role: Role


class TagRead(NamedTuple):
    """A tag as read: its fields in wire order, the notes on them, and whether its header is of v0.0."""

    tag: Tag
    fields: tuple[Read, ...]
    notes: tuple[Note, ...]
    is_legacy: bool

    def used(self) -> dict[str, Read]:
        """The fields whose value stands, by the prefix of today's header."""
        return {field.slot.prefix: field for field in self.fields if field.slot and field.role == "used"}


def read_tag(text: str, tag: Tag) -> TagRead:
    """The fields of a tag, each with its value and its notes. Never raises."""
    notes: list[Note] = []
    pieces = [_trim(text, start, end) for start, end in tag.pieces[:MAX_FIELDS]]
    is_legacy = _is_legacy(text[start : start + 3] for start, end in pieces if end > start)
    fields = tuple(_read_fields(text, tag, pieces, is_legacy, notes))
    notes.extend(_note_whole(text, tag, pieces, fields, is_legacy))
    if len(notes) > 1:
        notes.sort(key=lambda note: note.span or (0, 0, 0))
    return TagRead(tag, fields, tuple(notes), is_legacy)


def _cite(written: str) -> str:
    """What stands on the wire, cut where a note would grow too long; the span shows all of it."""
    return quote(written) if len(written) <= _MAX_CITED_LENGTH else f"{quote(written[:_MAX_CITED_LENGTH])} …"


_MAX_CITED_LENGTH = 80


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in SPACES:
        start += 1
    while end > start and text[end - 1] in SPACES:
        end -= 1
    return start, end


def _is_legacy(openings: Iterator[str]) -> bool:
    """Whether the header is lower-case: no `S` and no `T`, but an unquoted `s` or `t`."""
    found = list(openings)
    if any(opening[0] in "ST" for opening in found):
        return False
    return any(opening[0] in "st" and not opening[1:].startswith(_QUOTES) for opening in found)


def _read_fields(
    text: str, tag: Tag, pieces: list[tuple[int, int]], is_legacy: bool, notes: list[Note]
) -> Iterator[Read]:
    first: dict[str, Read] = {}
    for index, (start, end) in enumerate(pieces):
        if start == end:
            if not (is_legacy and index == 0):
                place = (0, tag.pieces[index][0] - 1, tag.pieces[index][1] + 1)
                notes.append(EMPTY_FIELD.note("an empty field was skipped; nothing is known to be lost", place))
            continue
        field = _read_field(text, start, end, is_legacy, first, notes)
        first.setdefault(field.slot.prefix if field.slot else field.prefix, field)
        yield field


def _read_field(text: str, start: int, end: int, is_legacy: bool, first: Mapping[str, Read], notes: list[Note]) -> Read:
    span = (0, start, end)
    prefix = text[start]
    slot: Slot | None
    written = text[start + 1 : end]
    if text.startswith(_QUOTES, start):
        notes.append(BARE_TEXT.note("a quoted text without a prefix is read as the tag", span))
        prefix, written, slot = "", text[start:end], SLOTS["t"]
    else:
        slot = SLOTS.get(_today(prefix, written, first) if is_legacy else prefix)
    key = slot.prefix if slot else prefix
    if key in first:
        earlier, later = _cite(text[first[key].start : first[key].end]), _cite(text[start:end])
        label = slot.label if slot else f"field {say_name(prefix)}"
        notes.append(DUPLICATE.note(f"the {label} stands twice: {earlier} is used, {later} is not", span))
        return Read(slot, prefix, start, end, end, written, None, "again")
    if slot is None:
        notes.append(UNKNOWN_PREFIX.note(f"{quote(prefix)} is the prefix of no field: its value is kept as text", span))
        return Read(None, prefix, start, end, end, written, None, "unread")
    if not written:
        notes.append(EMPTY_VALUE.note(f"the {slot.label} has no value", span))
        return Read(slot, prefix, start, end, end, written, None, "empty")
    inside = (0, end - len(written), end)
    if slot.is_text:
        text_read, length = _read_text(slot, written, inside, notes)
        return Read(slot, prefix, start, inside[1] + length, end, written, text_read, "used")
    number = _read_digits(slot, written, inside, notes)
    return Read(slot, prefix, start, end, end, written, number, "unread" if number is None else "used")


def _today(prefix: str, written: str, first: Mapping[str, Read]) -> str:
    """The prefix that a v0.0 field would have today: the first unquoted `s` is the sender, the first `t` the turn."""
    today = {"s": "S", "t": "T"}.get(prefix, prefix)
    return prefix if written.startswith(_QUOTES) or today in first else today


def _read_digits(slot: Slot, written: str, span: Span, notes: list[Note]) -> int | None:
    if not is_number(written):
        notes.append(_note_no_number(slot, written, span))
        return None
    number = read_number(written)
    if number is None:
        notes.append(TOO_LARGE.note(f"the {slot.label} does not fit in 64 bits: its text is kept", span))
        return None
    if written[0] == "0" and len(written) > 1:
        notes.append(LEADING_ZEROS.note(f"the {slot.label} {number} is written with leading zeros", span))
    if slot.prefix in RANGES:
        low, high = RANGES[slot.prefix]
        if not low <= number <= high:
            notes.append(OUT_OF_RANGE.note(f"the {slot.label} {number} is outside {low} to {high}", span))
    if slot.prefix == "a" and number not in ACTS:
        notes.append(
            UNKNOWN_ACT.note(f"nSLIP defines no act with the number {number}: its table ends at {max(ACTS)}", span)
        )
    if slot.prefix == "f" and number not in FRAMES:
        notes.append(
            UNKNOWN_FRAME.note(
                f"nSLIP defines no frame with the number {number}: its table ends at {max(FRAMES)}", span
            )
        )
    return number


def _note_no_number(slot: Slot, written: str, span: Span) -> Note:
    if written.startswith(_QUOTES):
        return QUOTED_NUMBER.note(f"the {slot.label} is a quoted text where a number belongs: its text is kept", span)
    shape = next((shape for pattern, shape in _SHAPES if pattern.match(written)), "text that is no base62 number")
    return NOT_A_NUMBER.note(f"the {slot.label} is {shape}: its text is kept", span)


def _read_text(slot: Slot, written: str, span: Span, notes: list[Note]) -> tuple[str, int]:
    """The text, and how many characters of `written` it took."""
    escaped = ESCAPED_TEXT.match(written)
    quoted = escaped or _QUOTED.match(written)
    if quoted is None:
        number = read_number(written) if is_number(written) else None
        also = "" if number is None else f"; as a number it would be {number}"
        notes.append(UNQUOTED.note(f"the {slot.label} is not quoted: it is kept as text{also}", span))
        return written, len(written)
    body, length, start = quoted[1], quoted.end(), span[1]
    if length < len(written):
        rest = f"{_cite(written[length:])} stands after the closing quote and is not read"
        notes.append(AFTER_QUOTE.note(rest, (0, start + length, span[2])))
    if escaped:
        body = _unescape(body)
    odd = next((escape for escape in _ESCAPE.finditer(body) if escape[1] not in '\\"'), None)
    if odd:
        place = (0, start, start + length) if escaped else (0, start + 1 + odd.start(), start + 1 + odd.end())
        notes.append(UNKNOWN_ESCAPE.note(f"{quote(odd[0])} is no escape: both characters are kept", place))
    return _unescape(body), length


def _unescape(body: str) -> str:
    return _ESCAPE.sub(lambda escape: escape[1] if escape[1] in '\\"' else escape[0], body)


def _note_whole(
    text: str, tag: Tag, pieces: list[tuple[int, int]], fields: tuple[Read, ...], is_legacy: bool
) -> Iterator[Note]:
    """The notes on the tag as a whole: its header, white space in it, and its size."""
    span = (0, tag.start, tag.end)
    if is_legacy:
        lower = next(field for field in fields if field.slot and field.prefix not in ("", field.slot.prefix))
        yield LEGACY_HEADER.note(
            "legacy lower-case header: the first unquoted s is the sender, the first unquoted t the turn",
            (0, lower.start, lower.end),
        )
    spaced = [piece for piece, outer in zip(pieces, tag.pieces, strict=False) if piece != outer and piece[0] < piece[1]]
    if spaced:
        yield SPACE.note(f"white space stands around {len(spaced)} of the fields", (0, *spaced[0]))
    escaped = [field for field in fields if ESCAPED_TEXT.match(field.written)]
    if escaped:
        first = (0, escaped[0].end - len(escaped[0].written), escaped[0].rest)
        yield ESCAPED_QUOTES.note("quotation marks are escaped: read as if they were not", first)
    if len(tag.pieces) > MAX_FIELDS:
        rest = (0, tag.pieces[MAX_FIELDS][0], tag.pieces[-1][1])
        yield TOO_MANY_FIELDS.note(f"only the first {MAX_FIELDS} of {len(tag.pieces)} fields are read", rest)
    if tag.fault:
        yield tag.fault.note(_FAULTS[tag.fault.code], (0, tag.fault_at, tag.end))
        return
    if not any(field.slot and field.slot.is_header and field.role == "used" for field in fields):
        yield NO_HEADER.note("none of the six header fields can be read", span)
        return
    present = {field.slot.prefix for field in fields if field.slot}
    for prefix in HEADER:
        if prefix not in present:
            yield MISSING_HEADER.note(f"the {SLOTS[prefix].label} is missing", span)


def _place_act(number: int, written: str) -> dict[str, Any]:
    act = ACTS.get(number)
    if act is None:
        return {"performative": "unknown", "native_act": str(number)}
    return {"performative": act.performative, "native_act": act.name}


def _place_frame(number: int, written: str) -> dict[str, Any]:
    return {"frame": FRAMES[number].name if number in FRAMES else str(number)}


def _place_priority(number: int, written: str) -> dict[str, Any]:
    low, high = RANGES["q"]
    return {"priority": Priority(raw=written, rank=number if low <= number <= high else None)}


# By prefix: what a number, and its digits as written, fill.
_PLACES: dict[str, Callable[[int, str], dict[str, Any]]] = {
    "a": _place_act,
    "f": _place_frame,
    "c": lambda number, written: {"conversation_id": str(number)},
    "S": lambda number, written: {"sender": str(number)},
    "d": lambda number, written: {"receivers": (str(number),)},
    "T": lambda number, written: {"turn": number},
    "g": lambda number, written: {"trace_id": str(number)},
    "k": lambda number, written: {"task_id": str(number)},
    "p": lambda number, written: {"parent_task_id": str(number)},
    "r": lambda number, written: {"result_id": str(number)},
    "q": _place_priority,
    "s": lambda number, written: {"score": number},
    "e": lambda number, written: {"error": Failure(code=str(number))},
}
_TEXT_PLACES = {"u": "status", "t": "topic"}


def place_field(prefix: str, value: int | str | None, written: str) -> dict[str, Any]:
    """The names of the record that the value of a field fills; ids are decimal text."""
    if isinstance(value, int):
        return _PLACES[prefix](value, written)
    return {_TEXT_PLACES[prefix]: value}


def message_of(read: TagRead, part: int) -> Message:
    """The message that a closed tag is; the values that could not be read are kept as written in `attributes`."""
    values: dict[str, Any] = {"performative": "unknown"}
    unread: dict[str, str] = {}
    for field in read.fields:
        if field.role == "unread":
            unread[field.slot.prefix if field.slot else field.prefix] = field.written
        elif field.role == "used" and field.slot:
            values.update(place_field(field.slot.prefix, field.value, field.written))
    if unread:
        values["attributes"] = {"unread": unread}
    if read.notes:
        values["notes"] = read.notes
    return Message(part=part, **values)
