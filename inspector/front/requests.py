"""A request as it comes in: of its head what the front has to know, and how it is handed on; its body in chunks or by
its length, at a least rate, and kept until it is whole.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeVar

MAX_BYTES: Final = 1024 * 1024
HEAD_BYTES: Final = 64 * 1024
# A `q` of 2,000 characters of four bytes each, percent-encoded, is 24,000.
LINE_BYTES: Final = 32 * 1024
MAX_HEADERS: Final = 100
# The address of the server may stand before the path (RFC 9112, section 3.2.2).
_LINE: Final = re.compile(
    rb"([A-Z]{3,20}) (?:(?i:https?)://([^/?#@\x00-\x20\x7f-\xff]+))?([/?][!-~]*|\*)? HTTP/1\.([01])\Z"
)
_UNSAFE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
# A second one would leave open which of them counts; and of these all have to say the same (gunicorn's table).
_SINGLE: Final = frozenset((b"host", b"content-type"))
_HTTPS: Final = {b"x-forwarded-protocol": b"ssl", b"x-forwarded-proto": b"https", b"x-forwarded-ssl": b"on"}
# A supervisor of HTTP/1.0 may name no host.
_PROBES: Final = frozenset((b"/healthz", b"/readyz", b"/metrics"))
_PROGRAM: Final = re.compile(rb"[^ \r\n]* (?:(?i:https?)://[^/?# \r\n]*)?/(?:api|v1)/")
_WANTS_JSON: Final = re.compile(rb"\naccept:[^\n]*[/+]json\b", re.IGNORECASE)
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_EXPORTS: Final = (b"/v1/traces", b"/v1/logs")
_DOORS: Final = frozenset((b"/api/v1/messages", *_EXPORTS, *(b"/api/v1/otlp" + path for path in _EXPORTS)))
_UPLOAD: Final = re.compile(rb"/w/[^/]+/upload/\Z")
# Each connection carries one request; and what the front says of it nobody else may say.
_DROPPED: Final = {b"connection", b"keep-alive", b"proxy-connection", b"upgrade", b"http2-settings", b"expect"}


class BadHeadError(Exception):
    """The head is not one that is understood; `status` is what to answer."""

    def __init__(self, sentence: str, *, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Head:
    """A request before its body.

    Attributes:
        method: as sent.
        path: without its query.
        length: the declared length; None where nothing is declared, or the body is chunked.
        is_chunked: whether the body comes in chunks.
        awaits_word: whether the sender waits for "100 Continue" before it sends the body.
        knows_word: whether the sender understands that word: by HTTP/1.1, not by 1.0.
        lines: the request line and the headers that are handed on.
    """

    method: bytes
    path: bytes
    length: int | None
    is_chunked: bool
    awaits_word: bool
    knows_word: bool
    lines: tuple[bytes, ...]

    @property
    def is_long(self) -> bool:
        """Whether the address takes bodies beyond 1 MiB, from whoever has a key or a session."""
        return self.method == b"POST" and (self.path in _DOORS or bool(_UPLOAD.match(self.path)))

    @property
    def is_for_posting(self) -> bool:
        """Whether the posting processes answer it: what takes bodies in, and what checks passwords."""
        return self.is_long or (self.method == b"POST" and self.path == b"/sign-in/")

    def write(self, address: str, **said: str) -> bytes:
        """The head as it is handed on: for one request, with the client's address and what else the front says."""
        own = [f"X-Front-{name.capitalize()}: {value}".encode() for name, value in {"address": address, **said}.items()]
        return b"\r\n".join([*self.lines, b"Connection: close", *own, b"", b""])


async def read_lines(reader: asyncio.StreamReader, seen: bytearray) -> None:
    """Read the lines of a head into `seen`, to and with the empty line; one empty line before them is passed over.

    What came of a line that is too long is in `seen` too, for whoever answers.

    Raises:
        BadHeadError: as soon as a line or all of them are too long, or a line does not end as it has to.
        IncompleteReadError: where the head has no end.
    """
    while not seen.endswith(b"\r\n\r\n"):
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            line = await reader.read(HEAD_BYTES)
        is_first = not seen
        if is_first and line == b"\r\n":
            line = await reader.readuntil(b"\n")
        seen += line
        if is_first and len(line) > LINE_BYTES:
            raise BadHeadError("the address is too long", status=HTTPStatus.REQUEST_URI_TOO_LONG)
        if len(seen) > HEAD_BYTES or not line.endswith(b"\n"):
            raise BadHeadError("the head is too long", status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if not line.endswith(b"\r\n"):
            raise BadHeadError("a line of the head ends with LF alone: end each with CR LF")


def wants_problem(seen: bytes) -> bool:
    """Whether a program asks, and not a person, as far as the head was read: by its path, or because it takes JSON."""
    return bool(_PROGRAM.match(seen) or _WANTS_JSON.search(seen))


def read_head(data: bytes) -> Head:
    """The head in these bytes, up to and with the empty line.

    What the processes behind would refuse is refused here, for their server answers in HTML and knows no address.

    Raises:
        BadHeadError: for what is no request, or whose body has no certain end.
    """
    first, *rest = data[:-4].split(b"\r\n")
    method, host, target, is_old = _read_line(first)
    if len(rest) > MAX_HEADERS:
        sentence = f"the head has more than {MAX_HEADERS} headers"
        raise BadHeadError(sentence, status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    kept, lengths, codings, awaits_word = [], [], [], False
    seen, schemes = set(), set()
    for line in rest:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.match(name) or _UNSAFE.search(value):
            raise BadHeadError("a header is not understood")
        lower, value = name.lower(), value.strip(b" \t")
        if lower in seen and lower in _SINGLE:
            raise BadHeadError(f"the header {lower.decode().title()} is given twice: give it once")
        seen.add(lower)
        if lower == b"content-length":
            lengths.append(value)
        elif lower == b"transfer-encoding":
            codings.append(value.lower())
        elif lower == b"expect":
            awaits_word = value.lower() == b"100-continue" and not is_old
        elif lower in _HTTPS:
            schemes.add(value == _HTTPS[lower])
        is_ours = lower in _DROPPED or b"_" in lower or lower.startswith(b"x-front-")
        if not is_ours and not (host and lower == b"host"):
            kept.append(line)
    path = target.partition(b"?")[0]
    if b"host" not in seen and not (is_old and (host or path in _PROBES)):
        raise BadHeadError("there is no Host: send it as a header")
    if len(lengths) + len(codings) > 1 or (codings and (codings != [b"chunked"] or is_old)):
        raise BadHeadError("the length of the body is not certain")
    if len(schemes) > 1:
        raise BadHeadError("the headers of proxies contradict each other")
    if lengths and not lengths[0].isdigit():
        raise BadHeadError("the Content-Length is no number")
    return Head(
        method=method,
        path=path,
        # One of so many digits is beyond every limit.
        length=int(lengths[0] if len(lengths[0]) < 20 else 10**20) if lengths else None,
        is_chunked=bool(codings),
        awaits_word=awaits_word,
        knows_word=not is_old,
        lines=(b"%b %b HTTP/1.%d" % (method, target, not is_old), *((b"Host: " + host,) if host else ()), *kept),
    )


def _read_line(line: bytes) -> tuple[bytes, bytes | None, bytes, bool]:
    """The method, the host where it is named, what is asked for, and whether this is HTTP/1.0.

    Raises:
        BadHeadError: for what is no request line.
    """
    matched = _LINE.match(line)
    if matched is not None:
        method, host, target, version = matched.groups()
        if host:
            target = target if target and target.startswith(b"/") else b"/" + (target or b"")
        if target and (target.startswith(b"/") or (target == b"*" and method == b"OPTIONS")):
            return method, host, target, version == b"0"
    raise BadHeadError("the request line is not understood")


Got = TypeVar("Got")
PIECE_BYTES: Final = 64 * 1024
_MAX_TRAILERS: Final = 100


class BrokenError(Exception):
    """The body ended before it was whole."""


class SlowError(BrokenError):
    """The body came too slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How slow a sender may be: how long it may be silent, its least bytes a second after a grace, and the longest."""

    silence_s: float = 30.0
    grace_s: float = 30.0
    bytes_per_s: float = 5.0
    total_s: float = 3600.0


@dataclass(slots=True)
class Clock:
    """Holds one sender to its pace."""

    pace: Pace
    received: int = 0
    started: float = field(default_factory=time.monotonic)

    async def wait(self, coming: Awaitable[Got]) -> Got:
        """What comes, if it comes in time.

        Raises:
            SlowError: if not.
        """
        now, pace = time.monotonic(), self.pace
        earned = self.started + pace.grace_s + self.received / pace.bytes_per_s
        until = min(now + pace.silence_s, earned, self.started + pace.total_s)
        try:
            async with asyncio.timeout(max(0.0, until - now)):
                return await coming
        except TimeoutError:
            raise SlowError from None


async def read_pieces(head: Head, reader: asyncio.StreamReader, pace: Pace) -> AsyncIterator[bytes]:
    """The body without its chunks' frames.

    Raises:
        BrokenError: from the iterator; what it yielded before stands.
    """
    clock = Clock(pace)
    if not head.is_chunked:
        async for piece in _read_sized(reader, head.length or 0, clock):
            yield piece
        return
    try:
        while size := _read_size(await clock.wait(reader.readuntil(b"\r\n"))):
            async for piece in _read_sized(reader, size, clock):
                yield piece
            if await clock.wait(reader.readexactly(2)) != b"\r\n":
                raise BrokenError
        for _ in range(_MAX_TRAILERS):
            if await clock.wait(reader.readuntil(b"\r\n")) == b"\r\n":
                return
        raise BrokenError
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise BrokenError from error


async def _read_sized(reader: asyncio.StreamReader, left: int, clock: Clock) -> AsyncIterator[bytes]:
    while left:
        try:
            piece = await clock.wait(reader.read(min(left, PIECE_BYTES)))
        except ConnectionError as error:
            raise BrokenError from error
        if not piece:
            raise BrokenError
        clock.received += len(piece)
        left -= len(piece)
        yield piece


def _read_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not 0 < len(digits) <= 16 or digits.strip(b"0123456789abcdefABCDEF"):
        raise BrokenError
    return int(digits, 16)


class FullError(Exception):
    """What all bodies together may take on the disk is used up."""


@dataclass(slots=True)
class Room:
    """How many bytes all bodies that are coming in may take together."""

    left: int


class Kept:
    """A body that is kept until it is handed on: in memory at first, then in a file that has no name."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._file = tempfile.SpooledTemporaryFile(max_size=MAX_BYTES)  # noqa: SIM115  # `close` closes it
        self.size = 0

    def add(self, piece: bytes) -> None:
        """Keep a piece.

        Raises:
            FullError: where there is no room for it.
        """
        if len(piece) > self._room.left:
            raise FullError
        self._room.left -= len(piece)
        self.size += len(piece)
        self._file.write(piece)

    def read(self) -> Iterator[bytes]:
        """All of it, from its beginning."""
        self._file.seek(0)
        return iter(lambda: self._file.read(PIECE_BYTES), b"")

    def close(self) -> None:
        """Give its room back."""
        self._file.close()
        self._room.left += self.size
        self.size = 0
