"""One range of the bytes of a download, as RFC 9110 (sections 13.1.5 and 14) has it: for API and pages alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

BYTES: Final = "application/octet-stream"
# Several ranges at once are not offered: the whole is sent, as the standard allows.
_RANGE: Final = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))", re.ASCII | re.IGNORECASE)


class RangeError(Exception):
    """A range that holds no byte; `size` is how many there are."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the range holds no byte: there are {size:,}, counted from 0")
        self.size = size


def answer_bytes(
    request: HttpRequest, pieces: Iterable[bytes], *, name: str, size: int, digest: str
) -> StreamingHttpResponse:
    """Bytes as an attachment of no type, so that nothing in them runs: all of them, or the range that is asked for.

    Args:
        pieces: the bytes, one after the other.
        size: how many these are.
        digest: the SHA-256 of what they are of, in hex: what is asked for `If-Range` of another one is sent whole.

    Raises:
        RangeError: where the range begins behind the end.
    """
    tag = f'"{digest}-{size}"'
    asked = _find_range(request, tag, size)
    start, end = asked or (0, size)
    response = StreamingHttpResponse(_cut(pieces, start, end), content_type=BYTES, status=206 if asked else 200)
    if asked:
        response["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    response["Content-Length"] = str(end - start)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = tag
    response["Cache-Control"] = "no-store, private"
    return response


def refuse_range(error: RangeError) -> HttpResponse:
    """416, with how many bytes there are."""
    response = HttpResponse(f"{error}\n", content_type="text/plain; charset=utf-8", status=416)
    response["Content-Range"] = f"bytes */{error.size}"
    return response


def _find_range(request: HttpRequest, tag: str, size: int) -> tuple[int, int] | None:
    """The first byte and the one after the last; None for all, also where the range is none that is understood."""
    asked = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if asked is None or request.method != "GET" or request.headers.get("If-Range", tag) != tag:
        return None
    first, last, tail = asked.groups()
    if tail is not None:
        start, end = max(0, size - int(tail)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= end:
        raise RangeError(size)
    return start, end


def _cut(pieces: Iterable[bytes], start: int, end: int) -> Iterator[bytes]:
    at = 0
    # Where nothing is sent, nothing is read either.
    for piece in pieces if start < end else ():
        if at >= end:
            return
        part = piece[max(0, start - at) : end - at]
        at += len(piece)
        if part:
            yield part
