"""The words of a message as search indexes them: any number of them, within what PostgreSQL can index."""

from __future__ import annotations

import random

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.threads.rendering import terms
from tests.lanes import begin_with


@pytest.mark.parametrize("kind", begin_with(2, ["short", "CJK", "long", "places"], seconds=4))
@pytest.mark.django_db
def test_any_number_of_words_can_be_indexed(kind: str) -> None:
    chance = random.Random(3)
    letters = {"CJK": "".join(map(chr, range(0x4E00, 0x5E00)))}.get(kind, "abcdefghijklmnopqrstuvwxyz")
    size = {"short": 3, "long": 400, "CJK": 2, "places": 1}[kind]
    texts = [" ".join("".join(chance.choices(letters, k=size)) for _ in range(200_000 // size)) for _ in range(12)]
    vector = terms.write_vector(texts, "Ab3/")
    with connection.cursor() as cursor:
        cursor.execute("SELECT length(%s::tsvector)", [vector])
        assert cursor.fetchone()[0] > 20  # type: ignore[index]


ASCII_TEXTS = st.text(st.sampled_from("aB3_ '\\\\.\\t"), max_size=400)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(max_size=60), max_size=4) | st.lists(ASCII_TEXTS, max_size=90))
def test_texts_within_every_bound_give_the_same_vector_the_short_way(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        short = terms.write_vector(texts, "Ab3/")
        patch.setattr(terms, "_FEW_CHARACTERS", -1)
        patch.setattr(terms, "_FEW_ASCII_CHARACTERS", -1)
        assert terms.write_vector(texts, "Ab3/") == short


def test_ascii_texts_at_the_bound_of_the_short_way_are_indexed_whole() -> None:
    texts = ["aB " * (terms._FEW_ASCII_CHARACTERS // 3 - 1)]
    short = terms.write_vector(texts, "Ab3/")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terms, "_FEW_ASCII_CHARACTERS", -1)
        assert terms.write_vector(texts, "Ab3/") == short
