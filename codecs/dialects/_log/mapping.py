"""How the fields of an object or of a CSV row become the wire and its envelope."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .._envelope import envelope_of
from .._record import Envelope

# What CSV columns are commonly called, by the envelope's name; the first that a header holds is taken.
COLUMNS: dict[str, tuple[str, ...]] = {
    "raw": ("raw", "wire", "message", "msg", "text", "content", "body", "payload", "line"),
    "at": ("at", "time", "timestamp", "ts", "datetime", "date", "sent_at", "created_at"),
    "from": ("from", "sender", "src", "speaker", "agent", "author"),
    "to": ("to", "receiver", "receivers", "recipient", "recipients", "dst", "target"),
    "conversation": ("conversation", "conversation_id", "cid", "thread", "thread_id"),
    "trace": ("trace", "trace_id", "tid"),
    "parent": ("parent", "parent_id", "pid", "reply_to", "in_reply_to"),
    "id": ("id", "message_id", "mid"),
    "dialect": ("dialect",),
    "label": ("label", "level"),
}
_BETWEEN_NAMES = re.compile(r"[,;|]")


class Repeating(dict[str, Any]):
    """An object in which a key stands twice: as an envelope it would hide something."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    return built if len(built) == len(pairs) else Repeating(pairs)


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < 4000 else digits


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


def read_object(text: str, fields: Mapping[str, str]) -> tuple[str, Envelope | None]:
    """The wire and the envelope of a JSON object's text.

    An object with a string under `raw` (or the name that `fields` gives for it) is an envelope. Any other is
    itself the message, and so is one that names a key twice: its wire is its exact text.
    """
    name = fields.get("raw", "raw")
    if f'"{name}"' not in text:
        return text, None
    try:
        found = DECODER.decode(text)
    except (ValueError, RecursionError):
        return text, None
    if not isinstance(found, dict) or isinstance(found, Repeating) or not isinstance(found.get(name), str):
        return text, None
    wire: str = found[name]
    return wire, _envelope(rename_fields(found, fields))


def read_string(text: str) -> str | None:
    """The text that a JSON string holds; None where it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def rename_fields(mapping: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """The mapping with the log's own names replaced by the envelope's."""
    if not fields:
        return dict(mapping)
    ours = {own: name for name, own in fields.items()}
    return {ours.get(name, name): value for name, value in mapping.items()}


def envelope_of_row(cells: Mapping[str, str]) -> Envelope | None:
    """The envelope of a CSV row by the envelope's names; several receivers are set apart by `,`, `;` or `|`."""
    given: dict[str, Any] = {name: text for name, text in cells.items() if text}
    if "to" in given:
        given["to"] = [name for part in _BETWEEN_NAMES.split(given["to"]) if (name := part.strip())]
    return _envelope(given)


def _envelope(mapping: dict[str, Any]) -> Envelope | None:
    envelope = envelope_of(mapping)
    return envelope if any(getattr(envelope, name) for name in Envelope._order) else None


def merge_envelopes(inner: Envelope | None, outer: Envelope | None) -> Envelope | None:
    """The names of both; where both have one, the inner's stands."""
    if inner is None or outer is None:
        return inner or outer
    given = {name: value for name in Envelope._order if (value := getattr(inner, name) or getattr(outer, name))}
    return Envelope(**given)
