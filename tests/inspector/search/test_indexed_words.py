"""The words of a message as search indexes them: any number of them, within what PostgreSQL can index."""

from __future__ import annotations

import random

import pytest
from django.db import connection

from inspector.threads import terms
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
