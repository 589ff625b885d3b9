"""Comparing what is about to be shown as evidence with what was entered of it, so that no changed row passes as genuine."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from .kinds import BY_NAME, hash_of
from .models import LedgerEntry


def find_changed(kind: str, subjects: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Of these rows those that are not as they were entered, each with the index of its entry; in two statements.

    A row without an entry is not among them: it is entered some seconds after it was written.
    """
    entries = {entry.subject: entry for entry in LedgerEntry.objects.filter(kind=kind, subject__in=subjects)}
    table = BY_NAME[kind]
    return {
        leaf.subject: entries[leaf.subject].index
        for _, leaf in (table.read(table.find([*entries])) if entries else ())
        if leaf.workspace != entries[leaf.subject].workspace_id
        or hash_of(kind, leaf) != bytes(entries[leaf.subject].leaf_hash)
    }


def say_changed(kind: str, index: int) -> str:
    """That a row is not what was entered, in words."""
    return f"this {kind} was changed after it was entered in the ledger as entry {index:,}"
