"""Which dialect a text is in: every dialect scores it, the best guess comes first, with reasons."""

from __future__ import annotations

from ._record import Candidate
from ._registry import all_dialects


def detect(wire: str) -> tuple[Candidate, ...]:
    """The dialects a text may be in, likeliest first; prose is always among them. Never raises.

    A score is from 0 to 1. Ties go to the dialect that claims less text by its rank.
    """
    found = [candidate for dialect in all_dialects() if (candidate := dialect.sniff(wire)) is not None]
    return tuple(sorted(found, key=lambda candidate: -candidate.score))
