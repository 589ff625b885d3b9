"""A lit span that does not begin and end where pieces do: which characters of a text it means exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

Range = tuple[int, int]


def find_exact(pieces: Iterable[Range], light: Iterable[Range]) -> list[Range]:
    """Those of the lit ranges of a text that begin or end within a piece, or in the signs between two.

    Args:
        pieces: where the pieces of the text stand that can be lit as wholes.
        light: the lit ranges of the same text.
    """
    known = list(pieces)
    starts, ends = {start for start, _ in known}, {end for _, end in known}
    return [(start, end) for start, end in light if start < end and (start not in starts or end not in ends)]


def cut_exact(start: int, end: int, exact: Sequence[Range]) -> Iterator[tuple[int, int, bool]]:
    """The stretch [start, end) cut where exact ranges begin and end: (start, end, whether it is in one)."""
    borders = sorted({start, end, *(place for each in exact for place in each if start < place < end)})
    for begins, ends in pairwise(borders):
        yield begins, ends, any(first <= begins and ends <= last for first, last in exact)
