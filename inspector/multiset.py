"""Digests of sets, whose elements come in any order and whose parts are added up. Pure.

Each element is expanded to 4,032 bits (SHAKE-128) and these are added up modulo 2^4032, which is AdHash (Bellare and
Micciancio 1997); the digest is SHA-256 of the sum and of how many elements there are. Two sets of one digest are a
collision of one of both hashes (2^128 steps), or a sum to nothing of different numbers that SHAKE gives: no better ways
are known to it than Wagner's generalized birthday (never less than 2^126) and the reduction of lattices (far more). An
element that is there twice counts twice, and to sums with large factors lattices lead sooner: let each element say what
tells it apart from all others, and its place, where the order matters, in terms that do not move.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

# Three blocks of SHAKE-128, of which each costs as much as the last.
WIDTH_BYTES: Final = 3 * 168
_MASK: Final = (1 << 8 * WIDTH_BYTES) - 1
_COUNT: Final = struct.Struct("<Q")
SIZE_BYTES: Final = WIDTH_BYTES + _COUNT.size


@dataclass(frozen=True, slots=True)
class Multiset:
    """What is known of a set of elements: their sum, and how many they are."""

    total: int = 0
    count: int = 0

    def add(self, elements: Iterable[bytes]) -> Multiset:
        """This set and these elements beside it; about three microseconds for each."""
        shake, read = hashlib.shake_128, int.from_bytes
        total, count = self.total, self.count
        for element in elements:
            total += read(shake(element).digest(WIDTH_BYTES), "little")
            count += 1
        return Multiset(total & _MASK, count)

    def union(self, other: Multiset) -> Multiset:
        """The elements of both; those that are in both count twice."""
        return Multiset((self.total + other.total) & _MASK, self.count + other.count)

    def seal(self) -> bytes:
        """The digest of the set, 32 bytes: the same whatever it came from and in which order."""
        return hashlib.sha256(self.write()).digest()

    def write(self) -> bytes:
        """The set as `SIZE_BYTES` bytes, from which it can be gone on with."""
        return _COUNT.pack(self.count) + self.total.to_bytes(WIDTH_BYTES, "little")


def read_multiset(data: bytes | memoryview) -> Multiset:
    """The set that `Multiset.write` wrote; a ValueError where it is none."""
    if len(data) != SIZE_BYTES:
        raise ValueError(f"a set is {SIZE_BYTES} bytes, and these are {len(data)}")
    (count,) = _COUNT.unpack_from(data)
    return Multiset(int.from_bytes(data[_COUNT.size :], "little"), count)
