"""Blocks of stored trees as they are fetched, those of many trees at once: by their digests, or by what they hold."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final

from django.db import connection

from .blocks import read_ids
from .opened import Packed

# Of so few ids the database searches a block, which takes as long as there are ids; for more the block is read.
_FEW_NAMES: Final = 8
_BLOCKS_AT_ONCE: Final = 100


def read_blocks(keys: Sequence[tuple[uuid.UUID, bytes]]) -> Iterator[tuple[uuid.UUID, bytes, Packed]]:
    """These blocks, each named by its outline and its digest; those that are not there are left out."""
    if not keys:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT block.outline_id, block.digest, block.depths, block.lines
              FROM unnest(%s::uuid[], %s::bytea[]) AS wanted (outline_id, digest)
              JOIN threads_outlineblock AS block
                ON block.outline_id = wanted.outline_id AND block.digest = wanted.digest
            """,
            [[outline_id for outline_id, _ in keys], [digest for _, digest in keys]],
        )
        for outline_id, digest, depths, lines in cursor:
            yield outline_id, bytes(digest), Packed(bytes(depths), bytes(lines))


def search_blocks(
    sought: Mapping[tuple[uuid.UUID, bytes], Set[bytes]],
) -> Iterator[tuple[uuid.UUID, bytes, Packed]]:
    """Those of these blocks that hold one of the ids which are sought in them."""
    many = [key for key, names in sought.items() if len(names) > _FEW_NAMES]
    for low in range(0, len(many), _BLOCKS_AT_ONCE):
        for outline_id, digest, packed in read_blocks(many[low : low + _BLOCKS_AT_ONCE]):
            if not sought[outline_id, digest].isdisjoint(read_ids(packed.lines)):
                yield outline_id, digest, packed
    few = [key for key, names in sought.items() if len(names) <= _FEW_NAMES]
    if not few:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT block.outline_id, block.digest, block.depths, block.lines
              FROM unnest(%s::uuid[], %s::bytea[], %s::bytea[]) AS wanted (outline_id, digest, names)
              JOIN threads_outlineblock AS block
                ON block.outline_id = wanted.outline_id AND block.digest = wanted.digest
             WHERE EXISTS (SELECT 1 FROM generate_series(1, length(wanted.names), 16) AS start
                            WHERE position(substring(wanted.names FROM start FOR 16) IN block.lines) > 0)
            """,
            [[key[0] for key in few], [key[1] for key in few], [b"".join(sought[key]) for key in few]],
        )
        for outline_id, digest, depths, lines in cursor:
            yield outline_id, bytes(digest), Packed(bytes(depths), bytes(lines))
