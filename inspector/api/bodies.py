"""Request bodies: streams of plain bytes, chunked or sized, gzip or zstd, never whole in memory."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final, Literal

from django.conf import settings
from django.http import HttpRequest
from gunicorn.http.errors import NoMoreData

import dialects
from inspector.intake.containers import READ_BYTES, BeyondLimitsError, ContainerError, unfold

from .problems import BrokenBodyError, ProblemError

# What is read may be given up before its end, and then hands the line back to the server.
Pieces = Generator[bytes, None, None]
Form = Literal["lines", "ndjson", "csv"] | None
FORMS: Final[dict[str, Form]] = {
    "application/x-ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "application/json": None,
    "text/plain": "lines",
    "text/event-stream": "lines",
    "text/csv": "csv",
}
ENCODINGS: Final = ("identity", "gzip", "zstd")
EMPTY: Final = "the body is empty: send at least one record"
# How long a sender may be silent in the middle of a body.
SILENCE_SECONDS: Final = 30
# What the front says of a body stands under this name (`inspector.wsgi`), where no client can write.
BODY: Final = "inspector.body"
# How many bytes of it have been read.
ARRIVED: Final = "inspector.arrived"
SLOW, ASKED = "slow", "asked"
_BLANK: Final = b" \t\r\n\f\v\xef\xbb\xbf"
# Blank lines are passed over, and no more of them is held than this.
_MAX_BLANK: Final = 64 * 1024
_PACKED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def read_body(request: HttpRequest, *, max_bytes: int) -> Pieces:
    """The body's bytes in pieces, decompressed as Content-Encoding says; to be closed before the request is answered.

    Under WSGI a chunked body has no length: it is read to its end where the server says that the input terminates
    (`wsgi.input_terminated`). Plain Django would see an empty body and accept nothing with a 202.

    Args:
        request: its body is not read yet.
        max_bytes: a longer body is refused, before or after it is unfolded.

    Raises:
        ProblemError: at once: 400 for no body at all, 413 for a declared length over the limit, 415 for an unknown
            encoding.
        BrokenBodyError: from the iterator, when the body breaks off; what it yielded before stands.
    """
    encoding = request.headers.get("Content-Encoding", "").strip().lower() or "identity"
    if encoding not in ENCODINGS:
        shown = request.headers["Content-Encoding"][:100]
        raise ProblemError(415, f"Content-Encoding {shown!r} is not understood: send {', '.join(ENCODINGS)}")
    length = find_length(request)
    if length == 0:
        raise ProblemError(400, EMPTY)
    if length is not None and length > max_bytes:
        raise ProblemError(413, _say_limit(max_bytes))
    raw = _limit(_read_raw(request, length), max_bytes)
    return raw if encoding == "identity" else _unfold(encoding, raw, max_bytes)


def read_json(request: HttpRequest, *, wanted: str) -> Any:
    """The value of a short JSON body.

    Args:
        wanted: what to send, for whoever sent something else.

    Raises:
        ProblemError: 400 or 408 for a body that is no JSON or breaks off, 413 for one that is too long, 415 for
            another type, 422 for an object in it that has a member twice.
    """
    if (request.headers.get("Content-Type") or "").partition(";")[0].strip().lower() != "application/json":
        raise ProblemError(415, wanted)
    try:
        body = b"".join(read_body(request, max_bytes=settings.LIMITS["decode_bytes"]))
        return dialects.parse_json(body, object_pairs_hook=_refuse_twins)
    except dialects.EnvelopeError as error:
        raise ProblemError(400, f"the body is {error}: {wanted}") from error


def _refuse_twins(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, each of which stands in it once: the last of several would hold without a word."""
    known = dict(members)
    if len(known) < len(members):
        names = [name for name, _ in members]
        name = next(name for name in names if names.count(name) > 1)[:100]
        raise ProblemError(422, f"{name!r} is given more than once: give it once", member=name, allowed="one")
    return known


def find_length(request: HttpRequest) -> int | None:
    """The declared length; None for a chunked body, 0 where there is none."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isascii() and length.isdigit():
        return int(length) if len(length) < 20 else 10**20
    return None if request.META.get("wsgi.input_terminated") else 0


def _unfold(encoding: str, raw: Pieces, max_bytes: int) -> Pieces:
    with closing(raw):
        try:
            yield from unfold(encoding, raw, max_bytes=max_bytes)
        except ContainerError as error:
            status = 413 if isinstance(error, BeyondLimitsError) else 400
            raise BrokenBodyError(f"the body cannot be unfolded: {error}", status=status) from error


def _read_raw(request: HttpRequest, left: int | None) -> Pieces:
    read = request.META["wsgi.input"].read if left is None else request.read
    with _patience(request) as give_up:
        while left is None or left:
            try:
                piece = read(READ_BYTES if left is None else min(READ_BYTES, left))
            except Exception as error:
                give_up()
                yield from _drain(read)
                refuse_slow(request)
                is_silent = isinstance(error.__cause__ or error, TimeoutError)
                reason = f"nothing came for {SILENCE_SECONDS} seconds" if is_silent else f"{error}"
                if isinstance(error.__cause__ or error, NoMoreData):
                    reason = "its sender ended it in the middle"
                raise BrokenBodyError(f"the body broke off: {reason}", status=408 if is_silent else 400) from error
            if not piece and left is None:
                return
            if not piece:
                refuse_slow(request)
                raise BrokenBodyError(f"the body broke off {left} bytes before its declared length")
            request.META[ARRIVED] = count_arrived(request) + len(piece)
            yield piece
            left = None if left is None else left - len(piece)


def count_arrived(request: HttpRequest) -> int:
    """How many bytes of the body have been read, as they were sent."""
    return int(request.META.get(ARRIVED, 0))


def refuse_slow(request: HttpRequest) -> None:
    """Tell a body that the front gave up from one that its sender broke off.

    Raises:
        BrokenBodyError: 408 where the front says that it came too slowly.
    """
    if request.META.get(BODY) == SLOW:
        raise BrokenBodyError("the body broke off: it came too slowly", status=408)


def is_asked_first(request: HttpRequest) -> bool:
    """Whether the front asks for the body's sender, and sends the body if that is answered with 204."""
    is_asked: bool = request.META.get(BODY) == ASKED
    return is_asked


@contextmanager
def _patience(request: HttpRequest) -> Iterator[Callable[[], None]]:
    """Bound how long a sender may be silent, where the server lends us its socket; a thread waits for no one longer.

    Yields:
        what to call when waiting has ended: from then on reading gives what has already arrived, and then the end.
    """
    server_socket = request.META.get("gunicorn.socket")
    if server_socket is None:
        yield lambda: None
        return

    def give_up() -> None:
        with suppress(OSError):  # The other side may have closed it.
            server_socket.shutdown(socket.SHUT_RD)

    before = server_socket.gettimeout()
    server_socket.settimeout(SILENCE_SECONDS)
    try:
        yield give_up
    finally:
        with suppress(OSError):  # Whoever sent has gone, and the line is closed.
            server_socket.settimeout(before)


def _drain(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """What the server had taken from the network when the body broke off, and had not handed on yet."""
    with suppress(Exception):  # The body is broken already; only what is left of it counts.
        while piece := read(READ_BYTES):
            yield piece


def _limit(pieces: Pieces, max_bytes: int) -> Pieces:
    total = 0
    with closing(pieces):
        for piece in pieces:
            total += len(piece)
            if total > max_bytes:
                raise BrokenBodyError(_say_limit(max_bytes), status=413)
            yield piece


def _say_limit(max_bytes: int) -> str:
    return f"a body has at most {max_bytes} bytes here: send it in pieces"


def look_at_beginning(body: Pieces, form: str | None) -> Iterator[bytes]:
    """The same body, once its first bytes were looked at.

    Args:
        body: decompressed as Content-Encoding says.
        form: as the Content-Type declares it.

    Raises:
        ProblemError: at once: 415 for compressed bytes without a Content-Encoding, 422 for a JSON array where one
            object a line was declared.
    """
    head, broken = bytearray(), None
    try:
        for piece in body:
            head += piece
            if len(head.lstrip(_BLANK)) >= max(map(len, _PACKED)) or len(head) > _MAX_BLANK:
                break
    except BrokenBodyError as error:
        broken = error
    for mark, name in _PACKED.items():
        if head.startswith(mark):
            raise ProblemError(415, f"the body is compressed with {name}: send Content-Encoding: {name} with it")
    if form == "ndjson" and head.lstrip(_BLANK).startswith(b"["):
        raise ProblemError(
            422,
            "the body begins with [ as a JSON array does, and one JSON object a line was declared: send an array as "
            "application/json, and lines of text as text/plain",
        )
    return _go_on(bytes(head), broken, body)


def _go_on(head: bytes, broken: BrokenBodyError | None, body: Pieces) -> Iterator[bytes]:
    yield head
    if broken:
        raise broken
    yield from body


def choose_form(request: HttpRequest) -> Form:
    """The form of log that the Content-Type declares; None where its first bytes decide.

    Raises:
        ProblemError: 400 for no body at all, 415 for a type that is not one of `FORMS`, or for text in another
            encoding than UTF-8.
    """
    if find_length(request) == 0:
        raise ProblemError(400, EMPTY)
    declared = request.headers.get("Content-Type", "")
    kind, _, parameters = declared.partition(";")
    charset = parameters.partition("charset=")[2].strip(' "').lower()
    kind = kind.strip().lower()
    if kind not in FORMS:
        curl = " (curl -d declares it, unless -H says otherwise)" if kind == "application/x-www-form-urlencoded" else ""
        known = ", ".join(FORMS)
        raise ProblemError(415, f"Content-Type {declared[:100]!r} is not understood{curl}: send one of {known}")
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise ProblemError(415, f"text in {charset[:100]!r} is not understood: send UTF-8")
    return FORMS[kind]
