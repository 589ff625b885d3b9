"""Needles: many texts looked for in another at once, in time that grows with that one and not with how many they are.

They stand sorted, so that whatever a place of the text agrees with longest stands beside it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Final

# In so many characters a place has to agree before it is looked at closely: no needle is shorter.
HEAD: Final = 6
# By so many characters it is sorted in; what agrees further is compared one by one.
_WINDOW: Final = 512
# So few heads are sought one after the other, which is quicker than a look at every place.
_FEW: Final = 8


class Needles:
    """Texts to be found. Those shorter than `HEAD` are left out.

    Args:
        needles: in any order.
    """

    def __init__(self, needles: Iterable[str]) -> None:
        self._sorted = sorted({needle for needle in needles if len(needle) >= HEAD})
        self._heads = {needle[:HEAD] for needle in self._sorted}
        self._beginnings = list(self._find_beginnings())

    def find_whole(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, needle) of every needle in the text, in order and apart; of those at one place the longest."""
        reached = 0
        for at in self.find_places(text):
            if at >= reached:
                needle = self.find_beginning(text, at)
                if needle is not None:
                    reached = at + len(needle)
                    yield at, reached, needle

    def find_places(self, text: str) -> Iterator[int]:
        """Where a text agrees with the head of a needle, in order."""
        if len(self._heads) <= _FEW:
            yield from merge(*(_find_every(text, head) for head in self._heads))
            return
        for at in range(len(text) - HEAD + 1):
            if text[at : at + HEAD] in self._heads:
                yield at

    def match(self, text: str, at: int) -> tuple[int, str]:
        """In how many characters such a place agrees with the needle that it agrees with longest, and that needle."""
        length, place = self._match(text, at)
        return length, self._sorted[place]

    def find_beginning(self, text: str, at: int) -> str | None:
        """The longest needle that stands whole at this place of the text."""
        _, place = self._match(text, at)
        while place >= 0:
            if text.startswith(self._sorted[place], at):
                return self._sorted[place]
            place = self._beginnings[place]
        return None

    def _find_beginnings(self) -> Iterator[int]:
        """For each needle the place of the longest other one that it begins with; -1 where there is none."""
        open_places: list[int] = []
        for place, needle in enumerate(self._sorted):
            while open_places and not needle.startswith(self._sorted[open_places[-1]]):
                open_places.pop()
            yield open_places[-1] if open_places else -1
            open_places.append(place)

    def _match(self, text: str, at: int) -> tuple[int, int]:
        """As `match`, with the needle by its place."""
        window = text[at : at + _WINDOW]
        place = bisect_right(self._sorted, window)
        found = max((_agree(text, at, self._sorted[near]), near) for near in (place - 1, place) if self._has(near))
        # Of those that agree in the whole window each may go on further.
        while self._has(place) and len(window) == _WINDOW and self._sorted[place].startswith(window):
            found = max(found, (_agree(text, at, self._sorted[place]), place))
            place += 1
        return found

    def _has(self, place: int) -> bool:
        return 0 <= place < len(self._sorted)


def _find_every(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _agree(text: str, at: int, needle: str) -> int:
    """In how many characters a place of a text agrees with a needle."""
    if text.startswith(needle, at):
        return len(needle)
    low, high = 0, len(needle)
    while high - low > 1:
        middle = (low + high) // 2
        if text.startswith(needle[:middle], at):
            low = middle
        else:
            high = middle
    return low
