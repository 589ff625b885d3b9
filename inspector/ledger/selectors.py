"""Reading a ledger: its hashes as a tree, its entries, its checkpoints, and whether what is shown as
evidence is what was entered of it, so that no changed row passes as genuine."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace

from django.db.models import OuterRef, Subquery

from inspector.intake.models import Record

from .kinds import BY_NAME, hash_of
from .merkle import TILE, Read
from .models import LedgerCheckpoint, LedgerCosignature, LedgerEntry, LedgerHash
from .notes import Note, read_note

# So many tiles are remembered by one reader.
_MAX_REMEMBERED = 256


class IncompleteError(Exception):
    """The ledger has not the hashes that it should have: somebody has removed some."""


def make_reader(workspace_id: uuid.UUID) -> Read:
    """Reads the hashes of a workspace's tree, a tile of 256 at a time; tiles are remembered, as hashes never change."""
    known: dict[tuple[int, int], dict[int, bytes]] = {}

    def read(height: int, first: int, count: int) -> Sequence[bytes]:
        tile = height, first // TILE
        if first + count - 1 not in known.get(tile, ()):
            if len(known) >= _MAX_REMEMBERED:
                known.clear()
            known[tile] = _read_tile(workspace_id, *tile)
        found = [known[tile][index] for index in range(first, first + count) if index in known[tile]]
        if len(found) != count:
            raise IncompleteError(f"of {count} hashes from {first} on, at height {height}, {len(found)} are there")
        return found

    return read


def _read_tile(workspace_id: uuid.UUID, height: int, tile: int) -> dict[int, bytes]:
    within = {"workspace_id": workspace_id, "index__gte": tile * TILE, "index__lt": (tile + 1) * TILE}
    rows = (
        LedgerHash.objects.filter(height=height, **within).values_list("index", "hash")
        if height
        else LedgerEntry.objects.filter(**within).values_list("index", "leaf_hash")
    )
    return {index: bytes(found) for index, found in rows}


def get_checkpoint(workspace_id: uuid.UUID, size: int | None = None) -> LedgerCheckpoint | None:
    """The latest checkpoint of a workspace, or the one of a size; None where there is none."""
    rows = LedgerCheckpoint.objects.filter(workspace_id=workspace_id)
    return rows.filter(size=size).first() if size is not None else rows.order_by("-size").first()


def get_note(checkpoint: LedgerCheckpoint) -> Note:
    """The signed note of a checkpoint, with the lines of its witnesses."""
    note = read_note(checkpoint.note)
    rows = LedgerCosignature.objects.filter(workspace_id=checkpoint.workspace_id, size=checkpoint.size)
    lines = rows.order_by("pk").values_list("line", flat=True)
    return read_note(checkpoint.note + "".join(lines)) if lines else note


def find_entry(kind: str, subject: uuid.UUID) -> LedgerEntry | None:
    """The entry of a row; None while it has none."""
    return LedgerEntry.objects.filter(kind=kind, subject=subject).first()


def find_changed(kind: str, subjects: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Of these rows those that are not as they were entered, each with the index of its entry; in one statement.

    A row without an entry is not among them: it is entered some seconds after it was written.
    """
    table = BY_NAME[kind]
    entry = LedgerEntry.objects.filter(kind=kind, subject=OuterRef("subject"))
    entered = {name: Subquery(entry.values(name)[:1]) for name in ("index", "workspace_id", "leaf_hash")}
    beside = replace(table, columns={**table.columns, **{f"entry.{name}": each for name, each in entered.items()}})
    changed = {}
    for _, leaf in beside.read(beside.find([*subjects])):
        content = dict(leaf.content)
        index, workspace, hashed = (content.pop(f"entry.{name}") for name in entered)
        as_now = (str(leaf.workspace), hash_of(kind, leaf._replace(content=content)).hex())
        if index is not None and as_now != (workspace, hashed):
            changed[leaf.subject] = index
    return changed


def leaf_hash_of(kind: str, subject: OuterRef) -> Subquery:
    """What was entered of a row, as a column of another statement; None while nothing was."""
    return Subquery(LedgerEntry.objects.filter(kind=kind, subject=subject).values("leaf_hash")[:1])


def is_as_entered(record: Record, digest: bytes, leaf_hash: bytes) -> bool:
    """Whether a record that is loaded, of whose bytes this is the SHA-256, makes the leaf that was entered."""
    leaf = BY_NAME["record"].make(record, record.pk, source=digest)
    return hash_of("record", leaf) == bytes(leaf_hash)


def say_changed(kind: str, index: int) -> str:
    """That a row is not what was entered, in words."""
    return f"this {kind} was changed after it was entered in the ledger as entry {index:,}"
