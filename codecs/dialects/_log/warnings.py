"""What a sender most likely meant otherwise: names that are nearly right, times, JSON that is broken or unknown.

A warning changes nothing of how a record is framed or read. It quotes no value of the record, and of its names only
those that are known to be confused, so that it may be shown to whoever may not see the record's secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from .._dialect import all_dialects, get_dialect
from .._json import is_json
from .._record import Envelope
from .._time import assumption_of
from .._value import Value
from .blocks import Brackets
from .envelopes import COLUMNS, DECODER, Repeating
from .tape import LogRecord, Problem

# A longer text is not looked into for what may be wrong with it.
_MAX_CHARACTERS = 64 * 1024
_MAX_NAMES = 20
_MAX_NAME_LENGTH = 40
_SINGLE_QUOTES = re.compile(r"\s*[\[{]\s*'[^'\n]{1,64}'\s*:")
_BETWEEN = re.compile(r"[\s_.\-]+")

# code: what is told, what to change. `{name}` is what stands there, `{wanted}` what should.
WORDS: dict[str, tuple[str, str]] = {
    "name": ("`{name}` is no name of the envelope: it is kept, and not read", "write `{wanted}` instead of `{name}`"),
    "no-raw": ("the object has no `raw`: it is kept as JSON of an unknown kind", "write `raw` instead of `{name}`"),
    "raw-not-text": ("`raw` is no text: the object is kept as JSON of an unknown kind", "write `raw` as a JSON string"),
    "repeated-name": ("the object names something twice: it is kept as it stands", "write each name once"),
    "wrapper": (
        "the object holds a list under `{name}`, and is kept as one record",
        "write `messages` instead of `{name}`, or send the list alone, as application/json",
    ),
    "array": ("a JSON list is kept as one text", "send a list as application/json, or one JSON object a line"),
    "unknown-json": (
        "JSON of an unknown kind: no dialect reads it, and its quotations are not read either",
        "put the text that an agent sent under `raw`, or send that text itself",
    ),
    "answer": (
        "an answer of JSON-RPC, as any program may give it: read as A2A or MCP where its conversation speaks that",
        "send it with the request that it answers",
    ),
    "twice-encoded": ("the text is JSON in a JSON string: it was encoded twice", "encode the object once"),
    "single-quotes": (
        "the object has single quotes, as Python prints it, and is no JSON",
        "write it with json.dumps, which sets double quotes",
    ),
    "not-json": (
        "the object is no valid JSON: it is kept as a text",
        "write it with a JSON library, as json.dumps does",
    ),
    "several": (
        "something follows the JSON object on its line: both are kept as one text",
        "end each object with a line end",
    ),
    "not-an-object": (
        "the line is no JSON object and no JSON string: it is kept as a text",
        "send lines of text as text/plain; application/x-ndjson has one JSON object a line",
    ),
    "cut": ("the message is cut off before its end", "send each message whole, {wanted}"),
    "passed-over": ("{name}: it is kept with the delivery, and not read", "send exports as OTLP writes them in JSON"),
    "dialect": ("`dialect` names no dialect that there is: the text decides", "write the slug of one, or leave it out"),
    "time-not-read": (
        "`at` is not understood as a time",
        "write it as 2026-11-21T09:00:00Z, or as seconds since 1970",
    ),
    "time-without-zone": ("the time has no zone: it is taken as UTC", "write Z or an offset such as +01:00 behind it"),
    "time-unit": ("the time is taken as {name} since 1970", "write seconds, or 2026-11-21T09:00:00Z, if it is not"),
}

# How a message ends in dialects that are no JSON; any other is one object a line.
_ENDS = {
    "nslip": "up to the # that closes it",
    "lambda_lang": "with each brace and quotation mark closed",
}
_WHOLE_OBJECT = "one JSON object a line"

# What is commonly written, without signs between words, by the envelope's name for it.
_MORE: dict[str, tuple[str, ...]] = {
    "from": ("from_agent", "source", "from_name"),
    "to": ("to_agent", "destination", "to_name"),
    "at": ("when", "created", "event_time"),
    "conversation": ("conv_id", "session", "session_id", "chat_id"),
    "id": ("msg_id", "uuid"),
}
_NEVER = frozenset(("label", "level"))
_LISTS = frozenset(("message", "msgs", "records", "events", "items", "data", "logs", "entries", "batch", "lines"))


def _join(name: str) -> str:
    """A name as it is compared; nothing for one that cannot be meant, and that no answer could quote."""
    return _BETWEEN.sub("", name.lower()) if len(name) <= _MAX_NAME_LENGTH and name.isprintable() else ""


_MEANT = {
    _join(alias): name
    for table in (COLUMNS, _MORE)
    for name, aliases in table.items()
    for alias in aliases
    if alias not in _NEVER
}
_LONG = tuple(alias for alias in _MEANT if len(alias) > 3)


class LogWarning(Value):
    """What is likely not as its sender meant it.

    `code` is stable, `reason` says what was seen and done, `hint` what to change.
    """

    code: str
    reason: str
    hint: str


@lru_cache(maxsize=1024)
def _warn(code: str, name: str = "", wanted: str = "") -> LogWarning:
    reason, hint = (words.format(name=name, wanted=wanted) for words in WORDS[code])
    return LogWarning(code=code, reason=reason, hint=hint)


@lru_cache(maxsize=4096)
def _find_meant(name: str) -> str | None:
    """The envelope's name that is most likely meant by another one."""
    plain = _join(name)
    if plain in _MEANT:
        return _MEANT[plain]
    # A typo keeps the first letter and about the length: so few are compared, whatever names a record has.
    like = [alias for alias in _LONG if alias[0] == plain[:1] and abs(len(alias) - len(plain)) <= 2]
    close = get_close_matches(plain, like, n=1, cutoff=0.75) if like and len(plain) > 3 else ()
    return _MEANT[close[0]] if close else None


def warning_of_end(ending: Problem) -> LogWarning:
    """What the sender should be told of a stream as a whole, as `LogReader.ending` gives it."""
    if ending.code == "cut":
        reason = f"{ending.reason}: what comes after its last whole record is missing"
        return LogWarning(code="cut", reason=reason, hint="send the list whole, up to the bracket that closes it")
    return _warn(ending.code, ending.reason)


def warnings_of(record: LogRecord, dialect: str, *, form: str | None = None) -> tuple[LogWarning, ...]:
    """What a record's sender should be told of it; nothing for one that is quarantined, which says why itself.

    Args:
        record: as framing gives it.
        dialect: the one that its text is most likely in.
        form: how its log was framed, as `LogOptions` names it.
    """
    wire = record.wire
    if wire is None:
        return ()
    envelope = record.envelope
    is_telling = envelope is not None and (envelope.extra or envelope.at_raw or envelope.dialect)
    around = _of_envelope(envelope) if envelope is not None and is_telling else ()
    source = record.source or b""
    if form == "ndjson" and source[:1] not in b'{"':
        return (*around, _warn("not-an-object"))
    inside = _of_wire(wire, dialect)
    if form == "ndjson" and not inside and dialect == "prose" and source[-1:] not in b'}"':
        inside = (_warn("not-an-object"),)
    return (*around, *inside) if inside else tuple(around)


def _of_envelope(envelope: Envelope) -> list[LogWarning]:
    found = _of_names(envelope.extra, envelope) if envelope.extra else []
    if envelope.dialect and all(envelope.dialect != each.slug for each in all_dialects()):
        found.append(_warn("dialect"))
    raw = envelope.at_raw
    # What ends with Z says its zone.
    if raw and (envelope.at is None or raw[-1] != "Z"):
        assumed = assumption_of(raw) if envelope.at else None
        if envelope.at is None:
            found.append(_warn("time-not-read"))
        elif assumed == "zone":
            found.append(_warn("time-without-zone"))
        elif assumed:
            found.append(_warn("time-unit", assumed))
    return found


_FIELDS = {"from": "sender", "to": "receivers"}


def _of_names(names: Mapping[str, Any], envelope: Envelope | None) -> list[LogWarning]:
    """The names that are nearly the envelope's, where what they mean is not given."""
    found = []
    for name in list(names)[:_MAX_NAMES]:
        meant = _find_meant(name)
        # An export's `to: *` says what a log's arrow said.
        if meant is None or meant == "raw" or name == meant:
            continue
        if envelope is None or not getattr(envelope, _FIELDS.get(meant, meant)):
            found.append(_warn("name", name, meant))
    return found


def _of_wire(wire: str, dialect: str) -> Iterable[LogWarning]:
    first = wire[:1]
    if dialect == "nslip":
        is_doubtful = wire.rstrip()[-1:] != "#"
    elif dialect == "lambda_lang":
        is_doubtful = wire.count("{") != wire.count("}") or wire.count('"') % 2 != 0
    elif dialect == "clowl":
        is_doubtful = first == "{" and (wire[-1] != "}" or wire.count("{") != wire.count("}"))
    else:
        is_prose = dialect == "prose" and (first in "{[" or first.isspace())
        return list(_of_json(wire)) if is_prose and wire else ()
    is_cut = is_doubtful and len(wire) <= _MAX_CHARACTERS and _is_cut(wire, dialect)
    whole = _WHOLE_OBJECT if is_json(wire) else _ENDS.get(dialect, _WHOLE_OBJECT)
    return (_warn("cut", wanted=whole),) if is_cut else ()


def _is_cut(wire: str, dialect: str) -> bool:
    if is_json(wire):
        return _find_end(wire) is None
    reading = get_dialect(dialect).read(wire, None)
    notes = (*reading.notes, *(note for message in reading.messages for note in message.notes))
    return any(note.code.partition(".")[2].startswith("unclosed") for note in notes)


def _find_end(text: str) -> int | None:
    """Where, in bytes, the JSON value ends that a text begins with; None where it does not."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    end, is_closed = Brackets().scan(data, 0)
    return end if is_closed else None


def _of_json(wire: str) -> Iterator[LogWarning]:
    text = wire.strip(" \t\r\n\ufeff")
    if _SINGLE_QUOTES.match(text):
        yield _warn("single-quotes")
        return
    if text in ("{", "["):
        yield _warn("cut", wanted=_WHOLE_OBJECT)
        return
    if not is_json(text) and text[-1:] not in "}]":
        return
    if len(text) > _MAX_CHARACTERS:
        yield _warn("unknown-json")
        return
    try:
        found = DECODER.decode(text)
    except (ValueError, RecursionError):
        if is_json(text):
            end = _find_end(text)
            size = len(text.encode("utf-8", "surrogatepass"))
            if end is None:
                yield _warn("cut", wanted=_WHOLE_OBJECT)
            else:
                yield _warn("several" if end < size else "not-json")
        return
    if isinstance(found, dict):
        yield from _of_object(found)
    else:
        yield _warn("array")


def _of_object(found: dict[str, Any]) -> Iterator[LogWarning]:
    """What is wrong with a whole object that is neither an envelope nor a message."""
    if isinstance(found, Repeating):
        yield _warn("repeated-name")
    elif found.get("jsonrpc") == "2.0" and "method" not in found and not found.keys().isdisjoint(("result", "error")):
        yield _warn("answer")
    elif "raw" in found:
        yield _warn("twice-encoded" if isinstance(found["raw"], str) else "raw-not-text")
    elif wrapper := next((name for name, value in found.items() if isinstance(value, list) and _is_list(name)), None):
        yield _warn("wrapper", wrapper)
    else:
        named = [name for name, value in found.items() if isinstance(value, str) and _find_meant(name) == "raw"]
        named.sort(key=lambda name: _join(name) not in _MEANT)
        if not named:
            yield _warn("unknown-json")
            return
        yield _warn("no-raw", named[0])
        yield from _of_names(found, None)


def _is_list(name: str) -> bool:
    plain = _join(name)
    return plain in _LISTS or bool(get_close_matches(plain, ("messages",), cutoff=0.75))
