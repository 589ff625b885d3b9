"""R14: the tree is that of RFC 6962, every proof verifies, and no proof does with a single bit turned."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence

import pytest
from pymerkle import InmemoryTree

from inspector.ledger.merkle import (
    EMPTY_ROOT,
    compute_root,
    hash_leaf,
    prove_consistency,
    prove_inclusion,
    read_from,
    verify_consistency,
    verify_inclusion,
)
from inspector.ledger.verifying import Roots

LEAVES = [hash_leaf(b"entry %d" % number) for number in range(2001)]
READ = read_from(LEAVES)


def define_root(leaves: list[bytes]) -> bytes:
    """RFC 6962, 2.1, word for word; it shares nothing with the module."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + define_root(leaves[:split]) + define_root(leaves[split:])).digest()


SIZES = [*range(131), 255, 256, 257, 511, 512, 513, 1000]


def test_the_vectors_of_certificate_transparency() -> None:
    """The eight leaves that the implementations of certificate transparency share."""
    texts = ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
    leaves = [bytes.fromhex(each) for each in texts]
    read = read_from([hash_leaf(each) for each in leaves])
    assert compute_root(read, 0) == EMPTY_ROOT
    assert compute_root(read, 1).hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert compute_root(read, 8).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


@pytest.mark.parametrize("sizes", [SIZES, pytest.param(list(range(2001)), marks=pytest.mark.long(seconds=60))])
def test_roots_are_those_of_the_definition(sizes: list[int]) -> None:
    for size in sizes:
        assert compute_root(READ, size) == define_root(LEAVES[:size]), size


@pytest.mark.parametrize("last", [130, pytest.param(2000, marks=pytest.mark.long(seconds=60))])
def test_pymerkle_has_the_same_roots_and_paths(last: int, record_property: Callable[[str, object], None]) -> None:
    """Its proofs of consistency have another form: ours are verified against its roots."""
    tree = InmemoryTree(algorithm="sha256")
    for number in range(last):
        tree.append_entry(b"entry %d" % number)
    roots = [tree.get_root(size) for size in range(last + 1)]
    wrong: list[tuple[int, int]] = []
    pairs = consistent = 0
    for size, root in enumerate(roots):
        if compute_root(READ, size) != root:
            wrong.append((size, -1))
        for index in range(size if size <= 128 else 0):
            pairs += 1
            path = prove_inclusion(READ, index, size)
            is_proven = verify_inclusion(LEAVES[index], index, size, path, root)
            if not is_proven or tree.prove_inclusion(index + 1, size).path[1:] != path:
                wrong.append((size, index))
        for old in {size // 3, size - size % 7, max(0, size - 1), size}:
            consistent += 1
            if not verify_consistency(old, roots[old], size, root, prove_consistency(READ, old, size)):
                wrong.append((size, old))
    record_property("roots like pymerkle's", len(roots))
    record_property("proofs of inclusion like its", pairs)
    record_property("proofs of consistency of its roots", consistent)
    record_property("failures", len(wrong))
    assert wrong == []


def test_roots_of_a_growing_tree_are_the_same() -> None:
    roots = Roots()
    for size, leaf in enumerate(LEAVES[:1100]):
        if size in SIZES:
            assert roots.compute() == define_root(LEAVES[:size])
        for height, index, found in roots.extend([leaf]):
            assert found == define_root(LEAVES[index << height : (index + 1) << height])


def test_every_leaf_is_proven_in_every_tree() -> None:
    for size in range(1, 129):
        root = compute_root(READ, size)
        for index in range(size):
            path = prove_inclusion(READ, index, size)
            assert verify_inclusion(LEAVES[index], index, size, path, root)
            assert not verify_inclusion(LEAVES[index], index + 1, size, path, root)
            assert not verify_inclusion(LEAVES[index + 1], index, size, path, root)


def test_every_tree_is_proven_to_begin_every_later_one() -> None:
    roots = [compute_root(READ, size) for size in range(129)]
    for new in range(129):
        for old in range(new + 1):
            proof = prove_consistency(READ, old, new)
            assert verify_consistency(old, roots[old], new, roots[new], proof)
            if 0 < old < new:
                assert not verify_consistency(old, roots[old - 1], new, roots[new], proof)
                assert not verify_consistency(old - 1, roots[old - 1], new, roots[new], proof) or old == 1


def test_what_is_not_there_is_not_proven() -> None:
    for index, size in ((-1, 5), (5, 5), (0, 0)):
        with pytest.raises(IndexError):
            prove_inclusion(READ, index, size)
    for old, new in ((6, 5), (-1, 5)):
        with pytest.raises(IndexError):
            prove_consistency(READ, old, new)


def flip(data: bytes, chance: random.Random) -> bytes:
    bit = chance.randrange(len(data) * 8)
    return bytes(byte ^ (1 << bit % 8 if at == bit // 8 else 0) for at, byte in enumerate(data))


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.long(seconds=40))])
def test_no_proof_holds_with_a_bit_turned(count: int, record_property: Callable[[str, object], None]) -> None:
    chance, turned, held = random.Random(26), 0, 0
    while turned < count:
        size = chance.randrange(2, 2001)
        index, old = chance.randrange(size), chance.randrange(1, size)
        root, path = compute_root(READ, size), prove_inclusion(READ, index, size)
        old_root, proof = compute_root(READ, old), prove_consistency(READ, old, size)
        assert verify_inclusion(LEAVES[index], index, size, path, root)
        assert verify_consistency(old, old_root, size, root, proof)
        for _ in range(5):
            took = (
                verify_inclusion(LEAVES[index], index, size, flip_one(path, chance), root),
                verify_inclusion(flip(LEAVES[index], chance), index, size, path, root),
                verify_inclusion(LEAVES[index], index, size, path, flip(root, chance)),
                verify_consistency(old, old_root, size, root, flip_one(proof, chance)),
                verify_consistency(old, flip(old_root, chance), size, root, proof),
                verify_consistency(old, old_root, size, flip(root, chance), proof),
            )
            turned, held = turned + len(took), held + sum(took)
        assert not verify_inclusion(LEAVES[index], index, size, path[:-1], root)
        assert not verify_inclusion(LEAVES[index], index, size, [*path, path[-1]], root)
    record_property("single bits of proofs, leaves and roots", turned)
    record_property("failures", held)
    assert held == 0


def flip_one(path: Sequence[bytes], chance: random.Random) -> list[bytes]:
    at = chance.randrange(len(path))
    return [*path[:at], flip(path[at], chance), *path[at + 1 :]]
