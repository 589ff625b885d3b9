"""Writing nSLIP: messages of the record as tags, and what a tag cannot hold.

A tag is written with today's header, its fields in the order of the specification's tables, numbers without leading
zeros and texts quoted. An inform without an act of nSLIP is text around the tags. Parts are set apart by a space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._errors import EncodeError
from .._record import Encoded, Failure, Loss, Message
from .fields import is_number, read_number, write_number
from .parsing import Prose, parse_record
from .tables import ACTS, FRAMES, MAX_NUMBER, RANGES
from .tags import scan_tag

_ACT_CODES = {act.name: act.code for act in ACTS.values()}
_FRAME_CODES = {frame.name: frame.code for frame in FRAMES.values()}
_BY_PERFORMATIVE = {act.performative: act.code for act in ACTS.values()}

# The frame that an act of another dialect is written with: its record names none.
_USUAL_FRAMES = {0: 2, 1: 2, 2: 2, 3: 0, 4: 1, 5: 0, 6: 0, 7: 0, 8: 3, 9: 0, 10: 4}

# What a tag holds, and what telling and placing add to a message.
_HELD = {"performative", "native_act", "frame", "conversation_id", "sender", "receivers", "broadcast", "turn"}
_HELD |= {"trace_id", "task_id", "parent_task_id", "result_id"}
_HELD |= {"priority", "score", "status", "error", "topic", "attributes"}
_ADDED = {"part", "english", "also", "gloss", "notes", "parent", "reference_line"}


def encode(messages: Sequence[Message]) -> Encoded:
    """The messages as one text.

    Raises:
        EncodeError: where a header field is missing or no number, the act does not exist here, or there is no tag.
    """
    losses: list[Loss] = []
    if all(_is_prose(message) for message in messages):
        raise EncodeError("nslip", "there is no act to write as a tag; text alone is no nSLIP")
    wires = [_write_prose(m, losses) if _is_prose(m) else _write_tag(m, losses) for m in messages]
    wire = " ".join(wires)
    if any(_is_prose(message) for message in messages):
        _check_parts(wire, messages)
    return Encoded(wire=wire, losses=tuple(losses))


def _is_prose(message: Message) -> bool:
    return message.native_act is None and message.performative == "inform" and isinstance(message.content, str)


def _write_prose(message: Message, losses: list[Loss]) -> str:
    losses.extend(_find_lost(message, {"performative", "content"}, "text around the tags has no place for it"))
    return str(message.content)


def _check_parts(wire: str, messages: Sequence[Message]) -> None:
    """Text that would be read as a tag, or run together with other text, cannot stand around tags."""
    parts = parse_record(wire).parts
    held = [wire[part.start : part.end] if isinstance(part, Prose) else None for part in parts]
    wanted = [message.content if _is_prose(message) else None for message in messages]
    if held != wanted:
        raise EncodeError("nslip", "the text around the tags would not be read back as the same parts")


def _write_tag(message: Message, losses: list[Loss]) -> str:
    losses.extend(_find_lost(message, _HELD, "a nSLIP tag has no field for it"))
    lose = _Losing(message, losses)
    act = _act_of(message)
    fields = {
        "a": write_number(act),
        "f": write_number(_frame_of(message, act, lose)),
        "c": _write_header(message, "conversation_id", message.conversation_id),
        "S": _write_header(message, "sender", message.sender),
        "d": _write_header(message, "receivers", _only_receiver(message)),
        "T": _write_header(message, "turn", message.turn),
        "g": _write_number(message.trace_id, "trace_id", lose),
        "k": _write_number(message.task_id, "task_id", lose),
        "p": _write_number(message.parent_task_id, "parent_task_id", lose),
        "r": _write_number(message.result_id, "result_id", lose),
        "q": _write_priority(message, lose),
        "s": _write_number(message.score, "score", lose),
        "u": _write_text(message.status),
        "e": _write_error(message, lose),
        "t": _write_text(message.topic),
    }
    for prefix, written in _find_unread(message, lose):
        if fields.get(prefix):
            lose("attributes", f"{prefix} has a value that could be written: {written!r} has no place beside it")
        else:
            fields[prefix] = written
    return f"@{'|'.join(prefix + written for prefix, written in fields.items() if written)}#"


class _Losing:
    """Where the losses of one message are gathered."""

    def __init__(self, message: Message, losses: list[Loss]) -> None:
        self._part = message.part
        self._losses = losses

    def __call__(self, name: str, reason: str) -> None:
        self._losses.append(Loss(name=name, part=self._part, reason=reason))


def _find_lost(message: Message, held: set[str], reason: str) -> Iterator[Loss]:
    for name in message.given():
        if name not in held and name not in _ADDED:
            yield Loss(name=name, part=message.part, reason=reason)


def _act_of(message: Message) -> int:
    native, performative = message.native_act or "", message.performative or ""
    code = _ACT_CODES.get(native)
    if code is not None and ACTS[code].performative == performative:
        return code
    if performative in _BY_PERFORMATIVE:
        return _BY_PERFORMATIVE[performative]
    # Only a tag of nSLIP has a frame: an unknown act's number is a nSLIP code where there is one.
    number = _number_of(native)
    if performative == "unknown" and number is not None and number not in ACTS and message.frame is not None:
        return number
    raise EncodeError("nslip", f"there is no act for {performative or 'an unread message'}", message.part)


def _frame_of(message: Message, act: int, lose: _Losing) -> int:
    frame = message.frame
    if frame in _FRAME_CODES:
        return _FRAME_CODES[frame]
    number = _number_of(frame)
    if number is not None and number not in FRAMES:
        return number
    written = FRAMES[_USUAL_FRAMES.get(act, 0)]
    lose("frame", f"a tag must have a frame and the record has none of nSLIP's: {written.name} was written")
    return written.code


def _only_receiver(message: Message) -> str | None:
    if message.broadcast or len(message.receivers) > 1:
        raise EncodeError("nslip", "a tag has exactly one receiver", message.part)
    return message.receivers[0] if message.receivers else None


def _write_header(message: Message, name: str, value: object) -> str:
    number = _number_of(value)
    if number is None:
        what = "is missing" if value is None else f"is {value!r}, which is no number that nSLIP can hold"
        raise EncodeError("nslip", f"{name} {what}", message.part)
    return write_number(number)


def _number_of(value: object) -> int | None:
    """The number that a value stands for in a tag: a plain one that is not negative and fits, or None."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MAX_DIGITS:
        number = int(value)
        return number if number <= MAX_NUMBER and str(number) == value else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= MAX_NUMBER else None
    return None


_MAX_DIGITS = len(str(MAX_NUMBER))


def _write_number(value: object, name: str, lose: _Losing) -> str:
    number = _number_of(value)
    if number is not None:
        return write_number(number)
    if value is not None:
        lose(name, f"{value!r} is no number that nSLIP can hold")
    return ""


def _write_priority(message: Message, lose: _Losing) -> str:
    priority = message.priority
    if priority is None:
        return ""
    low, high = RANGES["q"]
    number = read_number(priority.raw) if is_number(priority.raw) else None
    if number is not None and priority.rank == (number if low <= number <= high else None):
        return priority.raw
    if priority.rank is not None and low <= priority.rank <= high:
        lose("priority", f"the word {priority.raw!r} is written as its rank, {priority.rank}")
        return write_number(priority.rank)
    lose("priority", f"{priority.raw!r} is no rank from {low} to {high}")
    return ""


def _write_error(message: Message, lose: _Losing) -> str:
    error = message.error
    if error is None:
        return ""
    number = _number_of(error.code)
    if number is None or error != Failure(code=error.code):
        lose("error", "a tag holds the number of an error and nothing else of it")
    return "" if number is None else write_number(number)


def _write_text(text: str | None) -> str:
    if text is None:
        return ""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _find_unread(message: Message, lose: _Losing) -> Iterator[tuple[str, str]]:
    """The fields that were kept as written because they could not be read; they are written back as they were."""
    unread: Any = message.attributes.get("unread")
    rest = set(message.attributes) - {"unread"}
    if rest:
        lose("attributes", f"a nSLIP tag has no field for {', '.join(sorted(rest))}")
    if not isinstance(unread, Mapping):
        return
    for prefix, written in unread.items():
        whole = f"@{prefix}{written}#"
        if len(prefix) == 1 and scan_tag(whole, 0).pieces == ((1, len(whole) - 1),):
            yield prefix, written
        else:
            lose("attributes", f"{prefix!r} with {written!r} would break the tag")
