"""Reading nSLIP: a text into its record, and the conversation that it names. Nearly every tag has the plain spelling,
and one expression reads that whole.

Complete header first, slots in the order of the tables, numbers without leading zeros, texts without escapes, and
nothing to note. What it yields is what the longer way yields; a tag that does not match takes the longer way.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from .._record import Envelope, Failure, Identity, Layer, Message, Reading, WireReading
from .detection import USUAL
from .fields import message_of, place_field, read_number
from .parsing import Prose, Record, grow_tree, parse_record
from .tables import ACTS, ALPHABET, FRAMES, HEADER, RANGES, SLOTS, VOCABULARY, Slot

# Ten digits of base 62 always fit in 64 bits.
_NUMBER = "(0|[1-9A-Za-z][0-9A-Za-z]{0,9}+)"
_TEXT = r'"([^"\\]*+)"'


def _pattern_of(slot: Slot) -> str:
    if slot.is_text:
        return slot.prefix + _TEXT
    if slot.prefix in RANGES:
        low, high = RANGES[slot.prefix]
        return f"{slot.prefix}([{ALPHABET[low : high + 1]}])"
    return slot.prefix + _NUMBER


# Act and frame are one group: what the two mean together is looked up once.
_KIND = rf"([{ALPHABET[min(ACTS) : max(ACTS) + 1]}]\|f[{ALPHABET[min(FRAMES) : max(FRAMES) + 1]}])"
_HEADER = rf"a{_KIND}\|" + r"\|".join(_pattern_of(SLOTS[prefix]) for prefix in HEADER if prefix not in "af")
_SLOTS = "".join(rf"(?>(?:\|{_pattern_of(slot)})?)" for slot in SLOTS.values() if not slot.is_header)
_match_plain = re.compile(f"@{_HEADER}{_SLOTS}#").fullmatch

_KINDS = {
    f"{ALPHABET[act.code]}|f{ALPHABET[frame.code]}": (act.performative, act.name, frame.name)
    for act in ACTS.values()
    for frame in FRAMES.values()
}
_PRIORITIES = {digit: place_field("q", ALPHABET.index(digit), digit)["priority"] for digit in ALPHABET[1:4]}

# So many numbers are held: a conversation, its turns and its tasks come again and again.
_MAX_HELD = 1 << 13


class _Numbers(dict[str, int]):
    """Numbers by their digits: those of one or two digits are held, longer ones as they come, while there is room."""

    def __missing__(self, digits: str) -> int:
        number = read_number(digits)
        if number is None:
            raise KeyError(digits)
        if len(self) < _MAX_HELD:
            self[digits] = number
        return number


class _Decimals(dict[str, str]):
    """Numbers as decimal text by their digits, held likewise."""

    def __missing__(self, digits: str) -> str:
        decimal = str(_NUMBERS[digits])
        if len(self) < _MAX_HELD:
            self[digits] = decimal
        return decimal


_SHORT = (tens + ones for tens in ("", *ALPHABET[1:]) for ones in ALPHABET)
_NUMBERS = _Numbers((digits, number) for number, digits in enumerate(_SHORT))
_DECIMALS = _Decimals((digits, str(number)) for digits, number in _NUMBERS.items())


def read_plain(wire: str) -> dict[str, Any] | None:
    """The names that the text fills if it is one tag in the plain spelling, else None."""
    found = _match_plain(wire)
    if found is None:
        return None
    (
        kind,
        conversation,
        sender,
        receiver,
        turn,
        goal,
        task,
        parent,
        result,
        priority,
        score,
        status,
        error,
        tag,
    ) = found.groups()
    performative, act, frame = _KINDS[kind]
    values: dict[str, Any] = {
        "performative": performative,
        "native_act": act,
        "frame": frame,
        "conversation_id": _DECIMALS[conversation],
        "sender": _DECIMALS[sender],
        "receivers": (_DECIMALS[receiver],),
        "turn": _NUMBERS[turn],
    }
    if goal:
        values["trace_id"] = _DECIMALS[goal]
    if task:
        values["task_id"] = _DECIMALS[task]
    if parent:
        values["parent_task_id"] = _DECIMALS[parent]
    if result:
        values["result_id"] = _DECIMALS[result]
    if priority:
        values["priority"] = _PRIORITIES[priority]
    if score:
        values["score"] = _NUMBERS[score]
    if status is not None:
        values["status"] = status
    if error:
        values["error"] = Failure(code=_DECIMALS[error])
    if tag is not None:
        values["topic"] = tag
    return values


# The names of a malformed message that stand when its tag could be read in part.
_LIFTED = ("conversation_id", "sender", "receivers", "turn")


def read(wire: str, envelope: Envelope | None = None) -> Reading:
    """The record of a text: one message a tag, and one inform for each stretch of prose around. Never raises."""
    plain = read_plain(wire)
    if plain is not None:
        return PlainReading.of(wire, (Message.trust(plain),))
    record = parse_record(wire)
    messages = (_malformed(wire, record),) if record.error else _messages_of(wire, record)
    return Reading(
        dialect="nslip",
        version=_version_of(record),
        vocabulary=VOCABULARY,
        layers=(Layer(id=0, kind="wire", text=wire),),
        tree=partial(grow_tree, wire),
        messages=messages,
        notes=record.notes,
    )


class PlainReading(WireReading):
    """The reading of one tag in its plain spelling."""

    dialect = "nslip"
    version = "0.1"
    vocabulary = VOCABULARY

    grow = staticmethod(grow_tree)


def _version_of(record: Record) -> str | None:
    """The version whose header the tags bear, the newest among them; None where the text cannot be read."""
    if record.error:
        return None
    return "0.0" if all(tag.is_legacy for tag in record.tags) else "0.1"


def _messages_of(wire: str, record: Record) -> tuple[Message, ...]:
    return tuple(
        Message(part=index, performative="inform", content=wire[part.start : part.end])
        if isinstance(part, Prose)
        else message_of(part, index)
        for index, part in enumerate(record.parts, 1)
    )


def _malformed(wire: str, record: Record) -> Message:
    """One message without an act; what its only tag says for certain of who, to whom and where still stands."""
    notes = () if record.error is None else (record.error,)
    if len(record.tags) != 1:
        return Message(performative=None, content=wire, notes=notes)
    found = message_of(record.tags[0], 1)
    lifted = {name: found.__dict__[name] for name in _LIFTED if name in found.__dict__}
    return Message(performative=None, content=wire, notes=found.notes, **lifted)


def identify(wire: str) -> Identity:
    """The conversation that the first tag names, as decimal text."""
    usual = USUAL.match(wire)
    if usual and wire[-1] == "#" and wire.count("@") == 1:
        return Identity(conversation=str(read_number(usual[1])))
    found = (message.conversation_id for message in read(wire).messages)
    return Identity(conversation=next((name for name in found if name is not None), None))
