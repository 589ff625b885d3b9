"""Which dialect a text is in: every dialect scores it, the best guess comes first, with reasons."""

from __future__ import annotations

from ._record import Candidate
from ._registry import all_dialects

# A dialect that is this sure has seen its own frame from end to end; none other can claim the same text.
_CERTAIN = 0.98


def detect(wire: str) -> tuple[Candidate, ...]:
    """The dialects a text may be in, likeliest first. Never raises.

    A score is from 0 to 1; ties go to the lower rank. Where one is certain no further dialect is asked, else prose is
    among them: any text is at least text.
    """
    found: list[Candidate] = []
    for dialect in all_dialects():
        candidate = dialect.sniff(wire)
        if candidate is not None:
            found.append(candidate)
            if candidate.score >= _CERTAIN:
                break
    return tuple(sorted(found, key=lambda candidate: -candidate.score))
