"""Readings as they are exchanged: the JSON that the shell prints and the HTTP interface answers with, and takes."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from ._context import Key, KeyList
from ._decoding import decode, envelope_of
from ._errors import DialectsError
from ._log import LogRecord
from ._record import Envelope, Reading
from ._value import to_json_type

_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_NAMES = ("dialect", "version", "vocabulary", "candidates", "messages", "footer", "notes")


class EnvelopeError(DialectsError):
    """What was given as an envelope is none."""


def parse_json(source: bytes, **options: Any) -> Any:
    """The value that the bytes are in JSON; `options` are those of `json.loads`.

    Raises:
        EnvelopeError: where they are no JSON, or nested too deeply.
    """
    try:
        return json.loads(source, **options)
    except RecursionError as error:
        raise EnvelopeError("not JSON that can be read: it is nested too deeply") from error
    except ValueError as error:
        raise EnvelopeError(f"not JSON: {error}") from error


def decode_envelope(given: Any, dialect: str | None = None) -> Reading:
    """Decode one envelope of the HTTP contract, to which `prior` and `keys` may have been added.

    Raises:
        EnvelopeError: where it is none.
    """
    wire, envelope = _read_prior(given, "this")
    prior = given.get("prior") or []
    keys = given.get("keys") or []
    if not isinstance(prior, list) or not isinstance(keys, list):
        raise EnvelopeError("prior and keys must be lists")
    return decode(
        wire,
        envelope,
        dialect=dialect,
        prior=[(item, None) if isinstance(item, str) else _read_prior(item, "a prior message") for item in prior],
        keys=KeyList([_read_key(item) for item in keys]),
    )


def _read_prior(given: Any, what: str) -> tuple[str, Envelope]:
    if not isinstance(given, dict) or not isinstance(given.get("raw"), str):
        raise EnvelopeError(f"{what} is no envelope: an object with a text under raw is needed")
    return given["raw"], envelope_of(given)


def _read_key(given: Any) -> Key:
    if not isinstance(given, dict):
        raise EnvelopeError("a key must be an object")
    try:
        parts: dict[str, Any] = {
            name: base64.b64decode(given[name], validate=True) for name in ("private", "peer", "psk") if name in given
        }
    except (binascii.Error, TypeError, ValueError) as error:
        raise EnvelopeError(f"a key is not Base64: {error}") from error
    session = given.get("session")
    if session is not None and not isinstance(session, str):
        raise EnvelopeError("a key's session must be text")
    return Key(session=session, **parts)


def show_json(index: int, reading: Reading, *, is_tree: bool = False) -> dict[str, Any]:
    """The record's line; with `is_tree` its fields and layers too."""
    shown: dict[str, Any] = to_json_type(show_values(index, reading, is_tree=is_tree))
    return shown


def show_values(index: int, reading: Reading, *, is_tree: bool = False) -> dict[str, Any]:
    """What stands in the record's line, as values of the codecs that are not taken apart yet."""
    names = (*_NAMES, "fields", "layers") if is_tree else _NAMES
    return {"index": index, **{name: getattr(reading, name) for name in names}, "error": find_error(reading)}


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
