"""Messages as batches: JSON Lines, packed, under a key by which the inspector knows a batch that is sent again."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The text of a message, an envelope around it ({"raw": text, "from": …}), or a CLowl object.
Message = str | Mapping[str, Any]


@dataclass(frozen=True)
class Batch:
    """One request, made once: every attempt sends the same bytes under the same key.

    Attributes:
        body: JSON Lines, packed by gzip.
        count: how many messages are in it.
        key: the Idempotency-Key.
    """

    body: bytes
    count: int
    key: str


def list_messages(messages: Iterable[Message] | Message) -> Iterable[Message]:
    """The messages of a call that takes several or one. What is none is one, of which encoding says so."""
    is_several = isinstance(messages, Iterable) and not isinstance(messages, (str, bytes, bytearray, Mapping))
    return messages if is_several else [messages]  # type: ignore[list-item]  # as was just asked


def encode_message(message: Message) -> bytes:
    """The message as one line of JSON, in ASCII: line ends, NULs and lone surrogates are escaped.

    Raises:
        TypeError: for what is neither text nor a mapping.
    """
    if not isinstance(message, (str, Mapping)):
        raise TypeError(f"a message is a text or a mapping, and not {type(message).__name__}")
    said = message if isinstance(message, str) else dict(message)
    return json.dumps(said, separators=(",", ":"), default=str).encode() + b"\n"


def make_batch(lines: Sequence[bytes]) -> Batch:
    """Lines as one batch, with a key of its own."""
    return Batch(body=gzip.compress(b"".join(lines), 6, mtime=0), count=len(lines), key=uuid.uuid4().hex)


def make_batches(messages: Iterable[Message], *, records: int, size_bytes: int) -> Iterator[Batch]:
    """Batches of at most so many messages and so many bytes; a message that is larger goes alone."""
    lines: list[bytes] = []
    size = 0
    for message in messages:
        line = encode_message(message)
        if lines and (len(lines) >= records or size + len(line) > size_bytes):
            yield make_batch(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield make_batch(lines)
