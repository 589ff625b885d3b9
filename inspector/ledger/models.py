"""The ledger of a workspace: its entries, the hashes above them, checkpoints, and what witnesses signed.

Triggers refuse to change, delete or truncate these tables, and the application's role may only add to them where
another role owns them (docs/trail.md, docs/proofs.md).
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from inspector.accounts.models import Workspace


class LedgerEntry(models.Model):
    """That a row was there: its kind and id, and the hash of the leaf that is made of it. See `kinds`.

    Indexes of a workspace begin with 0 and have no gap. The leaf itself is not kept: it is made again from the row.
    """

    pk = models.CompositePrimaryKey("workspace", "index")
    # Written by the thousand: what it refers to is never deleted, and is not looked up for each.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, db_index=False, db_constraint=False, related_name="+"
    )
    index = models.BigIntegerField()
    kind = models.CharField(max_length=24)
    subject = models.UUIDField()
    leaf_hash = models.BinaryField(max_length=32)
    entered_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # Serves: which entry is this row's? And lets no row be entered twice.
        constraints = [models.UniqueConstraint(fields=["subject", "kind"], name="ledger_entry_once")]

    def __str__(self) -> str:
        return f"{self.index}: {self.kind} {self.subject}"


class LedgerHash(models.Model):
    """The hash over a complete subtree of 2**height leaves, for heights 8, 16, 24…; entries have those of height 0."""

    pk = models.CompositePrimaryKey("workspace", "height", "index")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, db_index=False, related_name="+")
    height = models.SmallIntegerField()
    index = models.BigIntegerField()
    hash = models.BinaryField(max_length=32)

    def __str__(self) -> str:
        return f"{self.height}/{self.index}"


class LedgerCheckpoint(models.Model):
    """The root over the first `size` entries, and the note that the ledger's key signed of it."""

    pk = models.CompositePrimaryKey("workspace", "size")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, db_index=False, related_name="+")
    size = models.BigIntegerField()
    root = models.BinaryField(max_length=32)
    note = models.TextField()
    signed_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.note


class LedgerCosignature(models.Model):
    """A line that a witness signed under a checkpoint: it saw it, and none that contradicts it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, db_index=False, related_name="+")
    size = models.BigIntegerField()
    witness = models.CharField(max_length=256)
    verifier = models.TextField()
    line = models.TextField()
    added_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Serves the cosignatures of a checkpoint; a witness signs one once.
            models.UniqueConstraint(fields=["workspace", "size", "verifier"], name="ledger_cosignature_once")
        ]

    def __str__(self) -> str:
        return self.line


class LedgerKey(models.Model):
    """The key that signs checkpoints, made once; its private part is sealed as the keyring seals its keys."""

    name = models.CharField(max_length=64, unique=True)
    public = models.BinaryField(max_length=32)
    sealed = models.BinaryField(max_length=64)
    made_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.name
