"""Digests of settled conversations: over the set of what a reader sees, one element for each message. Pure.

An element says where its message stands, how it is told and what it answers. Nothing in it moves when another message
comes in before it, but where they have the same time: a message is named by its record's identity and its part, and
stands by its time and by how many of that time are before it. So of what is late the elements of those alone change
that are told or placed otherwise, and those are worked in (`multiset`). Nothing in it is an id that chance gave, nor a
file: equal sets of records give equal digests, whatever they came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from ..placing.nodes import StoredNode

# Identity and part of a record.
_NAME: Final = Struct(">32si")
# Microseconds since 1970, how many of that time come before it; its name; its run; whether its parent is in this
# conversation, and whether what it cites is missing; the bytes of what stands for a parent elsewhere, of what it cites
# and of how it is told.
_HEAD: Final = Struct(">qI32sii??BBB")


class Moment(NamedTuple):
    """A time in microseconds since 1970, and how many messages of a conversation have it."""

    instant: int
    messages: int


def list_elements(nodes: Iterable[StoredNode], before: Moment | None = None) -> Iterator[bytes]:
    """The elements of these placed and told messages of a conversation, in the order of its timeline.

    Args:
        nodes: the messages; none of the others that come later has the time of one of them.
        before: of those that come before them, the latest time. None has another time of theirs.
    """
    held: dict[int, int] = {} if before is None else {before.instant: before.messages}
    for node in nodes:
        instant, above, cited = node.instant, node.above, node.cited or b""
        same = held.get(instant, 0)
        held[instant] = same + 1
        elsewhere, told = node.parent_elsewhere, node.told_digest
        sizes = (len(elsewhere), len(cited), len(told))
        head = _HEAD.pack(
            instant, same, node.identity, node.part, node.run, above is not None, node.ghost is not None, *sizes
        )
        parent = b"" if above is None else _NAME.pack(above.identity, above.part)
        yield b"".join((head, parent, elsewhere, cited, told, _write_words(node.basis, node.why)))


@lru_cache(maxsize=4096)
def _write_words(basis: str, why: str) -> bytes:
    # Most messages are placed for one of a few reasons.
    return f"{basis}\0{why}".encode("utf-8", "surrogatepass")
