"""Reads: what a stretch of a timeline asked of what comes before it, so that it is known what a late message changes.

Settling goes through the messages of a conversation in order, and looks up what was before them. A stretch is some of
them that stand together. Of its look-ups those are noted whose answer came from before it, or might have: those that
found nothing. Where what is before a stretch changes in ways that none of its reads sees, the stretch comes out as it
did, and what it hands on differs in what was different before it, and in nothing else.

Nearly every look-up asks for the latest of a kind: it goes back as far as what it found and no further. Of a read is
therefore known how far back it went, and what changed before that is nothing to it.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from hashlib import blake2b
from typing import Final, NamedTuple

# What is looked up: its kind, and by what.
Key = tuple[str | int | bytes | None, ...]
# Digests of keys that were read, by the place of the border up to which they went back (b"": as far as can be).
Digests = Mapping[bytes, Set[bytes]]

DIGEST_BYTES: Final = 8
_HEAD: Final = struct.Struct(">HI")
_NOTHING: Final = -1


class Border(NamedTuple):
    """Where a stretch begins: how many messages are before it, and a place that no change before it moves."""

    position: int
    place: bytes


class Reads:
    """What a stretch has read of what comes before it.

    Args:
        start: how many messages come before the stretch.
    """

    def __init__(self, start: int) -> None:
        self.start = start
        # By key the position that it went back to.
        self._reached: dict[Key, int] = {}

    @property
    def keys(self) -> Set[Key]:
        """What was read."""
        return self._reached.keys()

    def note(self, *key: str | int | bytes | None) -> None:
        """Something is read that whatever comes before the stretch may change."""
        self._reached[key] = _NOTHING

    def note_found(self, position: int | None, *key: str | int | bytes | None) -> None:
        """The latest of something is looked for, and found at a position, or not at all (None)."""
        if position is None:
            self._reached[key] = _NOTHING
        elif position < self.start and position < self._reached.get(key, self.start):
            self._reached[key] = position

    def list_digests(self, borders: Sequence[Border]) -> dict[bytes, set[bytes]]:
        """The digests of what was read.

        Args:
            borders: where the stretches before this one begin, and it itself, in order.
        """
        positions = [border.position for border in borders]
        digests: dict[bytes, set[bytes]] = defaultdict(set)
        for key, position in self._reached.items():
            at = bisect_right(positions, position) - 1
            digests[borders[at].place if at >= 0 else b""].add(digest_key(key))
        return dict(digests)


def digest_key(key: Key) -> bytes:
    """What stands for a key; two that are alike in it are taken for one, which costs time and nothing else."""
    return blake2b(repr(key).encode(), digest_size=DIGEST_BYTES).digest()


def digest_keys(keys: Iterable[Key]) -> set[bytes]:
    """What stands for each of these keys."""
    return set(map(digest_key, keys))


def sees(digests: Digests, changed: Set[bytes], end: bytes) -> bool:
    """Whether a stretch has read what has changed before it.

    Args:
        digests: what it read.
        changed: the digests of the keys that changed.
        end: the place of the border before which all changes are.
    """
    return any(place < end and not changed.isdisjoint(read) for place, read in digests.items())


def write_digests(digests: Digests) -> bytes:
    """The digests as bytes."""
    parts = []
    for place, read in sorted(digests.items()):
        parts += [_HEAD.pack(len(place), len(read)), place, *sorted(read)]
    return b"".join(parts)


def read_digests(data: bytes | memoryview) -> dict[bytes, set[bytes]]:
    """What `write_digests` wrote."""
    said, at, digests = bytes(data), 0, {}
    while at < len(said):
        size, count = _HEAD.unpack_from(said, at)
        at += _HEAD.size
        place = said[at : at + size]
        at += size
        end = at + count * DIGEST_BYTES
        digests[place] = {said[start : start + DIGEST_BYTES] for start in range(at, end, DIGEST_BYTES)}
        at = end
    return digests
