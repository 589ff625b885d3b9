"""Blocks: the lines of an outline as they are stored, cut so that a change moves the borders around it alone.

A border falls where the mark of a line says so, which its order key gives: a line that comes in near the front changes
the block that it stands in and leaves the others as they are. A block is known by the digest of what it holds. The
directory lists the blocks in order, with what it takes to pass one over without opening it.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from .outline import Kind, Line, Outcome

LEAST_LINES: Final = 500
MOST_LINES: Final = 2000
# Of so many lines one is a border, on average.
_SPACING: Final = 512

_LINE: Final = struct.Struct("<16sqqBB")
_ENTRY: Final = struct.Struct("<16sIIIqqB")
LINE_BYTES: Final = _LINE.size
# The byte of a line that says of which kind it is, in its two lowest bits.
_KIND_AT: Final = 32
# Four bytes a line, the least significant first.
DEPTH_BYTES: Final = 4


class Entry(NamedTuple):
    """A block in the directory: its digest, how many lines, the first and the least of their depths, the times that
    they reach from and to (microseconds since 1970), and their gravest severity."""

    digest: bytes
    size: int
    first_depth: int
    least_depth: int
    first: int
    last: int
    severity: int


class Block(NamedTuple):
    """A block to be written."""

    entry: Entry
    depths: bytes
    lines: bytes


class StoredLine(NamedTuple):
    """A line as its block holds it; its depth stands apart."""

    id: bytes
    kind: Kind
    start: int
    end: int
    outcome: Outcome
    severity: int


def cut_blocks(lines: Iterable[Line]) -> Iterator[Block]:
    """The lines in blocks of `LEAST_LINES` to `MOST_LINES`."""
    held: list[Line] = []
    for line in lines:
        is_border = line.mark % _SPACING == 0 and len(held) >= LEAST_LINES
        if is_border or len(held) == MOST_LINES:
            yield _make_block(held)
            held = []
        held.append(line)
    if held:
        yield _make_block(held)


def _make_block(lines: Sequence[Line]) -> Block:
    return seal_block(write_depths([line.depth for line in lines]), write_lines(lines))


def seal_block(depths: bytes, lines: bytes) -> Block:
    """The block of these lines and their depths, at least one, with its entry in the directory."""
    every = read_depths(depths)
    _, starts, ends, _, severities = zip(*_LINE.iter_unpack(lines), strict=True)
    entry = Entry(
        digest=hashlib.blake2b(depths + lines, digest_size=16).digest(),
        size=len(every),
        first_depth=every[0],
        least_depth=min(every),
        first=min(starts),
        last=max(ends),
        severity=max(severities),
    )
    return Block(entry, depths, lines)


def write_depths(depths: Sequence[int]) -> bytes:
    """Depths as bytes."""
    return struct.pack(f"<{len(depths)}I", *depths)


def read_depths(data: bytes | memoryview) -> array[int]:
    """The depths that `write_depths` wrote."""
    return array("I", struct.unpack(f"<{len(data) // DEPTH_BYTES}I", data))


def write_lines(lines: Iterable[Line | StoredLine]) -> bytes:
    """Lines as bytes; their depths stand apart."""
    pack = _LINE.pack
    return b"".join(
        [pack(line.id, line.start, line.end, line.kind | line.outcome << 2, line.severity) for line in lines]
    )


def read_lines(data: bytes | memoryview) -> list[StoredLine]:
    """The lines of a block, or of a stretch cut out of it."""
    return [
        StoredLine(name, Kind(what & 3), start, end, Outcome(what >> 2), severity)
        for name, start, end, what, severity in _LINE.iter_unpack(data)
    ]


def read_ids(data: bytes | memoryview) -> list[bytes]:
    """The ids of a block's lines."""
    view = bytes(data)
    return [view[at : at + 16] for at in range(0, len(view), LINE_BYTES)]


def find_line(lines: bytes, name: bytes, kind: Kind) -> int | None:
    """At which place of a block the line of this id and kind stands, if it is there."""
    start = lines.find(name)
    while start >= 0:
        # An id may stand across the border of two lines by chance.
        if start % LINE_BYTES == 0 and lines[start + _KIND_AT] & 3 == kind:
            return start // LINE_BYTES
        start = lines.find(name, start + 1)
    return None


def write_directory(entries: Iterable[Entry]) -> bytes:
    """The directory as bytes."""
    return b"".join([_ENTRY.pack(*entry) for entry in entries])


def list_digests(data: bytes) -> list[bytes]:
    """The digests of the blocks in a directory, in order."""
    return [data[at : at + 16] for at in range(0, len(data), _ENTRY.size)]


def read_directory(data: bytes | memoryview) -> list[Entry]:
    """The entries that `write_directory` wrote."""
    return [Entry(*said) for said in _ENTRY.iter_unpack(data)]
