"""What the commands print: one JSON line a record, or its words with every control character made visible."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._exchange import show_json, write_json
from .._hidden import make_visible
from .._record import Reading
from .talks import Talks


def write_reading(index: int, reading: Reading, format_name: str, talks: Talks) -> Iterable[str]:
    """The lines a reading is printed as."""
    if format_name == "english":
        return map(make_visible, talks.write(reading))
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
