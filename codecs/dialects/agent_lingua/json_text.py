"""JSON as text with places: what it holds, and where each member stands, so that a sentence can point at it.

Duplicate keys, numbers too large to compute with and deep nesting are reported, never dropped in silence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isinf
from typing import Any, NamedTuple

MAX_DEPTH = 64
# Python refuses longer integers by default, and nothing that long is a quantity.
_MAX_DIGITS = 4300
_SPACE = re.compile(r"[ \t\n\r]*")


class Parsed(NamedTuple):
    """A JSON value, with the keys given twice and whether digits were kept as text."""

    value: Any
    duplicates: tuple[str, ...] = ()
    has_kept_digits: bool = False


class Member(NamedTuple):
    """One member of an object (with a key) or item of an array (without), and the spans of key and value."""

    key: str | None
    key_span: tuple[int, int] | None
    start: int
    end: int
    value: Any


class TooDeepError(Exception):
    """JSON nested deeper than is read."""


def _number(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_DIGITS else digits


def _fraction(digits: str) -> float | str:
    number = float(digits)
    return digits if isinf(number) else number


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_PLAIN = json.JSONDecoder(parse_int=_number, parse_float=_fraction, parse_constant=_refuse)


def parse_json(text: str) -> Parsed:
    """Parse a whole text as JSON.

    Raises:
        ValueError: if it is not JSON; NaN and Infinity are not.
        TooDeepError: if it nests deeper than 64.
    """
    duplicates: list[str] = []
    kept: list[str] = []

    def take_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        whole = dict(pairs)
        if len(whole) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    duplicates.append(key)
                seen.add(key)
        return whole

    def take_number(digits: str) -> int | str:
        if len(digits) > _MAX_DIGITS:
            kept.append(digits)
        return _number(digits)

    def take_fraction(digits: str) -> float | str:
        number = _fraction(digits)
        if isinstance(number, str):
            kept.append(digits)
        return number

    decoder = json.JSONDecoder(
        object_pairs_hook=take_pairs, parse_int=take_number, parse_float=take_fraction, parse_constant=_refuse
    )
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise TooDeepError from None
    if (text.count("{") + text.count("[")) > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise TooDeepError
    return Parsed(value, tuple(duplicates), bool(kept))


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        inner = [item for item in level if isinstance(item, (dict, list))]
        level = [child for item in inner for child in (item.values() if isinstance(item, dict) else item)]
        depth += bool(inner)
        if not inner:
            break
    return depth


def find_json_end(text: str, start: int, end: int) -> int | None:
    """Where a JSON object or array that begins at `start` ends, or None if none does before `end`."""
    try:
        _, stop = _PLAIN.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return stop if stop <= end else None


def members(text: str, start: int) -> Iterator[Member]:
    """The members of the object, or the items of the array, that begins at `start` of a valid JSON text."""
    closing = "}" if text[start] == "{" else "]"
    at = _skip(text, start + 1)
    while text[at] != closing:
        key, key_span = None, None
        if closing == "}":
            key, after = _PLAIN.raw_decode(text, at)
            key_span = (at, after)
            at = _skip(text, _skip(text, after) + 1)
        value, after = _PLAIN.raw_decode(text, at)
        yield Member(key, key_span, at, after, value)
        at = _skip(text, after)
        if text[at] == ",":
            at = _skip(text, at + 1)


def first_character(text: str) -> int:
    """The offset of the first character that is not JSON's white space."""
    return _skip(text, 0)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def write_json(value: Any) -> str:
    """The canonical spelling: no spaces, characters as they are; escapes only where UTF-8 has no bytes for them."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        written.encode()
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return written
