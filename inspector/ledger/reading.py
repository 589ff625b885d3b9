"""Reading a ledger: its hashes as a tree, its entries, and its checkpoints."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from .merkle import Read
from .models import LedgerCheckpoint, LedgerCosignature, LedgerEntry, LedgerHash
from .notes import Note, read_note

# Of so many stretches of hashes what was read is remembered, by one reader.
_MAX_REMEMBERED = 4_096


class IncompleteError(Exception):
    """The ledger has not the hashes that it should have: somebody has removed some."""


def make_reader(workspace_id: uuid.UUID) -> Read:
    """Reads the hashes of a workspace's tree; what it has read it remembers, as hashes never change."""
    known: dict[tuple[int, int, int], Sequence[bytes]] = {}

    def read(height: int, first: int, count: int) -> Sequence[bytes]:
        key = (height, first, count)
        if key not in known:
            if len(known) >= _MAX_REMEMBERED:
                known.clear()
            known[key] = _read_hashes(workspace_id, height, first, count)
        return known[key]

    return read


def _read_hashes(workspace_id: uuid.UUID, height: int, first: int, count: int) -> Sequence[bytes]:
    within = {"workspace_id": workspace_id, "index__gte": first, "index__lt": first + count}
    rows = (
        LedgerHash.objects.filter(height=height, **within).order_by("index").values_list("hash", flat=True)
        if height
        else LedgerEntry.objects.filter(**within).order_by("index").values_list("leaf_hash", flat=True)
    )
    hashes = [bytes(each) for each in rows]
    if len(hashes) != count:
        raise IncompleteError(f"of {count} hashes from {first} on, at height {height}, {len(hashes)} are there")
    return hashes


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
