"""The codecs over HTTP: their own values as JSON schemas, worked out of these so that neither can drift; POST decode
and encode. Nothing that is sent here is stored, and nothing of it is logged.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.plumbing import ResolvedComponent
from rest_framework.request import Request

import dialects
from dialects import (
    Candidate,
    Conversations,
    EnvelopeError,
    Field,
    Layer,
    LogOptions,
    LogReader,
    LogRecord,
    Loss,
    Message,
    Note,
    Reading,
)
from inspector.bounds import CUTS, bound_effort, check_effort

from .bodies import choose_form, look_at_beginning, read_body
from .endpoints import Endpoint, operation
from .parameters import SLUGS, take_choice
from .problems import BrokenBodyError, ProblemError

# In the order in which one may name another.
VALUES: Final = (
    dialects.Segment,
    dialects.Target,
    dialects.Moment,
    dialects.Priority,
    dialects.Failure,
    dialects.Reference,
    dialects.Definition,
    dialects.Security,
    dialects.Parent,
    Note,
    Candidate,
    Layer,
    Field,
    Loss,
    Message,
)
_SCALARS: Final = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_OBJECT: Final = {"type": "object", "additionalProperties": {}}


def refer(name: str) -> dict[str, Any]:
    """A reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(shape: Mapping[str, Any]) -> dict[str, Any]:
    """An array of this shape."""
    return {"type": "array", "items": dict(shape)}


def or_null(shape: Mapping[str, Any]) -> dict[str, Any]:
    """This shape, or null."""
    return {"anyOf": [dict(shape), {"type": "null"}]}


def closed_object(*optional: str, **properties: Any) -> dict[str, Any]:
    """An object with these members and no other; those that are not `optional` are always there."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def describe_value(value: type[Any]) -> dict[str, Any]:
    """The schema of a codec's value as `to_dict` writes it; no name is required, for what is absent may be left out."""
    hints = typing.get_type_hints(value)
    return {
        "type": "object",
        "properties": {name: describe_type(hints[name]) for name in value._order},
        "additionalProperties": False,
    }


def describe_type(kind: Any) -> dict[str, Any]:
    """The schema of an annotation.

    Raises:
        TypeError: for one that no rule here knows; the schema of the API is then not made at all.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if kind in VALUES:
        return refer(name_of(kind))
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [describe_type(choice) for choice in inner]}
    if origin is typing.Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is tuple and inner[-1] is Ellipsis:
        return list_of(describe_type(inner[0]))
    if origin is tuple:
        return {
            "type": "array",
            "prefixItems": [describe_type(item) for item in inner],
            "minItems": len(inner),
            "maxItems": len(inner),
        }
    if origin is not None and issubclass(origin, Mapping):
        return dict(_OBJECT)
    raise TypeError(f"{kind} has no schema")


def name_of(value: type[Any]) -> str:
    """The component's name: what the API calls a message in a list is another thing than the codecs' message."""
    return f"Told{value.__name__}"


TEXT_OR_NULL: Final = or_null({"type": "string"})
DECODED: Final = closed_object(
    "fields",
    "layers",
    index={"type": "integer", "minimum": 0},
    dialect=TEXT_OR_NULL,
    version=TEXT_OR_NULL,
    vocabulary=TEXT_OR_NULL,
    candidates=list_of(refer(name_of(Candidate))),
    footer=or_null(_OBJECT),
    messages=list_of(refer(name_of(Message))),
    notes=list_of(refer(name_of(Note))),
    error=or_null(
        closed_object(kind={"type": "string"}, reason={"type": "string"}, offset=or_null({"type": "integer"}))
    ),
    fields=list_of(refer(name_of(Field))),
    layers=list_of(refer(name_of(Layer))),
)


class DescriptionGenerator(SchemaGenerator):
    """The generator of the description, which knows the codecs' own values as components."""

    def parse(self, *args: Any, **names: Any) -> Any:
        """The paths; the operations may name any of the components."""
        shapes = {name_of(value): describe_value(value) for value in VALUES} | {"DecodedRecord": DECODED}
        for name, shape in shapes.items():
            self.registry.register_on_missing(
                ResolvedComponent(  # type: ignore[no-untyped-call]  # it has no types
                    name=name, type=ResolvedComponent.SCHEMA, schema=shape, object=name
                )
            )
        return super().parse(*args, **names)  # type: ignore[no-untyped-call]  # it has no types


MAX_RECORDS: Final = 1000
BESIDES: Final = frozenset({"prior", "keys"})

_ENVELOPE: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A text with what is known around it. Any other object is read as the message itself.",
    "properties": {
        "raw": {"type": "string"},
        "at": {"type": ["string", "number"]},
        "from": {"type": "string"},
        "to": {"anyOf": [{"type": "string"}, list_of({"type": "string"})]},
        "conversation": {"type": "string"},
        "trace": {"type": "string"},
        "parent": {"type": "string"},
        "id": {"type": "string"},
        "dialect": {"type": "string"},
        "prior": list_of({}) | {"description": "said earlier, oldest first: texts or envelopes"},
        "keys": list_of({}) | {"description": "in Base64: {session, private, peer} or {session, psk}"},
    },
}
_DECODE_BODY: Final[dict[str, Any]] = {
    "application/json": {"anyOf": [_ENVELOPE, {"type": "string"}, list_of({})]},
    "application/x-ndjson": {"type": "string"},
    "text/plain": {"type": "string"},
    "text/csv": {"type": "string"},
}
_DECODE_ANSWER: Final = closed_object(
    "cut",
    records=list_of(refer("DecodedRecord")),
    ending=or_null(_OBJECT) | {"description": "a problem at the end of the body, after whole records"},
    cut=CUTS,
)
_ENCODE_BODY: Final[dict[str, Any]] = {
    "application/json": {
        "anyOf": [
            {
                "type": "object",
                "properties": {"dialect": TEXT_OR_NULL, "messages": list_of(refer("ToldMessage"))},
                "required": ["messages"],
            },
            {**list_of(refer("ToldMessage")), "minItems": 1},
            refer("ToldMessage"),
        ]
    }
}
_ENCODE_ANSWER: Final = closed_object(
    dialect={"type": "string"},
    wire={"type": "string"},
    losses=list_of(refer("ToldLoss")) | {"description": "what the dialect cannot hold"},
)


def decode_log(
    reader: LogReader, pieces: Iterable[bytes], *, dialect: str | None, is_tree: bool
) -> Iterator[dict[str, Any]]:
    """Each record of the stream as the shell prints it.

    Raises:
        ProblemError: 413 where there are more than a thousand.
    """
    conversations = Conversations()
    for index, record in enumerate(_frame(reader, pieces)):
        check_effort()
        if index == MAX_RECORDS:
            raise ProblemError(413, f"at most {MAX_RECORDS} records are decoded at once: send them in pieces")
        yield _decode(index, record, conversations, dialect=dialect, is_tree=is_tree)


def _frame(reader: LogReader, pieces: Iterable[bytes]) -> Iterator[LogRecord]:
    for piece in pieces:
        yield from (item for item in reader.feed(piece) if isinstance(item, LogRecord))
    yield from (item for item in reader.close() if isinstance(item, LogRecord))


def _decode(
    index: int, record: LogRecord, conversations: Conversations, *, dialect: str | None, is_tree: bool
) -> dict[str, Any]:
    if record.wire is None:
        return dialects.show_quarantined(record, index)
    try:
        whole = _decode_alone(record, dialect)
    except EnvelopeError as error:
        return dialects.show_failure(index, "envelope", str(error), None)
    if whole is None:
        reading = dialects.read(record.wire, record.envelope, dialect=dialect)
        whole = conversations.tell(reading, index)
    return dialects.show_values(index, whole, is_tree=is_tree)


def _decode_alone(record: LogRecord, dialect: str | None) -> Reading | None:
    """The reading of an envelope that brings its own context or keys; None for any other record."""
    source = record.source or b""
    if not source.startswith(b"{") or not any(name.encode() in source for name in BESIDES):
        return None
    try:
        given = dialects.parse_json(source)
    except EnvelopeError:  # It is a text that begins like an object, and is read as a text.
        return None
    is_envelope = isinstance(given.get("raw"), str) and BESIDES & given.keys()
    return dialects.decode_envelope(given, dialect) if is_envelope else None


class Codecs(Endpoint):
    """The codecs over HTTP."""

    @operation(
        {200: _DECODE_ANSWER},
        body=_DECODE_BODY,
        parameters=(
            take_choice("format", about="tree adds fields and layers", choices=("json", "tree"), default="json"),
            take_choice("dialect", about="read every record in this dialect", choices=SLUGS),
        ),
        refusals=(408, 413, 415, 422),
    )
    @bound_effort()
    def decode(self, request: Request) -> dict[str, Any]:
        """Read a log, or single texts with what is known around them.

        The same records as from a POST of the same body to /messages, each in the context of those before
        it in its conversation. An envelope with `prior` or `keys` is decoded by itself, with these. Nothing is stored.
        """
        form = choose_form(request._request)
        pieces = read_body(request._request, max_bytes=settings.LIMITS["decode_bytes"])
        reader = LogReader(LogOptions(form=form, max_record_bytes=settings.LIMITS["record_bytes"]))
        is_tree = self.given["format"] == "tree"
        with closing(pieces):
            try:
                body = look_at_beginning(pieces, form)
                records = list(decode_log(reader, body, dialect=self.given["dialect"], is_tree=is_tree))
            except BrokenBodyError as error:
                raise ProblemError(error.status, f"{error}; nothing is kept of it") from error
        ending = reader.ending.to_dict() if reader.ending else None
        return {"records": records, "ending": ending}

    @operation(
        {200: _ENCODE_ANSWER},
        body=_ENCODE_BODY,
        parameters=(take_choice("dialect", about="what to write in; the record's own where left out", choices=SLUGS),),
        refusals=(408, 413, 415, 422),
    )
    def encode(self, request: Request) -> dict[str, Any]:
        """Write a record in a dialect, and say what that dialect cannot hold. Nothing is stored."""
        if choose_form(request._request) is not None:
            raise ProblemError(415, "a record is sent as application/json")
        try:
            body = b"".join(read_body(request._request, max_bytes=settings.LIMITS["decode_bytes"]))
            given = dialects.parse_json(body)
        except EnvelopeError as error:
            raise ProblemError(400, f"the body is {error}") from error
        return encode_record(given, self.given["dialect"])


def encode_record(given: Any, dialect: str | None) -> dict[str, Any]:
    """The wire and the losses of a record in JSON types.

    Raises:
        ProblemError: 422 with `path` where it has not the shape of a record, with `part` where a message of it cannot
            be written, and with `allowed` where it names no dialect that there is.
    """
    spoken = given.get("dialect") if isinstance(given, dict) and "messages" in given else None
    slug = dialect or spoken
    if slug not in SLUGS:
        said = "no dialect is named" if slug is None else "the record names a dialect that there is not"
        raise ProblemError(422, f"{said}: add ?dialect= with one of {', '.join(SLUGS)}", allowed=list(SLUGS))
    try:
        written = dialects.encode(dialects.messages_of(given), slug, spoken=spoken)
    except dialects.ShapeError as error:
        raise ProblemError(422, f"{error.reason} @ {error.path}", path=error.path) from error
    except dialects.EncodeError as error:
        raise ProblemError(422, str(error), dialect=error.dialect, part=error.part) from error
    return {"dialect": slug, "wire": written.wire, "losses": [loss.to_dict() for loss in written.losses]}
