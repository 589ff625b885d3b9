"""Writing: the rows of conversations that came out differently, many in one statement, and their outlines."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.db import connection

from inspector.intake.bulk import update_rows
from inspector.intake.text import make_storable

from .models import Message as MessageRow
from .models import OutlineChunk
from .nodes import StoredNode
from .outline import outline, write_chunks
from .telling import ToldRow

WINDOW = 500
WINDOW_BYTES = 4 * 1024 * 1024
_CHUNKS_AT_ONCE = 50

# A row is found by its conversation too: one that has moved away meanwhile is not written.
_KEY = ("id", "conversation_id")
_PLACED = ("position", "run", "parent", "parent_key", "parent_basis", "parent_why")
_LEANED = ("told_in", "established")
_TOLD = ("severity", "is_sealed", "english", "body", "words", "atoms", "told_digest")


@dataclass(slots=True)
class Changes:
    """The rows of one conversation that are yet to be written: told otherwise, leaning otherwise, placed otherwise."""

    conversation_id: uuid.UUID
    told: list[tuple[Any, ...]] = field(default_factory=list)
    leaned: list[tuple[Any, ...]] = field(default_factory=list)
    placed: list[tuple[Any, ...]] = field(default_factory=list)
    size_bytes: int = 0

    @property
    def is_window(self) -> bool:
        """Whether there is as much as should be written at once."""
        lighter = len(self.leaned) + len(self.placed)
        return len(self.told) >= WINDOW or lighter >= 10 * WINDOW or self.size_bytes >= WINDOW_BYTES

    def take(self, node: StoredNode, row: ToldRow | None, established: str) -> None:
        """Add what has changed of a node's row; nothing where it came out as it stands."""
        placed = (node.position, node.run, node.parent, node.cited, node.basis, make_storable(node.why))
        if row is None:
            if node.hash_place() != node.was_placed:
                self.placed.append((node.id, self.conversation_id, *placed))
            return
        leaned = (node.id, self.conversation_id, *placed, node.told_in, established)
        self.size_bytes += len(established)
        if row.digest == node.was_told:
            self.leaned.append(leaned)
            return
        told = (row.severity, row.is_sealed, row.english, row.body, row.words, row.atoms, row.digest)
        self.told.append((*leaned, *told))
        self.size_bytes += len(row.body) + len(row.words)

    def clear(self) -> None:
        """Forget what has been written."""
        self.told, self.leaned, self.placed, self.size_bytes = [], [], [], 0


def write_changes(changes: Sequence[Changes]) -> None:
    """Write the rows of these conversations; call inside a transaction that holds them."""
    columns = (*_KEY, *_PLACED, *_LEANED, *_TOLD)
    for rows, width in (
        (chain.from_iterable(each.told for each in changes), len(columns)),
        (chain.from_iterable(each.leaned for each in changes), len(_KEY) + len(_PLACED) + len(_LEANED)),
        (chain.from_iterable(each.placed for each in changes), len(_KEY) + len(_PLACED)),
    ):
        held = list(rows)
        if held:
            update_rows(model=MessageRow, columns=columns[:width], rows=held, key_columns=len(_KEY))


def write_outlines(outlines: Sequence[tuple[uuid.UUID, Sequence[StoredNode]]]) -> None:
    """Write the chunks of these conversations' trees that are new or different, and drop those that are too many."""
    ids = [conversation_id for conversation_id, _ in outlines]
    known = _digest_chunks(ids)
    fresh: list[tuple[uuid.UUID, int, str]] = []
    for conversation_id, nodes in outlines:
        count = 0
        for number, text in write_chunks(outline(nodes)):
            count += 1
            if known.pop((conversation_id, number), None) != hashlib.sha256(text.encode()).digest():
                fresh.append((conversation_id, number, text))
            if len(fresh) >= _CHUNKS_AT_ONCE:
                _put_chunks(fresh)
                fresh = []
        if any(left == conversation_id for left, _ in known):
            OutlineChunk.objects.filter(conversation_id=conversation_id, number__gte=count).delete()
    _put_chunks(fresh)


def _digest_chunks(conversation_ids: Sequence[uuid.UUID]) -> dict[tuple[uuid.UUID, int], bytes]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conversation_id, number, sha256(convert_to(nodes, 'UTF8')) FROM threads_outlinechunk"
            " WHERE conversation_id = ANY(%s)",
            [list(conversation_ids)],
        )
        return {(conversation_id, number): bytes(digest) for conversation_id, number, digest in cursor.fetchall()}


def _put_chunks(chunks: Iterable[tuple[uuid.UUID, int, str]]) -> None:
    rows: Iterator[Sequence[Any]] = zip(*chunks, strict=True)
    columns = [list(column) for column in rows]
    if not columns:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO threads_outlinechunk (conversation_id, number, nodes)
            SELECT * FROM unnest(%s::uuid[], %s::int[], %s::text[])
            ON CONFLICT (conversation_id, number) DO UPDATE SET nodes = excluded.nodes
            """,
            columns,
        )
