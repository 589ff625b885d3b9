"""What may be shown of the characters that a comment is about, and of the words that were written about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .tables import Comment

LONGEST_QUOTE: Final = 300
TOO_LARGE: Final = "The record is too large to be looked through for secrets here."
OTHER_BYTES: Final = "These are not the bytes it was written about."


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """The characters that a comment is about, its secrets as marks; `why_none` says why there are none to be seen."""

    text: str
    more: int
    is_masked: bool
    why_none: str = ""


def quote_of(comment: Comment, wire: str, masked: str | None) -> Quote:
    """What may be shown of the characters that a comment is about.

    Args:
        comment: which.
        wire: the text of its record.
        masked: that text with its secrets masked; None where it could not be looked through.
    """
    start, end = comment.start, comment.end
    if masked is None:
        return Quote(text="", more=0, is_masked=True, why_none=TOO_LARGE)
    if wire[start:end] != comment.quoted_text:
        return Quote(text="", more=0, is_masked=True, why_none=OTHER_BYTES)
    text = masked[start:end]
    return Quote(text=text[:LONGEST_QUOTE], more=max(0, len(text) - LONGEST_QUOTE), is_masked=text != wire[start:end])


def is_open_to_all(quote: Quote, *, is_restricted: bool) -> bool:
    """Whether everybody may read what was written about these characters: who cannot see them learns nothing of it."""
    return not (is_restricted or quote.is_masked)
