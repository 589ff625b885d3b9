"""Which dialect a text is in: every dialect scores it, the best guess comes first, with reasons."""

from __future__ import annotations

from ._json import is_json
from ._record import Candidate
from ._registry import all_dialects

# A dialect that is this sure has seen its own frame from end to end; none other can claim the same text.
_CERTAIN = 0.98


def detect(wire: str) -> tuple[Candidate, ...]:
    """The dialects a text may be in, likeliest first. Never raises.

    A score is from 0 to 1; ties go to the lower rank. Where one is certain no further dialect is asked, else prose is
    among them: any text is at least text. Of JSON only the dialects are asked whose messages are objects of it.
    """
    found: list[Candidate] = []
    is_object: bool | None = None
    for dialect in all_dialects():
        if not dialect.has_objects:
            is_object = is_json(wire) if is_object is None else is_object
            if is_object:
                continue
        candidate = dialect.sniff(wire)
        if candidate is not None:
            found.append(candidate)
            if candidate.score >= _CERTAIN:
                break
    return tuple(sorted(found, key=lambda candidate: -candidate.score))
