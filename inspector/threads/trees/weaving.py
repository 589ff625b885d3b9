"""Weaving: a tree put together anew from stretches of what it was and lines that are new. Pure.

A block of which every line stays as it stands is kept as it is, and never opened. What lies between two of them is cut
into blocks anew; where that is too little for a block of its own, a neighbour joins it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from .blocks import LINE_BYTES, Block, Entry, StoredLine, read_depths, write_depths, write_lines
from .opened import Bounds, Packed, cut_packed, slice_packed
from .searched import SearchedTree, Steps


class Stretch(NamedTuple):
    """Lines of the tree as it was, from one place up to another, each so much deeper than it was."""

    low: int
    high: int
    deeper: int = 0


class NewLine(NamedTuple):
    """A line that the tree did not have."""

    depth: int
    line: StoredLine


Segment = Stretch | NewLine


@dataclass(slots=True)
class _Piece:
    """A part of the new tree: a block that is kept, by its number, or what is cut anew."""

    kept: int | None = None
    segments: list[Segment] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many lines are cut anew."""
        return sum(each.high - each.low if isinstance(each, Stretch) else 1 for each in self.segments)


def weave(
    tree: SearchedTree, segments: Iterable[Segment], changed: Mapping[int, StoredLine], bounds: Bounds
) -> Steps[list[tuple[Entry, Block | None]]]:
    """The directory of the new tree, each entry with its block where that is another one than before.

    Args:
        tree: as it was.
        segments: what the new one consists of.
        changed: lines of the old one that are others now, by their places.
        bounds: how large a block may become.
    """
    rewritten = _rewrite(tree, changed)
    pieces = _absorb(tree, _join(_cut(tree, segments, rewritten)), bounds)
    stretches = [each for piece in pieces for each in piece.segments if isinstance(each, Stretch)]
    yield from tree.reach([number for each in stretches for number in _list_numbers(tree, each)])
    found: list[tuple[Entry, Block | None]] = []
    for piece in pieces:
        if piece.kept is not None:
            found.append((tree.entries[piece.kept], None))
        else:
            packed = _write(tree, piece.segments, rewritten)
            found.extend((block.entry, block) for block in cut_packed(packed, bounds))
    return found


def _list_numbers(tree: SearchedTree, stretch: Stretch) -> range:
    return range(tree.number_of(stretch.low), tree.number_of(stretch.high - 1) + 1)


def _cut(tree: SearchedTree, segments: Iterable[Segment], touched: Container[int]) -> Iterator[_Piece]:
    """The segments in pieces, those blocks apart that are kept."""
    for segment in segments:
        if isinstance(segment, NewLine):
            yield _Piece(segments=[segment])
            continue
        for number in _list_numbers(tree, segment):
            low, high = max(segment.low, tree.starts[number]), min(segment.high, tree.starts[number + 1])
            if high - low == tree.entries[number].size and not segment.deeper and number not in touched:
                yield _Piece(kept=number)
            else:
                yield _Piece(segments=[Stretch(low, high, segment.deeper)])


def _join(pieces: Iterable[_Piece]) -> list[_Piece]:
    """The same, what is cut anew in one piece as far as it follows each other."""
    found: list[_Piece] = []
    for is_kept, same in groupby(pieces, key=lambda piece: piece.kept is not None):
        if is_kept:
            found.extend(same)
        else:
            found.append(_Piece(segments=[segment for piece in same for segment in piece.segments]))
    return found


def _absorb(tree: SearchedTree, pieces: list[_Piece], bounds: Bounds) -> list[_Piece]:
    """The same, with a neighbour cut anew as well where a piece is too small for a block."""
    small = [at for at, piece in enumerate(pieces) if piece.kept is None and piece.size < bounds.least]
    taken: set[int] = set()
    for at in small:
        beside = [other for other in (at - 1, at + 1) if 0 <= other < len(pieces) and other not in taken]
        # One that is open anyway costs nothing more to read.
        beside.sort(key=lambda other: (pieces[other].kept is None, not tree.is_open(pieces[other].kept or 0)))
        if beside:
            taken.add(beside[0])
    if not taken:
        return pieces

    def open_up(at: int) -> _Piece:
        number = pieces[at].kept
        if at not in taken or number is None:
            return pieces[at]
        return _Piece(segments=[Stretch(tree.starts[number], tree.starts[number + 1])])

    return _join(open_up(at) for at in range(len(pieces)))


def _write(tree: SearchedTree, segments: Sequence[Segment], changed: Mapping[int, bytes]) -> Packed:
    pieces: list[Packed] = []
    for segment in segments:
        if isinstance(segment, NewLine):
            pieces.append(Packed(write_depths([segment.depth]), write_lines([segment.line])))
        else:
            pieces.extend(_write_part(tree, number, segment, changed) for number in _list_numbers(tree, segment))
    return Packed(b"".join(piece.depths for piece in pieces), b"".join(piece.lines for piece in pieces))


def _write_part(tree: SearchedTree, number: int, stretch: Stretch, changed: Mapping[int, bytes]) -> Packed:
    """What a block has of a stretch."""
    start, packed = tree.starts[number], tree.packed(number)
    low, high = max(stretch.low - start, 0), min(stretch.high - start, tree.entries[number].size)
    depths, lines = slice_packed(packed.depths, changed.get(number, packed.lines), low, high)
    if stretch.deeper:
        depths = write_depths([depth + stretch.deeper for depth in read_depths(depths)])
    return Packed(depths, lines)


def _rewrite(tree: SearchedTree, changed: Mapping[int, StoredLine]) -> dict[int, bytes]:
    """The lines of those blocks in which some are others now, by their numbers."""
    texts: dict[int, bytearray] = {}
    for place, line in changed.items():
        number = tree.number_of(place)
        text = texts.setdefault(number, bytearray(tree.packed(number).lines))
        start = (place - tree.starts[number]) * LINE_BYTES
        text[start : start + LINE_BYTES] = write_lines([line])
    return {number: bytes(text) for number, text in texts.items()}
