"""What the commands print: one JSON line a record, or its words with every control character made visible."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from .._log import LogRecord
from .._record import Message, Reading
from .._value import to_json_type

# C0 and C1 controls, line separators, and what turns the direction of writing: a log must not steer a terminal.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_NAMES = ("dialect", "version", "vocabulary", "candidates", "messages", "footer", "notes")


def write_json(value: Any) -> str:
    """One line of JSON, also for readers that end lines at U+2028.

    A number that JSON has not is written as text, a lone surrogate as its escape.
    """
    try:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        line = json.dumps(_spell_numbers(value), ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        line = json.dumps(json.loads(line))
    return _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _spell_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _spell_numbers(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_spell_numbers(inner) for inner in value]
    if isinstance(value, float) and value - value != 0:
        return str(value)
    if isinstance(value, int) and value.bit_length() > 14_000:
        return hex(value)
    return value


def make_visible(text: str) -> str:
    """The text on one line: control characters as their pictures or escapes."""
    return _STEERING.sub(lambda found: _show(ord(found[0])), text)


def _show(point: int) -> str:
    if point < 0x20:
        return chr(0x2400 + point)
    return "\u2421" if point == 0x7F else f"\\u{point:04x}"


def show_json(index: int, reading: Reading, *, is_tree: bool = False) -> dict[str, Any]:
    """The record's line; with `is_tree` its fields and layers too."""
    plain = {name: to_json_type(getattr(reading, name)) for name in _NAMES}
    if is_tree:
        plain |= {"fields": to_json_type(reading.fields), "layers": to_json_type(reading.layers)}
    return {"index": index, **plain, "error": find_error(reading)}


def find_error(reading: Reading) -> dict[str, Any] | None:
    """The error note of a malformed record: its code, its text, and its offset in code points of the wire."""
    note = reading.error
    if note is None:
        return None
    span = note.span
    outer = {layer.id: layer.of for layer in reading.layers}
    while span and span[0] != 0:
        span = outer.get(span[0])
    return {"kind": note.code, "reason": note.text, "offset": span[1] if span else None}


def show_failure(index: int, kind: str, reason: str, offset: int | None) -> dict[str, Any]:
    """The line of a record that gave no reading."""
    nothing: dict[str, Any] = dict.fromkeys(_NAMES)
    nothing |= {"candidates": [], "messages": [], "notes": []}
    return {"index": index, **nothing, "error": {"kind": kind, "reason": reason, "offset": offset}}


def show_quarantined(record: LogRecord, index: int) -> dict[str, Any]:
    """The line of a record whose bytes are no text; the offset counts bytes of the log."""
    problem = record.problem
    if problem is None:
        raise ValueError("the record is not quarantined")
    return show_failure(index, problem.code, problem.reason, problem.offset)


_WORDS: dict[str, Callable[[Message], str]] = {
    "english": lambda message: message.sentence,
    "gloss": lambda message: message.gloss_line or message.sentence,
}


def write_reading(index: int, reading: Reading, format_name: str) -> Iterable[str]:
    """The lines a reading is printed as."""
    words = _WORDS.get(format_name)
    if words is None:
        return [write_json(show_json(index, reading, is_tree=format_name == "tree"))]
    error = find_error(reading)
    return [*(make_visible(words(message)) for message in reading.messages), *([_say(error)] if error else ())]


def write_failure(shown: dict[str, Any], format_name: str) -> str:
    """The line that a record without a reading is printed as."""
    return _say(shown["error"]) if format_name in _WORDS else write_json(shown)


def _say(error: dict[str, Any]) -> str:
    where = "" if error["offset"] is None else f" at {error['offset']}"
    return make_visible(f"[{error['kind']}{where}: {error['reason']}]")
