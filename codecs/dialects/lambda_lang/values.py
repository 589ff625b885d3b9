"""Values in English: what stands in `{…}` and `[…]`, key by key."""

from __future__ import annotations

import re
from collections.abc import Callable

from .blocks import MAX_DEPTH
from .blocks import Node as Value
from .pieces import Piece
from .protocol import TASK_KEYS
from .wording import delimit, say_degree, say_text

# What the parts of a value mean, in words, where they mean something: said in brackets after the value.
Explain = Callable[[Value], list[Piece]]


def say_block(block: Value, explain: Explain) -> list[Piece]:
    """The items of a block or a list, in order: `priority high, timeout 60 seconds`."""
    pieces: list[Piece] = []
    count = len(block.items)
    for index, item in enumerate(block.items):
        joint = "" if index == 0 else ("," if count > 2 and index < count - 1 else " and")
        said = say_item(item, explain)
        if said and joint:
            said[0] = said[0]._replace(text=f"{joint}{said[0].text}")
        pieces.extend(said)
    return pieces or [Piece(" nothing", ((0, block.start, block.end),))]


def say_item(item: Value, explain: Explain) -> list[Piece]:
    """A value in words; characters of the wire stay as they are."""
    span = (0, item.start, item.end)
    if item.kind == "pair":
        key_span = (0, item.key_at[0], item.key_at[1])
        name = TASK_KEYS.get(item.key) or delimit(item.key)
        inner = item.items[0]
        if item.key == "pr" and inner.text.rstrip("+-^_").endswith("%"):
            name = "progress"
        if item.key == "ti" and (length := _say_length(inner.text)):
            return [Piece(f" {name}", (key_span,)), Piece(f" {length}", ((0, inner.start, inner.end),))]
        return [Piece(f" {name}", (key_span,)), *say_item(inner, explain)]
    if item.kind == "list":
        if not item.items:
            return [Piece(" (an empty list)", (span,))]
        return say_block(item, explain)
    if item.kind == "block":
        said = say_block(item, explain)
        said[0] = said[0]._replace(text=f" ({said[0].text.lstrip()}")
        return [*said, Piece(")", ())]
    if item.kind == "deep":
        return [Piece(f" (nested deeper than {MAX_DEPTH}, not read: {say_text(item.text)})", (span,), "unknown")]
    return [Piece(f" {_say_text(item.text)}", (span,)), *explain(item)]


_SYMBOLS = {
    "^": "high",
    "_": "low",
    "^^^": "very high",
    "__": "very low",
    "": "with no value after it",
    "...": "(left out: ...)",
}


_LENGTH = re.compile(r"\$?(\d{1,9}(?:\.\d{1,6})?)(s|m|min|h|d)\Z")
_UNITS = {"s": "second", "m": "minute", "min": "minute", "h": "hour", "d": "day"}


def _say_length(text: str) -> str | None:
    """`$60s` is "60 seconds"."""
    length = _LENGTH.match(text)
    return f"{length[1]} {_UNITS[length[2]]}{'' if length[1] == '1' else 's'}" if length else None


_MODIFIED = re.compile(r"(\$?\d[\d.:]*(?:%|[A-Za-z]{1,3})?)([+\-^_])\Z")


def _say_text(text: str) -> str:
    if text in _SYMBOLS:
        return _SYMBOLS[text]
    if modified := _MODIFIED.match(text):
        return f"{_say_text(modified[1])} ({say_degree(modified[2])})"
    return delimit(text[1:] if text.startswith("$") and text[1:2].isdigit() else text)
