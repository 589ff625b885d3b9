"""Elements: what the digest of a trace is of, one for each of its messages, whatever else comes or goes. Pure.

An element says when its message stands in the timeline, how it is told, and what it answers: by the time and the words
of that, or by the key of the id where it is missing. So the tree follows from the elements, but for the order of what
stands at one instant: that goes by where it was found, and the same messages give one digest whatever they came in.
Equal ones are numbered, so that all elements differ (`multiset`).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from ..placing.instants import count_microseconds

# An order key: microseconds since 1970, the source, the index, the part. They sort as the timeline does.
Place = tuple[int, bytes, int, int]

_NAMED: Final = struct.Struct(">qI32s")
_ELEMENT: Final = struct.Struct(">qI32s16s")
_NUMBER: Final = struct.Struct(">Q")
# The columns of a message that `name_content` takes, the first of them as a count of microseconds.
CONTENT: Final = ("order_time", "part", "told_digest")
# Those that `read_place` takes.
PLACED: Final = ("order_time", "order_source", "order_index", "part")


def read_place(at: datetime, source: bytes | memoryview, index: int, part: int) -> Place:
    """The order key of a message, from its columns."""
    return count_microseconds(at), bytes(source), index, part


def name_content(at: int, part: int, told: bytes) -> bytes:
    """Sixteen bytes that name a message by its time and by how it is told, whatever it came with."""
    return hashlib.blake2b(_NAMED.pack(at, part, told), digest_size=16).digest()


def describe(at: int, part: int, told: bytes, answered: bytes, cited: bytes) -> bytes:
    """What the digest has of one message, but for its number among those of which it has the same.

    Args:
        at: its time in microseconds since 1970.
        part: its number in its record.
        told: the digest of how it is told, 32 bytes, or nothing.
        answered: the name of the message of the trace that it answers, or nothing.
        cited: the key of what it answers and is missing, or nothing.
    """
    return _ELEMENT.pack(at, part, told, answered) + cited


def number_element(said: bytes, number: int) -> bytes:
    """The element of the so manieth message that is so described, counted from zero; the first bears no number."""
    return said + _NUMBER.pack(number) if number else said


def tell_place(place: Place | None) -> list[Any] | None:
    """An order key, as JSON has it."""
    return None if place is None else [place[0], place[1].hex(), *place[2:]]


def read_told_place(said: Sequence[Any] | None) -> Place | None:
    """What `tell_place` told."""
    return None if said is None else (said[0], bytes.fromhex(said[1]), said[2], said[3])
