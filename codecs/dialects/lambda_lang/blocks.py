"""`{…}` and `[…]` as trees: keys, values, lists and definitions, each with its place in the text; and in English, key
by key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .nodes import Piece
from .protocol import TASK_KEYS
from .statements import find_close
from .wording import delimit, say_degree, say_text

# v0.9 allows ten levels of nesting; what lies deeper is kept as text.
MAX_DEPTH = 10
_SPACE = re.compile(r"\s*")
_KEY = re.compile(r"([A-Za-z_$][\w$.\-]*)(\s*[:=]\s*)")
_PLAIN = re.compile(r'[^,{}\[\]"=\\]*+(?:\\.[^,{}\[\]"=\\]*+)*', re.DOTALL)
_QUOTE = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


class Node(NamedTuple):
    """A value: `block` and `list` have items, a `pair` is a key with one item; `quote` and `text` are leaves."""

    kind: str
    start: int
    end: int
    text: str
    items: tuple[Node, ...] = ()
    key: str = ""
    key_at: tuple[int, int] = (0, 0)


def parse_block(text: str, start: int, end: int, depth: int = 1) -> Node:
    """The tree of the bracketed text[start:end], whose brackets are known to close.

    Escapes and quotes are the ones that `find_close` sees: what it takes for literal is never a bracket here.
    """
    kind = "block" if text[start] == "{" else "list"
    if depth > MAX_DEPTH:
        return Node("deep", start, end, text[start:end])
    items = []
    at = start + 1
    while at < end - 1:
        at = _skip(text, at)
        if at >= end - 1:
            break
        if text[at] == ",":
            at += 1
            continue
        item = _parse_item(text, at, end - 1, depth)
        items.append(item)
        at = max(item.end, at + 1)
    return Node(kind, start, end, text[start:end], tuple(items))


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _parse_item(text: str, at: int, end: int, depth: int) -> Node:
    key = _KEY.match(text, at, end)
    if key:
        value = _parse_value(text, key.end(), end, depth, may_pair=":" in key[2])
        return Node("pair", at, value.end, key[2].strip(), (value,), key[1], (at, key.end(1)))
    return _parse_value(text, at, end, depth)


def _parse_value(text: str, at: int, end: int, depth: int, *, may_pair: bool = False) -> Node:
    if at < end:
        if text[at] in "{[":
            close = find_close(text, at)
            if _ends(text, close, end):
                return parse_block(text, at, close, depth + 1)
        elif text[at] == '"':
            quote = _QUOTE.match(text, at, end)
            if quote and _ends(text, quote.end(), end):
                return Node("quote", at, quote.end(), quote[0])
    if may_pair:
        inner = _KEY.match(text, at, end)
        if inner and "=" in inner[2]:
            value = _parse_value(text, inner.end(), end, depth)
            return Node("pair", at, value.end, inner[2].strip(), (value,), inner[1], (at, inner.end(1)))
    last = _end_of_text(text, at, end)
    while last > at and text[last - 1].isspace():
        last -= 1
    return Node("text", at, last, text[at:last])


def _ends(text: str, at: int, end: int) -> bool:
    at = _skip(text, at)
    return at >= end or text[at] in ",}]"


def _end_of_text(text: str, at: int, end: int) -> int:
    while at < end:
        found = _PLAIN.match(text, at, end)
        at = found.end() if found else end
        if at >= end or text[at] in ",}]":
            break
        if text[at] in "{[":
            at = find_close(text, at)
        elif text[at] == '"':
            quote = _QUOTE.match(text, at, end)
            at = quote.end() if quote else at + 1
        else:
            at += 1
    return min(at, end)


def unquote(text: str) -> str:
    """The characters that a quoted string stands for: `\\"` and `\\\\` are undone, nothing else."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
    return text


def plain_value(node: Node) -> object:
    """A node as plain values: text, a list, or a mapping (a repeated key keeps a list of its values)."""
    if node.kind in ("text", "deep"):
        return node.text
    if node.kind == "quote":
        return unquote(node.text)
    if node.kind == "list":
        return [plain_value(item) for item in node.items]
    if node.kind == "pair":
        return {node.key: plain_value(node.items[0])}
    found: dict[str, object] = {}
    for item in node.items:
        if item.kind != "pair":
            found.setdefault("", []).append(plain_value(item))  # type: ignore[attr-defined]
        elif item.key in found:
            held = found[item.key]
            found[item.key] = [*(held if isinstance(held, list) else [held]), plain_value(item.items[0])]
        else:
            found[item.key] = plain_value(item.items[0])
    return found


def definitions_of(block: Node) -> list[tuple[str, Node, tuple[int, int]]]:
    """What `{def:a="x",b="y"}` defines: (name, value, place); a pair with `=` after a definition is another."""
    found: list[tuple[str, Node, tuple[int, int]]] = []
    is_defining = False
    for item in block.items:
        if item.kind != "pair":
            continue
        value = item.items[0]
        if item.key == "def" and item.text == ":":
            is_defining = True
            if value.kind == "pair":
                found.append((value.key, value.items[0], (value.start, value.end)))
            elif value.kind == "block":
                found.extend(
                    (inner.key, inner.items[0], (inner.start, inner.end))
                    for inner in value.items
                    if inner.kind == "pair"
                )
        elif is_defining and item.text == "=":
            found.append((item.key, value, (item.start, item.end)))
        else:
            is_defining = False
    return found


# What the parts of a value mean, in words, where they mean something: said in brackets after the value.
Explain = Callable[[Node], list[Piece]]


def say_block(block: Node, explain: Explain) -> list[Piece]:
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


def say_item(item: Node, explain: Explain) -> list[Piece]:
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
