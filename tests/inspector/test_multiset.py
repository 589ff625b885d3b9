"""Digests of sets: the same for the same elements whatever came first, and another one for any others."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.threads.summaries import SIZE_BYTES, WIDTH_BYTES, Multiset, read_multiset

ELEMENTS = st.lists(st.binary(max_size=6), max_size=8)


@given(elements=ELEMENTS, chance=st.randoms(use_true_random=False))
def test_the_order_and_the_portions_make_no_odds(elements: list[bytes], chance: object) -> None:
    at_once = Multiset().add(elements)
    shuffled = list(elements)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    one_by_one = Multiset()
    for element in shuffled:
        one_by_one = one_by_one.add([element])
    assert one_by_one == at_once
    assert one_by_one.seal() == at_once.seal()


@given(ours=ELEMENTS, theirs=ELEMENTS)
def test_the_sum_of_two_sets_is_the_set_of_both(ours: list[bytes], theirs: list[bytes]) -> None:
    assert Multiset().add(ours).union(Multiset().add(theirs)) == Multiset().add(theirs + ours)


@given(ours=ELEMENTS, theirs=ELEMENTS)
def test_digests_are_equal_where_the_elements_are(ours: list[bytes], theirs: list[bytes]) -> None:
    is_equal = Counter(ours) == Counter(theirs)
    assert (Multiset().add(ours).seal() == Multiset().add(theirs).seal()) is is_equal


@given(elements=ELEMENTS)
def test_a_set_is_gone_on_with_from_what_was_written_of_it(elements: list[bytes]) -> None:
    held = Multiset().add(elements)
    assert len(held.write()) == SIZE_BYTES
    assert read_multiset(held.write()) == read_multiset(memoryview(held.write())) == held


def test_the_sum_wraps_around() -> None:
    many = [bytes([number]) for number in range(64)]
    assert 0 <= Multiset().add(many).union(Multiset().add(many)).total < 1 << 8 * WIDTH_BYTES


def test_the_digest_is_that_of_the_sum_and_of_the_number_of_elements() -> None:
    parts = [int.from_bytes(hashlib.shake_128(each).digest(504), "little") for each in (b"a", b"b")]
    said = (2).to_bytes(8, "little") + (sum(parts) % 2**4032).to_bytes(504, "little")
    assert Multiset().add([b"b", b"a"]).seal() == hashlib.sha256(said).digest()
    assert (
        Multiset().add([b"b", b"a"]).seal().hex() == "a979a0c2de8d6036948ea0cf3f5e123620313829d2bd3ebe1763d453fe529205"
    )


def test_an_element_that_is_there_twice_is_not_there_once() -> None:
    assert len({Multiset().add([b"a"] * times).seal() for times in range(4)}) == 4


@pytest.mark.parametrize("size", [0, SIZE_BYTES - 1, SIZE_BYTES + 1])
def test_what_is_no_set_is_not_read_as_one(size: int) -> None:
    with pytest.raises(ValueError, match="a set is"):
        read_multiset(bytes(size))
