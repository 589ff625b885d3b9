"""The head of a request: what the front has to know of it, and how it is handed on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MAX_BYTES: Final = 1024 * 1024
_LINE: Final = re.compile(rb"([A-Z]{1,20}) (/[^ ]*|\*) HTTP/1\.[01]\Z")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_EXPORTS: Final = (b"/v1/traces", b"/v1/logs")
_DOORS: Final = frozenset((b"/api/v1/messages", *_EXPORTS, *(b"/api/v1/otlp" + path for path in _EXPORTS)))
_UPLOAD: Final = re.compile(rb"/w/[^/]+/upload/\Z")
# Each connection carries one request; and what the front says of it nobody else may say.
_DROPPED: Final = {b"connection", b"keep-alive", b"proxy-connection", b"upgrade", b"http2-settings", b"expect"}


class BadHeadError(Exception):
    """The head is not one that is understood."""


@dataclass(frozen=True, slots=True)
class Head:
    """A request before its body.

    Attributes:
        method: as sent.
        path: without its query.
        length: the declared length; None where nothing is declared, or the body is chunked.
        is_chunked: whether the body comes in chunks.
        awaits_word: whether the sender waits for "100 Continue" before it sends the body.
        lines: the request line and the headers that are handed on.
    """

    method: bytes
    path: bytes
    length: int | None
    is_chunked: bool
    awaits_word: bool
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


def read_head(data: bytes) -> Head:
    """The head in these bytes, up to and with the empty line.

    Raises:
        BadHeadError: for what is no request, or whose body has no certain end.
    """
    first, *rest = data[:-4].split(b"\r\n")
    matched = _LINE.match(first)
    if matched is None:
        raise BadHeadError("the request line is not understood")
    kept, lengths, codings, awaits_word = [first], [], [], False
    for line in rest:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.match(name):
            raise BadHeadError("a header is not understood")
        lower, value = name.lower(), value.strip(b" \t")
        if lower == b"content-length":
            lengths.append(value)
        elif lower == b"transfer-encoding":
            codings.append(value.lower())
        elif lower == b"expect":
            awaits_word = value.lower() == b"100-continue"
        if lower not in _DROPPED and b"_" not in lower and not lower.startswith(b"x-front-"):
            kept.append(line)
    if len(lengths) + len(codings) > 1 or (codings and codings != [b"chunked"]):
        raise BadHeadError("the length of the body is not certain")
    if lengths and not (lengths[0].isdigit() and len(lengths[0]) < 20):
        raise BadHeadError("the Content-Length is no number")
    return Head(
        method=matched[1],
        path=matched[2].partition(b"?")[0],
        length=int(lengths[0]) if lengths else None,
        is_chunked=bool(codings),
        awaits_word=awaits_word,
        lines=tuple(kept),
    )
