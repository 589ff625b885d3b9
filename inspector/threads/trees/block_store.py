"""A stored tree as it is fetched: its directory at once, the depths and lines of its blocks as they are needed."""

from __future__ import annotations

import uuid
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from django.db import connection

from .blocks import LINE_BYTES, Entry, StoredLine, read_depths, read_ids, read_lines

# How often blocks are fetched for one window; one that needs more ends early, and the next goes on from there.
MOST_FETCHES = 4


class ExhaustedError(Exception):
    """A window needs more fetches than one request may make."""


@dataclass(slots=True)
class BlockStore:
    """The blocks of an outline; places count its lines from zero."""

    outline_id: uuid.UUID
    count: int
    latest: int
    entries: Sequence[Entry]
    _starts: list[int] = field(init=False)
    _depths: dict[int, array[int]] = field(init=False, default_factory=dict)
    # The lines of blocks that were fetched together with their depths.
    _lines: dict[int, bytes] = field(init=False, default_factory=dict)
    _fetches: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._starts = [0, *accumulate(entry.size for entry in self.entries)]

    def locate(self, ids: Collection[bytes]) -> dict[bytes, int]:
        """The places of the lines of these ids; those that are not in the tree are left out."""
        found: dict[bytes, int] = {}
        wanted = set(ids)
        if not wanted:
            return found
        numbers = {entry.digest: number for number, entry in enumerate(self.entries)}
        with connection.cursor() as cursor:
            # Of a single one the database finds the block.
            single = next(iter(wanted)) if len(wanted) == 1 else None
            cursor.execute(
                "SELECT digest, lines FROM threads_outlineblock"
                " WHERE outline_id = %s AND (%s::bytea IS NULL OR position(%s::bytea IN lines) > 0)",
                [self.outline_id, single, single],
            )
            for digest, lines in cursor:
                number = numbers.get(bytes(digest))
                if number is None:
                    continue
                start = self._starts[number]
                found |= {name: start + at for at, name in enumerate(read_ids(lines)) if name in wanted}
        return found

    def read_all(self) -> Iterator[tuple[int, StoredLine]]:
        """Every line with its depth, block by block."""
        for number, entry in enumerate(self.entries):
            self._fetch([number])
            places = range(self._starts[number], self._starts[number] + entry.size)
            lines = self._fetch_lines([places[0], places[-1]], is_whole=True)
            for place in places:
                yield self._depths[number][place - places[0]], lines[place]
            del self._depths[number]
            self._lines.pop(number, None)

    def read_lines_at(self, places: Sequence[int]) -> dict[int, StoredLine]:
        """The lines at these places."""
        return self._fetch_lines(places) if places else {}

    def read_block(self, number: int) -> list[StoredLine]:
        """Every line of a block."""
        first, last = self._starts[number], self._starts[number + 1] - 1
        lines = self._fetch_lines([first, last], is_whole=True)
        return [lines[place] for place in range(first, last + 1)]

    def _block_of(self, place: int) -> int:
        return bisect_right(self._starts, place) - 1

    def _fetch_once_more(self, numbers: Iterable[int]) -> None:
        """Fetch the depths of these blocks, as one of the fetches that a window may make."""
        if self._fetches >= MOST_FETCHES:
            raise ExhaustedError
        self._fetches += 1
        self._fetch(numbers)

    def _fetch(self, numbers: Iterable[int]) -> None:
        wanted = {
            self.entries[number].digest: number
            for number in numbers
            if 0 <= number < len(self.entries) and number not in self._depths
        }
        if not wanted:
            return
        # Of one or two blocks the lines are wanted as well; of many only some of each.
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT digest, depths, CASE WHEN %s THEN lines END FROM threads_outlineblock"
                " WHERE outline_id = %s AND digest = ANY(%s)",
                [len(wanted) <= 2, self.outline_id, list(wanted)],
            )
            for digest, depths, lines in cursor:
                number = wanted[bytes(digest)]
                self._depths[number] = read_depths(depths)
                if lines is not None:
                    self._lines[number] = bytes(lines)

    def _depth_after(self, number: int, place: int) -> int:
        """The depth of the next line, -1 after the last: it is asked for often and needs no other block."""
        within = place + 1 - self._starts[number]
        if within < self.entries[number].size:
            return self._depths[number][within]
        return self.entries[number + 1].first_depth if number + 1 < len(self.entries) else -1

    def _find_least(self, first: int, last: int) -> int:
        """The least depth from one place to another, both included; two blocks are read at most."""
        low, high = self._block_of(first), self._block_of(last)
        self._fetch([low, high])
        if low == high:
            return min(self._depths[low][first - self._starts[low] : last + 1 - self._starts[low]])
        between = (entry.least_depth for entry in self.entries[low + 1 : high])
        return min(
            *self._depths[low][first - self._starts[low] :],
            *self._depths[high][: last + 1 - self._starts[high]],
            *between,
        )

    def _fetch_lines(self, places: Sequence[int], *, is_whole: bool = False) -> dict[int, StoredLine]:
        """The lines at these places, and those between them in the same block."""
        reach: dict[int, tuple[int, int]] = {}
        for place in places:
            number = self._block_of(place)
            low, high = reach.get(number, (place, place))
            reach[number] = (min(low, place), max(high, place))
        found: dict[int, StoredLine] = {}
        wanted = None if is_whole else set(places)
        for number in reach.keys() & self._lines.keys():
            low, high = (place - self._starts[number] for place in reach.pop(number))
            cut = self._lines[number][low * LINE_BYTES : (high + 1) * LINE_BYTES]
            cut_lines = enumerate(read_lines(cut), self._starts[number] + low)
            found |= {place: line for place, line in cut_lines if wanted is None or place in wanted}
        if not reach:
            return found
        starts = {self.entries[number].digest: low for number, (low, _) in reach.items()}
        with connection.cursor() as cursor:
            cursor.execute(
                """
                SELECT block.digest, substring(block.lines FROM cut.first FOR cut.size)
                  FROM unnest(%s::bytea[], %s::int[], %s::int[]) AS cut (digest, first, size)
                  JOIN threads_outlineblock AS block ON block.outline_id = %s AND block.digest = cut.digest
                """,
                [
                    [self.entries[number].digest for number in reach],
                    [(low - self._starts[number]) * LINE_BYTES + 1 for number, (low, _) in reach.items()],
                    [(high - low + 1) * LINE_BYTES for low, high in reach.values()],
                    self.outline_id,
                ],
            )
            for digest, cut in cursor:
                cut_lines = enumerate(read_lines(cut), starts[bytes(digest)])
                found |= {place: line for place, line in cut_lines if wanted is None or place in wanted}
        return found
