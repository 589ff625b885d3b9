"""Spans and records of logs in a JSON value, in each of their forms, with the paths of what is said of them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

from .._draft import Draft
from .._json import Path, write
from .._time import instant_of_log
from .tables import KINDS, MESSAGE_EVENTS, OF_GENAI

# Attributes that are objects are looked into this deep.
MAX_DEPTH: Final = 6
_HEX: Final = re.compile(r"[0-9a-f]{1,64}\Z")
# An integer of 64 bits, as Protobuf's JSON writes it: a text.
_INTEGER: Final = re.compile(r"(?:0|-?[1-9][0-9]{0,18})\Z")
_VALUES: Final = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue", "arrayValue", "kvlistValue")
_WRAPPERS: Final = ("arrayValue", "kvlistValue")
_TRACE: Final = ("traceId", "trace_id")
_SPAN: Final = ("spanId", "span_id")
_PARENT: Final = ("parentSpanId", "parent_span_id", "parent_id")
_START: Final = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
_END: Final = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")
_LOGGED: Final = ("timeUnixNano", "time_unix_nano", "timestamp")
_OBSERVED: Final = ("observedTimeUnixNano", "observed_time_unix_nano", "observed_timestamp")
_SEVERITY: Final = ("severityNumber", "severity_number")
_EVENT: Final = ("eventName", "event_name")
# The lists that lead to spans and to records of logs.
_EXPORTS: Final = (
    ("resourceSpans", ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"), ("spans",)),
    ("resource_spans", ("scope_spans", "scopeSpans"), ("spans",)),
    ("resourceLogs", ("scopeLogs", "scope_logs"), ("logRecords", "log_records")),
    ("resource_logs", ("scope_logs", "scopeLogs"), ("log_records", "logRecords")),
)
_FAILED: Final = (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error", "StatusCode.ERROR")


class Found(NamedTuple):
    """A value and where it stands.

    Attributes:
        inside: its members, where OTLP has wrapped each of them.
    """

    data: Any
    path: Path
    inside: Mapping[str | int, Found] | None = None

    @property
    def text(self) -> str | None:
        """The value as a text, of a number its digits; None where it is neither, or empty."""
        if isinstance(self.data, str):
            return self.data or None
        return None if self.data is None or isinstance(self.data, (bool, dict, list)) else write(self.data)


NOTHING: Final = Found(None, ())


class Event(NamedTuple):
    """What happened in the course of a span."""

    name: str
    attributes: dict[str, Found]


class Span:
    """One span: what it says of itself, and of the program that it ran in."""

    is_record = False

    def __init__(self, data: dict[str, Any], path: Path, resource: Found) -> None:
        context = data.get("context")
        places = [Found(data, path), *([Found(context, (*path, "context"))] if isinstance(context, dict) else [])]
        self.path = path
        self.trace, self.id = pick(places, _TRACE), pick(places, _SPAN)
        self.parent = pick(places[:1], _PARENT)
        self.name = pick(places[:1], ("name",))
        self.is_client = data.get("kind") in (3, "SPAN_KIND_CLIENT", "SpanKind.CLIENT", "CLIENT")
        self.start, self.end = pick(places[:1], _START), pick(places[:1], _END)
        self._data = data
        self.resource = _read_resource(Found(data["resource"], (*path, "resource")) if "resource" in data else resource)
        status = data.get("status")
        self.status = Found(status if isinstance(status, dict) else {}, (*path, "status"))

    @cached_property
    def attributes(self) -> dict[str, Found]:
        """What it says of itself, by name."""
        return read_attributes(self._data.get("attributes"), (*self.path, "attributes"))

    @cached_property
    def events(self) -> list[Event]:
        """What happened in its course."""
        return [
            Event(
                str(event.data.get("name")), read_attributes(event.data.get("attributes"), (*event.path, "attributes"))
            )
            for event in _members(Found(self._data, self.path), ("events",))
        ]

    @cached_property
    def _wrapped(self) -> dict[Path, Found]:
        held = chain(self.attributes.values(), *(event.attributes.values() for event in self.events))
        return {found.path: found for found in held if found.inside is not None}

    @property
    def place(self) -> Found:
        """The id of the span that the messages within it stand below."""
        return self.id

    @property
    def is_whole(self) -> bool:
        """Whether it has what makes a span: both ids, a name and a start."""
        return None not in (self.trace.text, self.id.text, self.start.text) and isinstance(self.name.data, str)

    @cached_property
    def is_of_genai(self) -> bool:
        """Whether anything in it is of GenAI, by names alone: it is asked of whatever may be a span."""
        events = _members(Found(self._data, self.path), ("events",))
        names = [*_list_attributes(self._data.get("attributes")), *(str(event.data.get("name")) for event in events)]
        return any(name.startswith(OF_GENAI) for name in names)

    @property
    def operation(self) -> str | None:
        """What was done, by the name that the conventions give it."""
        named = self.find("gen_ai.operation.name").text
        if named is not None:
            return named
        kind = self.find("openinference.span.kind", "traceloop.span.kind", "llm.request.type").text
        if kind is not None:
            return KINDS.get(kind.upper(), kind.lower())
        return "chat" if self.find("gen_ai.request.model", "gen_ai.response.model").text else None

    def find(self, *names: str) -> Found:
        """The first of these attributes that says something."""
        return next((self.attributes[name] for name in names if name in self.attributes), NOTHING)

    def lead(self, draft: Draft) -> Draft:
        """Let the paths of a draft, which go on below an attribute as if it were plain JSON, lead through the wire."""
        if not self._wrapped:
            return draft
        held = (self._follow(path) for path in (*draft.carried, *draft.quoted))
        draft.move(cache(lambda path: self._follow(path).path))
        draft.written = {found.path: write(found.data) for found in held if found.inside is not None}
        return draft

    def _follow(self, path: Path) -> Found:
        size = next((size for size in range(len(path) + 1) if path[:size] in self._wrapped), None)
        if size is None:
            return Found(None, path)
        found = self._wrapped[path[:size]]
        for at, step in enumerate(path[size:], start=size):
            if found.inside is None or step not in found.inside:
                # What is below is a text of JSON, or leads nowhere.
                return Found(None, (*found.path, *path[at:]))
            found = found.inside[step]
        return found

    @property
    def has_failed(self) -> bool:
        """Whether its status is an error."""
        code = self.status.data.get("code", self.status.data.get("status_code"))
        return isinstance(code, (str, int)) and code in _FAILED

    @property
    def microseconds(self) -> int | None:
        """How long it took; None where it does not say."""
        first, last = self.start.text, self.end.text
        if first is None or last is None:
            return None
        if first.isdecimal() and last.isdecimal() and len(first) == len(last) == 19:
            return (int(last) - int(first)) // 1000
        began, ended = instant_of_log(first), instant_of_log(last)
        if began is None or ended is None:
            return None
        apart = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
        return (apart.days * 86400 + apart.seconds) * 1_000_000 + apart.microseconds


class Record(Span):
    """A record of a log: what a program noted, maybe within a span. An event of GenAI is one that has a name."""

    is_record = True

    def __init__(self, data: dict[str, Any], path: Path, resource: Found) -> None:
        super().__init__(data, path, resource)
        place = [Found(data, path)]
        self.parent, self.id, self.end = self.id, NOTHING, NOTHING
        times = (pick(place, _LOGGED), pick(place, _OBSERVED))
        self.start = next((time for time in times if time.text not in (None, "0")), NOTHING)
        self._own = read_attributes(data.get("attributes"), (*path, "attributes"))
        named = pick(place, _EVENT)
        self.name = named if named.text else self._own.get("event.name", NOTHING)
        self.body = _unwrap(Found(data["body"], (*path, "body"))) if "body" in data else NOTHING
        self.severity = pick(place, ("severityText", "severity_text"))
        self.status = Found({}, self.name.path or path)

    @cached_property
    def attributes(self) -> dict[str, Found]:
        """What it says of itself, by name; an event of GenAI says some of it in its body."""
        if not self.is_event or not isinstance(self.body.data, dict):
            return {**self._own, "body": self.body}
        below = {name: Found(value, (*self.body.path, name)) for name, value in self.body.data.items()}
        return {**below, **(self.body.inside or {}), **self._own}

    @cached_property
    def events(self) -> list[Event]:
        """The message that it is, if it is one."""
        return [Event(str(self.name.data), self.attributes)] if self.is_message else []

    @property
    def is_event(self) -> bool:
        """Whether it is an event of GenAI."""
        return str(self.name.text).startswith("gen_ai.")

    @property
    def is_message(self) -> bool:
        """Whether it is one message to or from a model, as the conventions had it up to 1.36."""
        return self.name.text in MESSAGE_EVENTS

    @property
    def place(self) -> Found:
        """The id of the span that it was logged in."""
        return self.parent

    @property
    def is_whole(self) -> bool:
        """Whether it has what makes a record: a time or a severity by their names, and a body or a name."""
        place = [Found(self._data, self.path)]
        return any(pick(place, names) is not NOTHING for names in (_LOGGED[:2], _OBSERVED, _SEVERITY)) and (
            "body" in self._data or self.name.text is not None
        )

    @cached_property
    def is_of_genai(self) -> bool:
        """Whether anything in it is of GenAI."""
        return self.is_event or super().is_of_genai

    @property
    def has_failed(self) -> bool:
        """Whether it is an event of GenAI that tells of an error."""
        return self.is_event and self.find("error.type", "exception.type").text is not None


def list_spans(data: Any) -> list[Span]:
    """The spans or the records of a JSON value: one, or all of an export; none where it is anything else."""
    if not isinstance(data, dict):
        return []
    export = next((export for export in _EXPORTS if export[0] in data), None)
    if export is not None:
        return [span for span in _list_exported(data, *export) if span.is_whole]
    return [span for span in (Span(data, (), NOTHING), Record(data, (), NOTHING)) if span.is_whole][:1]


def _list_exported(data: Any, key: str, scopes: Sequence[str], names: Sequence[str]) -> Iterator[Span]:
    kind = Span if names == ("spans",) else Record
    for resource in _members(Found(data, ()), (key,)):
        own = Found(resource.data.get("resource"), (*resource.path, "resource"))
        for scope in _members(resource, scopes):
            for span in _members(scope, names):
                yield kind(span.data, span.path, own)


def _members(found: Found, keys: Sequence[str]) -> Iterator[Found]:
    for key in keys:
        yield from _items(Found(found.data.get(key), (*found.path, key)))


def _items(found: Found) -> Iterator[Found]:
    for index, item in enumerate(found.data if isinstance(found.data, list) else ()):
        if isinstance(item, dict):
            yield Found(item, (*found.path, index))


def pick(places: Sequence[Found], names: Sequence[str]) -> Found:
    """The value under the first of these names that stands in one of these objects."""
    return next(
        (Found(place.data[name], (*place.path, name)) for place in places for name in names if name in place.data),
        NOTHING,
    )


def read_attributes(data: Any, path: Path) -> dict[str, Found]:
    """Attributes by name: of OTLP's list of keys and values, or of an object, with what stands deeper in it."""
    found = _list_attributes(data, path)
    return {name: _unwrap(each) for name, each in found.items()} if isinstance(data, list) else found


def _list_attributes(data: Any, path: Path = (), depth: int = 0) -> dict[str, Found]:
    found: dict[str, Found] = {}
    if isinstance(data, list):
        for item in _items(Found(data, path)):
            if isinstance(item.data.get("key"), str):
                found[item.data["key"]] = Found(item.data.get("value"), (*item.path, "value"))
    elif isinstance(data, dict):
        for name, value in data.items():
            found[name] = Found(value, (*path, name))
            if isinstance(value, dict) and depth < MAX_DEPTH:
                inner = _list_attributes(value, (*path, name), depth + 1)
                found.update({f"{name}.{below}": each for below, each in inner.items()})
    return found


def _unwrap(value: Found) -> Found:
    """The plain value of OTLP's AnyValue; what is none, or has another shape, is taken as it stands.

    It is called by itself no deeper than JSON may nest.
    """
    kind = next((kind for kind in _VALUES if kind in value.data), None) if isinstance(value.data, dict) else None
    if kind is None:
        # A value of no kind is null.
        return value._replace(data=None) if value.data == {} else value
    data, path = value.data[kind], (*value.path, kind)
    if kind == "intValue" and isinstance(data, str) and _INTEGER.match(data):
        return Found(int(data), path)
    listed = data.get("values", []) if kind in _WRAPPERS and isinstance(data, dict) else None
    if not isinstance(listed, list):
        return Found(data, path)
    inside: dict[str | int, Found] = {}
    for at, item in enumerate(listed):
        if kind == "arrayValue":
            inside[at] = _unwrap(Found(item, (*path, "values", at)))
        elif isinstance(item, dict) and isinstance(item.get("key"), str):
            # Of a key that stands more than once the last counts, as in an object of JSON.
            inside[item["key"]] = _unwrap(Found(item.get("value"), (*path, "values", at, "value")))
    plain = {key: found.data for key, found in inside.items()}
    return Found([*plain.values()] if kind == "arrayValue" else plain, path, inside)


def _read_resource(resource: Found) -> dict[str, Found]:
    if not isinstance(resource.data, dict):
        return {}
    if "attributes" in resource.data:
        return read_attributes(resource.data["attributes"], (*resource.path, "attributes"))
    return read_attributes(resource.data, resource.path)


def read_id(found: Found, size: int) -> str | None:
    """An id as lower-case hexadecimal digits, of which there are `size`; any other text as it is.

    OTLP in JSON writes hexadecimal digits, Protobuf's own JSON Base64, and the SDK's `to_json` `0x` before digits.
    """
    text = found.text
    if text is None:
        return None
    digits = text.lower().removeprefix("0x")
    if _HEX.match(digits):
        return None if not digits.strip("0") else digits
    try:
        decoded = base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return text
    return decoded if len(decoded) == size else text
