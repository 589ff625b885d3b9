"""What the commands print: one JSON line a record, or its words with every control character made visible."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from .._exchange import find_error, show_json, write_json
from .._record import Message, Reading

# C0 and C1 controls, line separators, and what turns the direction of writing: a log must not steer a terminal.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def make_visible(text: str) -> str:
    """The text on one line: control characters as their pictures or escapes."""
    return _STEERING.sub(lambda found: _show(ord(found[0])), text)


def _show(point: int) -> str:
    if point < 0x20:
        return chr(0x2400 + point)
    return "\u2421" if point == 0x7F else f"\\u{point:04x}"


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
