"""Envelopes from what stands around a wire in a log: a line's prefix, an object's fields, the cells of a row.

The rule for speakers in a prefix, `name: ` and `name -> name: `, is kept simple: the name is a word or two, it is no
word that a dialect or a program sets before a colon, a space follows the colon,
and the rest reads better without it. That is so
where the rest alone is in a dialect, and surer than the whole line is (a dialect may have speakers of its own);
where an arrow names both speakers, and the rest is in a dialect as surely as the whole line is; but what is for
everybody (`*`) is left to a dialect that says so itself;
where the whole line is in no dialect, and an arrow names both speakers or a time or a label stood before.
`Note: bring the logs` without a time stays one text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dialects._dialect import detect

from .._decoding import envelope_of
from .._record import Envelope
from .._time import instant_of_log

_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:\s?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?"
# Seconds, milliseconds, microseconds or nanoseconds.
_UNIX = r"\d{10}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19}"
_TIME = re.compile(
    rf"\s*(?:\[({_ISO}|{_UNIX})\]|({_ISO}|{_UNIX})(?=[ \t]))[ \t]*",
    re.ASCII,
)
_LABEL = re.compile(r"\s*\[([^\[\]{}\"]{1,64})\][ \t]+(?=\S)")
_NAME = r"[^\W_][\w.\-]{0,63}(?: [^\W_][\w.\-]{0,63})?"
_SPEAKER = re.compile(rf"\s*({_NAME})(?:\s*(?:->|→|=>)\s*((?:{_NAME}|\*)(?:,\s*{_NAME}){{0,31}}))?:[ \t]+(?=\S)")

# Words before a colon that name no speaker: Lambda's key material, inline markers and errors; what models write
# before a wire; what people write before a remark; the levels of log programs; the schemes of addresses.
_RESERVED = frozenset(
    (
        *("pub", "prv", "sig", "v", "c", "s", "e", "o", "a", "m", "er", "Λ", "λ", "lambda"),
        *("thought", "quantize", "slip", "json", "text", "note", "data"),
        *("trace", "debug", "info", "notice", "warn", "warning", "error", "fatal", "critical"),
        *("http", "https", "ftp", "mailto", "file", "urn"),
    )
)
_SURE = 0.5
# A text this sure is a wire from end to end: more around it can only make it less so.
_CERTAIN = 0.98
_MAX_LABELS = 8
_TIME_STARTS = frozenset("0123456789[ \t")


def has_time(line: str) -> bool:
    """Whether a line begins with a time of its own, and so opens a record."""
    return line[:1] in _TIME_STARTS and _time_of(line) is not None


def _time_of(line: str) -> tuple[int, str, str] | None:
    found = _TIME.match(line)
    if not found:
        return None
    raw = found[1] or found[2]
    instant = instant_of_log(raw)
    return (found.end(), raw, instant) if instant else None


def read_prefix(line: str) -> tuple[int, Envelope | None]:
    """How many characters of the line are its prefix, and the envelope they make; (0, None) for none."""
    start = 0
    given: dict[str, Any] = {}
    if line[:1] in _TIME_STARTS:
        if time := _time_of(line):
            start, given["at_raw"], given["at"] = time
        labels: list[str] = []
        while len(labels) < _MAX_LABELS and (label := _LABEL.match(line, start)):
            labels.append(label[1])
            start = label.end()
        if labels:
            given["label"] = " ".join(labels)
    speaker = _SPEAKER.match(line, start)
    if speaker and _is_speaker(speaker, line, start):
        given["sender"] = speaker[1]
        if speaker[2]:
            names = tuple(name.strip() for name in speaker[2].split(","))
            given["receivers"] = tuple(name for name in names if name != "*")
            if "*" in names:
                given["extra"] = {"to": "*"}
        start = speaker.end()
    # A line that holds nothing but a time is its own text.
    return (start, Envelope(**given)) if given and line[start:].strip() else (0, None)


def _is_speaker(found: re.Match[str], line: str, start: int) -> bool:
    if found[1] in _RESERVED or (len(found[1]) > 1 and found[1].lower() in _RESERVED):
        return False
    rest = detect(line[found.end() :])[0]
    if rest.score >= _CERTAIN:
        return True
    whole = detect(line[start:])[0]
    if whole.dialect == "prose" and (found[2] is not None or start > 0):
        return True
    if found[2] is not None and "*" not in found[2] and rest.dialect != "prose" and rest.score >= whole.score:
        return True
    return rest.dialect != "prose" and rest.score >= _SURE and (whole.dialect == "prose" or rest.score > whole.score)


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
