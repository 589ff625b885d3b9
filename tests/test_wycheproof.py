"""R13: what encrypts and signs here does with every vector of Wycheproof what the vector says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.wycheproof import VARIABLE, count

FOLDER = os.environ.get(VARIABLE, "")


@pytest.mark.skipif(not FOLDER, reason=f"{VARIABLE} names no folder: Wycheproof's vectors are no part of the project")
def test_every_vector_is_taken_or_refused_as_it_says() -> None:
    counts = count(Path(FOLDER))
    assert {each.algorithm for each in counts} == {"X25519", "AES-GCM", "HKDF-SHA-256", "Ed25519"}
    assert [(each.function, each.failed) for each in counts if each.failed] == []
    assert all(each.held and each.held + each.unasked == each.vectors for each in counts)
    assert sum(each.refused for each in counts) > 0
