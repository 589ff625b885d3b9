"""JSON read and written exactly: digits kept, repeated keys seen, depth and size bounded, never a RecursionError.

The standard library's scanner does the reading. What it would lose is caught: a number whose digits Python's own
numbers cannot hold becomes `Digits`, one that is merely spelled otherwise becomes `Spelled`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

from .._record import NoteKind
from .notes import NOT_JSON, NUMBER_TOO_LONG, TOO_DEEP

MAX_DEPTH = 100
MAX_DIGITS = 5_000

# Quantifiers are possessive (`++`), so that no text makes these go back over what they have passed.
_STRUCTURE = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?|([{\[])|[}\]]', re.DOTALL)
_CONSTANT = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?|(-?Infinity|NaN)', re.DOTALL)
_LONG_NUMBER = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?|([-+.\dEe]{5000,}+)', re.DOTALL)
_LONE = re.compile(r"[\ud800-\udfff]")


class Digits(str):
    """A number kept as its digits, because no number of Python's holds all of them."""

    __slots__ = ()


class Spelled(float):
    """A number that Python would spell otherwise, with the spelling it had."""

    __slots__ = ("raw",)
    raw: str

    def __new__(cls, value: float, raw: str) -> Spelled:
        made = super().__new__(cls, value)
        made.raw = raw
        return made


class UnreadableError(Exception):
    """JSON that cannot be read.

    Attributes:
        kind: the kind of note it becomes.
        offset: where reading stopped, in code points of the text.
        reason: why, in words.
    """

    def __init__(self, kind: NoteKind, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.offset = offset
        self.reason = reason


class Loaded:
    """A JSON value with where it ended and what was odd about its text."""

    __slots__ = ("data", "end", "has_controls", "has_exact_numbers", "has_repeats")

    def __init__(self) -> None:
        self.data: Any = None
        self.end = 0
        self.has_repeats = False
        self.has_exact_numbers = False
        self.has_controls = False

    def make_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object of these pairs; the last of a repeated key stands."""
        made = dict(pairs)
        if len(made) != len(pairs):
            self.has_repeats = True
        return made

    def make_integer(self, raw: str) -> int | Digits:
        """The integer, or its digits where Python would not give them all back."""
        if len(raw) > MAX_DIGITS:
            raise _NumberTooLongError
        if raw != "-0":
            try:
                return int(raw)
            except ValueError:  # the interpreter's own limit on digits
                self.has_exact_numbers = True
                return Digits(raw)
        self.has_exact_numbers = True
        return Digits(raw)

    def make_fraction(self, raw: str) -> float | Digits:
        """The number, exactly: as a float where that has the same value, else as its digits."""
        if len(raw) > MAX_DIGITS:
            raise _NumberTooLongError
        value = make_fraction(raw)
        if type(value) is Digits:
            self.has_exact_numbers = True
        return value


class _NumberTooLongError(Exception):
    pass


class _ConstantError(Exception):
    pass


def make_fraction(raw: str) -> float | Digits:
    """A number with a fraction or exponent: a float of the same value, or its digits."""
    value = float(raw)
    if repr(value) == raw:
        return value
    if value == 0.0:
        mantissa = raw.lower().partition("e")[0]
        return Digits(raw) if mantissa.strip("-0.") else Spelled(value, raw)
    if isfinite(value) and len(raw) < 400 and Decimal(raw) == Decimal(repr(value)):
        return Spelled(value, raw)
    return Digits(raw)


def _refuse_constant(name: str) -> None:
    raise _ConstantError


def is_shallow(text: str) -> bool:
    """Whether the whole text has too few brackets to nest deeper than may be read."""
    return text.count("{") + text.count("[") <= MAX_DEPTH


def load(text: str, start: int = 0, *, shallow: bool = False) -> Loaded:
    """The JSON value that begins at `start`; text may follow it.

    Args:
        text: the text.
        start: where the value begins.
        shallow: whether `is_shallow` holds for the text, so that the depth needs no measuring.

    Raises:
        UnreadableError: if it is not JSON, nested too deeply, or has too long a number.
    """
    if not shallow:
        measure_depth(text, start)
    try:
        return _load(text, start, is_strict=True)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Invalid control character"):
            raise UnreadableError(NOT_JSON, error.pos, _describe(error.msg)) from None
    try:
        loaded = _load(text, start, is_strict=False)
    except json.JSONDecodeError as error:
        raise UnreadableError(NOT_JSON, error.pos, _describe(error.msg)) from None
    loaded.has_controls = True
    return loaded


def _load(text: str, start: int, *, is_strict: bool) -> Loaded:
    loaded = Loaded()
    decoder = json.JSONDecoder(
        object_pairs_hook=loaded.make_object,
        parse_int=loaded.make_integer,
        parse_float=loaded.make_fraction,
        parse_constant=_refuse_constant,
        strict=is_strict,
    )
    try:
        loaded.data, loaded.end = decoder.raw_decode(text, start)
    except _NumberTooLongError:
        offset = _find(_LONG_NUMBER, text, start)
        raise UnreadableError(NUMBER_TOO_LONG, offset, f"a number has more than {MAX_DIGITS:,} digits") from None
    except _ConstantError:
        offset = _find(_CONSTANT, text, start)
        raise UnreadableError(NOT_JSON, offset, "NaN and Infinity are not JSON") from None
    return loaded


def _describe(message: str) -> str:
    return f"not JSON: {message[0].lower()}{message[1:]}"


def _find(pattern: re.Pattern[str], text: str, start: int) -> int:
    return next((found.start(1) for found in pattern.finditer(text, start) if found[1]), start)


def measure_depth(text: str, start: int = 0) -> None:
    """Check that the value at `start` nests no deeper than may be read; it stops where the value ends.

    Raises:
        UnreadableError: at the bracket that is too deep.
    """
    depth = 0
    for found in _STRUCTURE.finditer(text, start):
        if found[1]:
            depth += 1
            if depth > MAX_DEPTH:
                raise UnreadableError(TOO_DEEP, found.start(), f"nested deeper than {MAX_DEPTH} levels")
        elif found[0][0] != '"':
            depth -= 1
            if depth <= 0:
                return


def write_text(text: str) -> str:
    """A JSON string literal; half a character is written as an escape, since no UTF-8 holds it."""
    written = json.dumps(text, ensure_ascii=False)
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", written) if _LONE.search(written) else written


def write(value: Any, comma: str = ",", colon: str = ":") -> str:
    """A value as JSON text, numbers with the digits and the spelling they had. Depth is bounded by reading."""
    if type(value) is str:
        return write_text(value)
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, Spelled):
        return value.raw
    if isinstance(value, str):
        return write_text(value)
    if isinstance(value, Mapping):
        pairs = (f"{write_text(str(key))}{colon}{write(inner, comma, colon)}" for key, inner in value.items())
        return f"{{{comma.join(pairs)}}}"
    if isinstance(value, Sequence):
        return f"[{comma.join(write(inner, comma, colon) for inner in value)}]"
    return json.dumps(value)
