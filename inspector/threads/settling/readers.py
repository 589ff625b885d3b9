"""Readers: which stretches have read what has changed before them, and what they are not told rightly any more."""

from __future__ import annotations

import base64
from collections.abc import Set
from typing import Any, Final

from ..models import Conversation, Lack, Stretch
from ..reads import DIGEST_BYTES, Digests, read_digests, sees, write_digests
from ..uncertainty import UncertainError
from .carries import Start

# Where more than so many things are not known rightly any more, the conversation is settled from its beginning.
MOST_LACKING: Final = 1000


def read_running(end: Start) -> Digests:
    """What the last stretch of a conversation has read."""
    return read_digests(base64.b64decode(end.written["read"]))


def keep_read(conversation: Conversation, border: bytes, read: Digests) -> None:
    """Keep what a stretch has read, as it was settled now."""
    Stretch.objects.filter(conversation=conversation, border=border).update(**write_read(read))


def write_read(read: Digests) -> dict[str, Any]:
    """What a stretch has read, as its columns take it."""
    return {
        "reads": sorted({number for each in read.values() for number in map(_number_digest, each)}),
        "depths": write_digests(read),
    }


def find_readers(conversation: Conversation, digests: Set[bytes], end: bytes) -> list[bytes]:
    """The borders of those stretches that have read what has changed, in order.

    Args:
        conversation: the conversation.
        digests: of what has changed.
        end: the place before which all of it is.
    """
    numbers = [_number_digest(digest) for digest in digests]
    rows = Stretch.objects.filter(conversation=conversation, reads__overlap=numbers)
    found = rows.order_by("border").values_list("border", "depths") if numbers else []
    return [bytes(border) for border, depths in found if sees(read_digests(depths), digests, end)]


def is_lacking(conversation: Conversation, border: bytes, read: Digests) -> bool:
    """Whether what was read of what is carried over a border is not known rightly there."""
    rows = Lack.objects.filter(conversation=conversation, border__lte=border).values_list("border", "keys")
    return any(sees(read, _cut_digests(bytes(keys)), bytes(end)) for end, keys in rows)


def note_lacking(conversation: Conversation, border: bytes, digests: Set[bytes]) -> None:
    """Note that what is carried over a border and all behind it does not tell these rightly any more.

    Raises:
        UncertainError: where that is too much.
    """
    rows = Lack.objects.filter(conversation=conversation).values_list("border", "keys")
    held = [(bytes(end), _cut_digests(bytes(keys))) for end, keys in rows]
    new = set(digests).difference(*(keys for end, keys in held if end == border))
    if len(new) + sum(len(keys) for _, keys in held) > MOST_LACKING:
        raise UncertainError
    if new:
        Lack.objects.create(
            conversation=conversation,
            workspace_id=conversation.workspace_id,
            border=border,
            keys=b"".join(sorted(new)),
        )


def _cut_digests(data: bytes) -> set[bytes]:
    """Digests that stand one behind the other."""
    return {data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)}


def _number_digest(digest: bytes) -> int:
    """A digest as a number that the database can hold."""
    return int.from_bytes(digest, "big", signed=True)
