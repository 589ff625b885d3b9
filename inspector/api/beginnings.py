"""What the first bytes of a body give away: that it was declared as something else, told before anything is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .bodies import Pieces
from .problems import BrokenBodyError, ProblemError

_BLANK: Final = b" \t\r\n\f\v\xef\xbb\xbf"
# Blank lines are passed over, and no more of them is held than this.
_MAX_BLANK: Final = 64 * 1024
_PACKED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


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
