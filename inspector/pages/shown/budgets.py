"""How much of what machines wrote a page carries: no window may weigh more than a reader's browser bears.

A text weighs what its markup does, about: its bytes, six for a character that is escaped, a badge for a hidden one.
Whatever is left out is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from inspector.hidden_characters import HIDDEN
from inspector.threads.messages import CAUTION_MARK, split_mark

BADGE_BYTES: Final = 95
# What the texts of one page may weigh together; names, links and lines of a window come to about as much again.
PAGE_BYTES: Final = 100_000
# No text is cut below this.
MIN_BYTES: Final = 200


def weigh(text: str, max_characters: int) -> int:
    """What the first characters of a text weigh as markup."""
    shown = text[:max_characters]
    escaped = sum(shown.count(character) for character in "&<>\"'")
    return len(shown.encode("utf-8", "replace")) + 5 * escaped + BADGE_BYTES * sum(1 for _ in HIDDEN.finditer(shown))


def share_out(weights: Iterable[int], budget: int = PAGE_BYTES) -> int:
    """The most that each of these may weigh, so that all together stay within the budget: the light keep all."""
    left, rest = budget, sorted(weights)
    for count, weight in zip(range(len(rest), 0, -1), rest, strict=True):
        if weight * count > left:
            return max(MIN_BYTES, left // count)
        left -= weight
    return budget


def fit(text: str, max_bytes: int, max_characters: int) -> int:
    """How many characters of a text weigh at most so much: those before the hidden one that is over, or their share."""
    end = min(len(text), max_characters)
    if (weight := weigh(text, end)) <= max_bytes:
        return end
    plain = weight - BADGE_BYTES * sum(1 for _ in HIDDEN.finditer(text, 0, end))
    end = min(end, max(1, end * max_bytes // max(plain, 1)))
    spent_on_badges = 0
    for found in HIDDEN.finditer(text, 0, end):
        if found.start() + spent_on_badges + BADGE_BYTES > max_bytes:
            return found.start()
        spent_on_badges += BADGE_BYTES
    return max(0, min(end, max_bytes - spent_on_badges))


def shorten_name(name: str, max_bytes: int = 100) -> str:
    """A name or an id for a line: cut with an ellipsis where it is longer than anybody reads."""
    bare, mark = split_mark(name)
    end = fit(bare, max_bytes, max_bytes)
    return name if end >= len(bare) else f"{bare[: max(end, 1)]}…{mark}"


def mark_cut(told: str, bare: str, shown: int) -> str:
    """The mark of cautions, where those of a sentence do not all stand in the first characters of what is told."""
    return CAUTION_MARK if told != bare and len(told) > shown else ""


def join_texts(segments: Sequence[tuple[str, object, object]]) -> str:
    """The text of a sentence from its segments."""
    return "".join(text for text, _, _ in segments)
