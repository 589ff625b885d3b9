"""POST decode and encode: the codecs over HTTP. Nothing that is sent here is stored, and nothing of it is logged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, ClassVar, Final

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

import dialects
from dialects import Conversations, EnvelopeError, LogOptions, LogReader, LogRecord, Reading
from inspector.bounds import CUTS, bound_effort, check_effort

from .bodies import look_at_beginning, read_body
from .endpoints import Endpoint
from .ingest import choose_form
from .parameters import SLUGS, Choice
from .problems import BrokenBodyError, ProblemError
from .shapes import TEXT_OR_NULL, list_of, or_null, refer

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
        "prior": {**list_of({}), "description": "said earlier, oldest first: texts or envelopes"},
        "keys": {
            **list_of({}),
            "description": "in Base64: {session, private, peer} or {session, psk}",
        },
    },
}
_DECODE_BODY: Final[dict[str, Any]] = {
    "application/json": {"anyOf": [_ENVELOPE, {"type": "string"}, list_of({})]},
    "application/x-ndjson": {"type": "string"},
    "text/plain": {"type": "string"},
    "text/csv": {"type": "string"},
}
_DECODE_ANSWER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "records": list_of(refer("DecodedRecord")),
        "ending": {
            **or_null({"type": "object", "additionalProperties": {}}),
            "description": "a problem at the end of the body, after whole records",
        },
        "cut": CUTS,
    },
    "required": ["records", "ending"],
    "additionalProperties": False,
}
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
_ENCODE_ANSWER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "dialect": {"type": "string"},
        "wire": {"type": "string"},
        "losses": {**list_of(refer("ToldLoss")), "description": "what the dialect cannot hold"},
    },
    "required": ["dialect", "wire", "losses"],
    "additionalProperties": False,
}


class DecodeView(Endpoint):
    """Text in, messages out."""

    scopes: ClassVar = {"POST": "read"}
    parameters: ClassVar = {
        "POST": (
            Choice(name="format", about="tree adds fields and layers", choices=("json", "tree"), default="json"),
            Choice(name="dialect", about="read every record in this dialect", choices=SLUGS),
        )
    }
    refusals: ClassVar = {"POST": (408, 413, 415, 422)}

    @extend_schema(operation_id="decode", request=_DECODE_BODY, responses={200: _DECODE_ANSWER})
    @bound_effort()
    def post(self, request: Request) -> Response:
        """Read a log, or single texts with what is known around them.

        The same records as from a POST of the same body to /messages, each in the context of those before
        it in its conversation. An envelope with `prior` or `keys` is decoded by itself, with these. Nothing is stored.
        """
        form = choose_form(request)
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
        return _answer({"records": records, "ending": ending})


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


class EncodeView(Endpoint):
    """A normalised record in, its wire out."""

    scopes: ClassVar = {"POST": "read"}
    parameters: ClassVar = {
        "POST": (Choice(name="dialect", about="what to write in; the record's own where left out", choices=SLUGS),)
    }
    refusals: ClassVar = {"POST": (408, 413, 415, 422)}

    @extend_schema(operation_id="encode", request=_ENCODE_BODY, responses={200: _ENCODE_ANSWER})
    def post(self, request: Request) -> Response:
        """Write a record in a dialect, and say what that dialect cannot hold. Nothing is stored."""
        if choose_form(request) is not None:
            raise ProblemError(415, "a record is sent as application/json")
        try:
            body = b"".join(read_body(request._request, max_bytes=settings.LIMITS["decode_bytes"]))
            given = dialects.parse_json(body)
        except EnvelopeError as error:
            raise ProblemError(400, f"the body is {error}") from error
        return _answer(encode_record(given, self.given["dialect"]))


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


def _answer(data: dict[str, Any]) -> Response:
    response = Response(data)
    response["Cache-Control"] = "no-store"
    return response
