"""The Merkle tree of RFC 6962, section 2.1: leaves, nodes, roots, and proofs that are made and checked.

Nothing here knows where hashes are kept. A tree is read by a function `read(height, first, count)`, which answers the
hashes of `count` complete subtrees of 2**height leaves each, from the one with the number `first` on. It is only asked
for heights that are multiples of `TILE_HEIGHT`, so that of 256 leaves one hash above them needs to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
TILE_HEIGHT: Final = 8
TILE: Final = 1 << TILE_HEIGHT

Read = Callable[[int, int, int], Sequence[bytes]]


# A copy of a begun hash costs less than another beginning and putting the bytes together.
_LEAF: Final = sha256(b"\x00")
_NODE: Final = sha256(b"\x01")


def hash_leaves(datas: Iterable[bytes]) -> list[bytes]:
    """The hash of each leaf (RFC 6962, 2.1)."""
    begin, found = _LEAF.copy, []
    for data in datas:
        leaf = begin()
        leaf.update(data)
        found.append(leaf.digest())
    return found


def hash_leaf(data: bytes) -> bytes:
    """The hash of a leaf."""
    return hash_leaves([data])[0]


def hash_node(left: bytes, right: bytes) -> bytes:
    """The hash of two subtrees beside each other (RFC 6962, 2.1)."""
    begun = _NODE.copy()
    begun.update(left)
    begun.update(right)
    return begun.digest()


EMPTY_ROOT: Final = sha256(b"").digest()


def fold(hashes: Sequence[bytes]) -> bytes:
    """The root over a power of two of subtrees of one size."""
    level, begin = hashes, _NODE.copy
    while len(level) > 1:
        pairs, above = iter(level), []
        for left, right in zip(pairs, pairs, strict=True):
            # As `hash_node`, without its call: here is half of the work of a verification.
            node = begin()
            node.update(left)
            node.update(right)
            above.append(node.digest())
        level = above
    return level[0]


def join(parts: list[bytes]) -> bytes:
    """The root over complete subtrees beside each other, the largest first; the list is used up."""
    root = parts.pop()
    while parts:
        root = hash_node(parts.pop(), root)
    return root


def read_from(leaves: Sequence[bytes]) -> Read:
    """A reader of a tree whose leaf hashes are all at hand."""

    def read(height: int, first: int, count: int) -> Sequence[bytes]:
        size = 1 << height
        return [fold(leaves[at * size : (at + 1) * size]) for at in range(first, first + count)]

    return read


def compute_root(read: Read, size: int) -> bytes:
    """The root of the first `size` leaves."""
    return _hash_range(read, 0, size) if size else EMPTY_ROOT


def prove_inclusion(read: Read, index: int, size: int) -> list[bytes]:
    """The audit path of a leaf in the tree of the first `size` leaves (RFC 6962, 2.1.1), the nearest hash first.

    Raises:
        IndexError: where the tree has no such leaf.
    """
    if not 0 <= index < size:
        raise IndexError(f"a tree of {size} leaves has no leaf {index}")
    path, start, end = [], 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_hash_range(read, middle, end))
            end = middle
        else:
            path.append(_hash_range(read, start, middle))
            start = middle
    return path[::-1]


def prove_consistency(read: Read, old: int, new: int) -> list[bytes]:
    """The proof that the tree of `new` leaves begins with that of `old` (RFC 6962, 2.1.2).

    Raises:
        IndexError: where the first is larger than the second.
    """
    if not 0 <= old <= new:
        raise IndexError(f"a tree of {old} leaves is not the beginning of one of {new}")
    if old in (0, new):
        return []
    proof, start, end, is_whole = [], 0, new, True
    while end != old:
        middle = start + _split(end - start)
        if old <= middle:
            proof.append(_hash_range(read, middle, end))
            end = middle
        else:
            proof.append(_hash_range(read, start, middle))
            start, is_whole = middle, False
    if not is_whole:
        proof.append(_hash_range(read, start, end))
    return proof[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether a leaf's hash stands at that index of the tree with this root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    node, last, found = index, size - 1, leaf
    for each in path:
        if last == 0:
            return False
        if node & 1 or node == last:
            found = hash_node(each, found)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            found = hash_node(found, each)
        node, last = node >> 1, last >> 1
    return last == 0 and found == root


def verify_consistency(old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether the tree of the second root begins with that of the first (RFC 9162, 2.1.4.2)."""
    if old == new:
        return not proof and old_root == new_root
    if not 0 <= old < new:
        return False
    if old == 0:
        return not proof and old_root == EMPTY_ROOT
    path = [old_root, *proof] if old & (old - 1) == 0 else [*proof]
    if not path:
        return False
    node, last = old - 1, new - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    first = second = path[0]
    for each in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            first, second = hash_node(each, first), hash_node(each, second)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            second = hash_node(second, each)
        node, last = node >> 1, last >> 1
    return last == 0 and first == old_root and second == new_root


def _split(size: int) -> int:
    """The largest power of two below a size."""
    return 1 << (size - 1).bit_length() - 1


def _hash_range(read: Read, start: int, end: int) -> bytes:
    """The root over the leaves [start, end), where `start` is a multiple of every power of two that `end - start` has.

    The range is cut into complete subtrees, the largest first, which are joined from the right.
    """
    parts, at = [], start
    for height in range((end - start).bit_length() - 1, -1, -1):
        if (end - start) >> height & 1:
            parts.append(_hash_subtree(read, height, at >> height))
            at += 1 << height
    return join(parts)


def _hash_subtree(read: Read, height: int, index: int) -> bytes:
    above = height % TILE_HEIGHT
    return fold(read(height - above, index << above, 1 << above))
