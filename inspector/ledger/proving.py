"""Proofs: that an entry is in the tree of a checkpoint, that a later tree begins with an earlier one; and witnesses."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from inspector.accounts.models import Membership
from inspector.audit.models import Review
from inspector.audit.reviews.bindings import select_open
from inspector.audit.trail import list_deeds_for, list_told_deeds
from inspector.trail.selectors import Wanted

from .kinds import BY_NAME, describe_leaf
from .merkle import compute_root, prove_consistency, prove_inclusion
from .models import LedgerCheckpoint, LedgerCosignature
from .notes import COSIGNATURE, NoteError, read_note, read_verifier
from .selectors import find_entry, get_checkpoint, make_reader


@dataclass(frozen=True, slots=True)
class Inclusion:
    """That a row's leaf stands at an index of a checkpoint's tree. `leaf` is made of the row as it is now."""

    kind: str
    subject: uuid.UUID
    index: int
    leaf: dict[str, Any]
    content: dict[str, Any]
    path: list[bytes]


def prove_entry(checkpoint: LedgerCheckpoint, *, kind: str, subject: uuid.UUID) -> Inclusion | None:
    """The proof for a row's entry; None where the checkpoint's tree has none of it, or the row is gone.

    Raises:
        IncompleteError: where hashes of the ledger are missing.
    """
    entry = find_entry(kind, subject)
    if entry is None or entry.workspace_id != checkpoint.workspace_id or entry.index >= checkpoint.size:
        return None
    table = BY_NAME[kind]
    for _, leaf in table.read(table.find([subject])):
        path = prove_inclusion(make_reader(checkpoint.workspace_id), entry.index, checkpoint.size)
        return Inclusion(kind, subject, entry.index, describe_leaf(kind, leaf), dict(leaf.content), path)
    return None


def is_told(kind: str, subject: uuid.UUID, *, workspace_id: uuid.UUID, reader: Membership | None = None) -> bool:
    """Whether a reader may know of an entry: of none that tells of a review by two that is still blind.

    Args:
        reader: who reads; one knows what one said oneself. None is anybody.
    """
    if BY_NAME[kind].model is Review:
        own = reader.user_id if reader else None
        return select_open(Review.objects.filter(pk=subject), reader_id=own).exists()
    if kind == "action":
        wanted = Wanted()
        deeds = (
            list_deeds_for(membership=reader, wanted=wanted)
            if reader
            else list_told_deeds(workspace_id=workspace_id, wanted=wanted)
        )
        return deeds.filter(pk__in=BY_NAME[kind].find([subject]).values("pk")).exists()
    return True


def prove_growth(checkpoint: LedgerCheckpoint, old: int) -> tuple[bytes, list[bytes]]:
    """The root at an earlier size, and the proof that the checkpoint's tree begins with it.

    Raises:
        IncompleteError: where hashes of the ledger are missing.
    """
    read = make_reader(checkpoint.workspace_id)
    return compute_root(read, old), prove_consistency(read, old, checkpoint.size)


def add_cosignature(*, workspace_id: uuid.UUID, note: str, key: str) -> LedgerCheckpoint | None:
    """Keep what a witness signed of a checkpoint; None where there is no checkpoint of that size.

    Whether a witness is to be trusted is decided by whoever verifies the note: its public key is kept beside the line.

    Args:
        workspace_id: whose ledger.
        note: the checkpoint's note with the witness's line under it.
        key: the witness's public key, as name+id+key.

    Raises:
        NoteError: where the note is another than the ledger signed, or no line of it is this key's.
    """
    verifier, given = read_verifier(key), read_note(note)
    if verifier.kind != COSIGNATURE:
        raise NoteError("the key is not one of a witness")
    checkpoint = get_checkpoint(workspace_id, given.checkpoint.size)
    if checkpoint is None:
        return None
    if read_note(checkpoint.note).text != given.text:
        raise NoteError("the note is not the checkpoint that this ledger signed for that size")
    found = verifier.find(given)
    if found is None:
        raise NoteError("no line under the note is a cosignature of this key")
    LedgerCosignature.objects.get_or_create(
        workspace_id=workspace_id,
        size=checkpoint.size,
        verifier=str(verifier),
        defaults={"witness": verifier.name, "line": found.line},
    )
    return checkpoint
