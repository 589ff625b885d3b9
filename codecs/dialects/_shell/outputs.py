"""What the commands print: one JSON line a record, or its words with every control character made visible."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .._exchange import show_json, write_json
from .._hidden import HIDDEN_CLASS
from .._record import Reading
from .transcript import Transcript

# What a reader cannot see, and what ends a line: a log must not steer a terminal, nor hide in what it shows.
_STEERING = re.compile(f"[\t\n]|{HIDDEN_CLASS}")


def make_visible(text: str) -> str:
    """The text on one line: control characters as their pictures, other hidden ones as escapes."""
    return _STEERING.sub(lambda found: _show(ord(found[0])), text)


def _show(point: int) -> str:
    if point < 0x20:
        return chr(0x2400 + point)
    return "\u2421" if point == 0x7F else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def write_reading(index: int, reading: Reading, format_name: str, transcript: Transcript) -> Iterable[str]:
    """The lines a reading is printed as."""
    if format_name == "english":
        return map(make_visible, transcript.write(reading))
    if format_name == "gloss":
        return [make_visible(message.gloss_line or message.sentence) for message in reading.messages]
    return [write_json(show_json(index, reading, is_tree=format_name == "tree"))]


def write_failure(shown: dict[str, Any], format_name: str) -> str:
    """The line that a record without a reading is printed as."""
    if format_name not in ("english", "gloss"):
        return write_json(shown)
    error = shown["error"]
    where = "" if error["offset"] is None else f", at {error['offset']}"
    return make_visible(f"Not read{where}: {error['reason']}.")
