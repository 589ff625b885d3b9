"""Trees as they are stored: the blocks of an outline that are new are written, those long gone are dropped.

Whoever reads a tree has its directory first and its blocks then, in statements of their own. So blocks that a tree no
longer has stay until it is written once more: a directory just read never leads to nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from django.db import connection
from psycopg import sql

from inspector.accounts.models import make_id

from .blocks import Block, Entry, cut_blocks, read_directory, write_directory
from .outline import Knot, draw_lines

_BLOCKS_AT_ONCE: Final = 50

Owner = Literal["conversation", "trace"]


@dataclass(frozen=True, slots=True)
class Tree:
    """What is to be drawn of one conversation or trace: its messages in the order of the timeline.

    `held` are the digests of blocks that are needed later, whether or not the tree has them (`growing`).
    """

    owner_id: uuid.UUID
    knots: Sequence[Knot]
    held: frozenset[bytes] = frozenset()


class StoredOutline(NamedTuple):
    """A tree as its row has it: `latest` is the place of its last message, `directory` says in which blocks it is."""

    id: uuid.UUID
    latest: int
    directory: bytes


class Rewritten(NamedTuple):
    """What becomes of a stored tree: its directory, the blocks that are new in it, and the place of its last message.

    `held` are the digests of blocks that are needed later, whether or not the tree has them.
    """

    owner_id: uuid.UUID
    outline: StoredOutline
    entries: Sequence[Entry]
    blocks: Sequence[Block]
    latest: int
    held: frozenset[bytes]


def write_trees(*, trees: Sequence[Tree], owner: Owner, workspace_id: uuid.UUID) -> int:
    """Draw these trees and write what differs; call inside a transaction that holds their owners.

    Returns:
        how many blocks were written.
    """
    known = find_outlines(owner, [tree.owner_id for tree in trees])
    fresh: list[tuple[uuid.UUID, Block]] = []
    rows: list[tuple[Any, ...]] = []
    kept: dict[uuid.UUID, set[bytes]] = {}
    written = 0
    for tree in trees:
        outline_id, _, directory = known.get(tree.owner_id, StoredOutline(make_id(), -1, b""))
        before = {entry.digest for entry in read_directory(directory)}
        entries: list[Entry] = []
        latest = _Latest(tree.knots)
        for block in cut_blocks(map(latest.look, draw_lines(tree.knots))):
            entries.append(block.entry)
            if block.entry.digest not in before:
                fresh.append((outline_id, block))
                written += 1
            if len(fresh) >= _BLOCKS_AT_ONCE:
                put_blocks(fresh)
                fresh = []
        text = write_directory(entries)
        if text != directory or tree.owner_id not in known:
            rows.append((outline_id, workspace_id, tree.owner_id, sum(each.size for each in entries), latest.at, text))
            if before:
                kept[outline_id] = before.union((entry.digest for entry in entries), tree.held)
    put_blocks(fresh)
    put_outlines(owner, rows)
    drop_others(kept)
    return written


def put_trees(trees: Sequence[Rewritten], owner: Owner, workspace_id: uuid.UUID) -> int:
    """Write what becomes of these stored trees; call inside a transaction that holds their owners.

    Returns:
        how many blocks were written.
    """
    fresh = [(tree.outline.id, block) for tree in trees for block in tree.blocks]
    rows: list[tuple[Any, ...]] = []
    kept: dict[uuid.UUID, set[bytes]] = {}
    for tree in trees:
        count = sum(entry.size for entry in tree.entries)
        text = write_directory(tree.entries)
        rows.append((tree.outline.id, workspace_id, tree.owner_id, count, tree.latest, text))
        # Who has read the directory that was still finds its blocks.
        before = read_directory(tree.outline.directory)
        kept[tree.outline.id] = {entry.digest for entry in (*before, *tree.entries)} | tree.held
    for low in range(0, len(fresh), _BLOCKS_AT_ONCE):
        put_blocks(fresh[low : low + _BLOCKS_AT_ONCE])
    put_outlines(owner, rows)
    drop_others(kept)
    return len(fresh)


def add_tree(outline: StoredOutline, knots: Sequence[Knot]) -> tuple[bytes, int]:
    """Write the blocks that an outline lacks of another tree of its messages, and leave its own tree as it is.

    Returns:
        the directory of that tree, and the place of its last message.
    """
    latest = _Latest(knots)
    blocks = list(cut_blocks(map(latest.look, draw_lines(knots))))
    known = {entry.digest for entry in read_directory(outline.directory)}
    put_blocks([(outline.id, block) for block in blocks if block.entry.digest not in known])
    return write_directory([block.entry for block in blocks]), latest.at


class _Latest:
    """Notes, as the lines go by, at which place the last message stands."""

    def __init__(self, knots: Sequence[Knot]) -> None:
        self._id = knots[-1].id if knots else b""
        self._count = 0
        self.at = -1

    def look(self, line: Any) -> Any:
        if line.id == self._id:
            self.at = self._count
        self._count += 1
        return line


def _column_of(owner: Owner) -> sql.Identifier:
    return sql.Identifier(f"{owner}_id")


def find_outlines(owner: Owner, owner_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, StoredOutline]:
    """The outlines of these owners, of those that have one."""
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("SELECT {0}, id, latest, directory FROM threads_outline WHERE {0} = ANY(%s)").format(
                _column_of(owner)
            ),
            [list(owner_ids)],
        )
        return {
            owner_id: StoredOutline(outline_id, latest, bytes(directory))
            for owner_id, outline_id, latest, directory in cursor.fetchall()
        }


def put_blocks(blocks: Sequence[tuple[uuid.UUID, Block]]) -> None:
    """Write these blocks of these outlines."""
    if not blocks:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO threads_outlineblock (outline_id, digest, depths, lines)
            SELECT * FROM unnest(%s::uuid[], %s::bytea[], %s::bytea[], %s::bytea[])
            ON CONFLICT (outline_id, digest) DO NOTHING
            """,
            [
                [outline_id for outline_id, _ in blocks],
                [block.entry.digest for _, block in blocks],
                [block.depths for _, block in blocks],
                [block.lines for _, block in blocks],
            ],
        )


def put_outlines(owner: Owner, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write these outlines: (id, workspace id, owner's id, count of lines, place of the last message, directory)."""
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL(
                """
                INSERT INTO threads_outline (id, workspace_id, {0}, count, latest, directory)
                SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::bigint[], %s::bigint[], %s::bytea[])
                ON CONFLICT ({0}) DO UPDATE
                   SET count = excluded.count, latest = excluded.latest, directory = excluded.directory
                """
            ).format(_column_of(owner)),
            [list(column) for column in zip(*rows, strict=True)],
        )


def drop_others(kept: Mapping[uuid.UUID, Set[bytes]]) -> None:
    """Of these outlines, drop every block but those of these digests."""
    if not kept:
        return
    with connection.cursor() as cursor:
        # A large tree has a thousand of them: they go over as one text and are cut up there.
        cursor.execute(
            """
            WITH kept AS MATERIALIZED (
                SELECT named.outline_id, substring(named.digests FROM start + 1 FOR 16) AS digest
                  FROM unnest(%s::uuid[], %s::bytea[]) AS named (outline_id, digests),
                       generate_series(0, length(named.digests) - 1, 16) AS start
            )
            DELETE FROM threads_outlineblock AS block
             WHERE block.outline_id = ANY(%s)
               AND NOT EXISTS (SELECT 1 FROM kept
                                WHERE kept.outline_id = block.outline_id AND kept.digest = block.digest)
            """,
            [list(kept), [b"".join(digests) for digests in kept.values()], list(kept)],
        )
