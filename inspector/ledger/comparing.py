"""Comparing what is shown as evidence with what was entered of it, so that no changed row passes as genuine."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import replace

from django.db.models import OuterRef, Subquery

from inspector.intake.models import Record

from .kinds import BY_NAME, hash_of
from .models import LedgerEntry


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
