"""Reading a ledger: its hashes as a tree, its entries, its checkpoints, and whether what is shown as evidence is what
was entered of it, so that no changed row passes as genuine.

And proofs: that an entry is in the tree of a checkpoint, that a later tree begins with an earlier one; witnesses; where
evidence stands in the ledger, for those who look at it; and a checkpoint as a code to keep on paper.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import segno
from django.db.models import Max, OuterRef, Subquery
from django.db.models.functions import JSONObject
from django.utils.safestring import SafeString

from inspector.accounts.models import Membership
from inspector.audit.models import Review
from inspector.audit.reviews.bindings import list_told_deeds, select_open
from inspector.intake.models import Record
from inspector.trail.services import Wanted

from .kinds import BY_NAME, describe_leaf, hash_of
from .merkle import TILE, Read, compute_root, prove_consistency, prove_inclusion, verify_inclusion
from .models import LedgerCheckpoint, LedgerCosignature, LedgerEntry, LedgerHash, LedgerKey
from .notes import COSIGNATURE, Note, NoteError, Verifier, read_note, read_verifier

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
    return {subject: index for subject, index, is_changed, _ in _compare(kind, subjects) if is_changed}


def find_entries(kind: str, subjects: Collection[uuid.UUID]) -> tuple[dict[uuid.UUID, Place], dict[uuid.UUID, int]]:
    """Where those of these rows stand that are entered, and which are changed, as `find_changed`; in one statement."""
    found = list(_compare(kind, subjects, place=place_of(kind, OuterRef("subject"))))
    places = {subject: Place(**said["place"]) for subject, _, _, said in found}
    return places, {subject: index for subject, index, is_changed, _ in found if is_changed}


def _compare(
    kind: str, subjects: Collection[uuid.UUID], **beside: Subquery
) -> Iterator[tuple[uuid.UUID, int, bool, Mapping[str, Any]]]:
    """Of each row that is entered the index of its entry, whether it is otherwise now, and what else is asked."""
    table = BY_NAME[kind]
    entry = LedgerEntry.objects.filter(kind=kind, subject=OuterRef("subject"))
    entered = {name: Subquery(entry.values(name)[:1]) for name in ("index", "workspace_id", "leaf_hash")} | beside
    wider = replace(table, columns={**table.columns, **{f"entry.{name}": each for name, each in entered.items()}})
    for _, leaf in wider.read(wider.find([*subjects])):
        content = dict(leaf.content)
        said = {name: content.pop(f"entry.{name}") for name in entered}
        as_now = (str(leaf.workspace), hash_of(kind, leaf._replace(content=content)).hex())
        if said["index"] is not None:
            yield leaf.subject, said["index"], as_now != (said["workspace_id"], said["leaf_hash"]), said


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


def get_key() -> LedgerKey | None:
    """The installation's key; None before the first checkpoint."""
    return LedgerKey.objects.order_by("pk").first()


def name_origin(key: LedgerKey, workspace_id: uuid.UUID) -> str:
    """What names the ledger of a workspace in its checkpoints, and the key in their signatures."""
    return f"{key.name}/ledger/{workspace_id}"


def get_verifier(key: LedgerKey, workspace_id: uuid.UUID) -> Verifier:
    """The public key, by which anybody can verify a workspace's checkpoints."""
    return Verifier(name_origin(key, workspace_id), bytes(key.public))


def get_size(workspace_id: uuid.UUID) -> int:
    """How many entries the ledger of a workspace has."""
    last = LedgerEntry.objects.filter(workspace_id=workspace_id).aggregate(last=Max("index"))["last"]
    return 0 if last is None else last + 1


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
        deeds = list_told_deeds(workspace_id=workspace_id, wanted=Wanted(), reader=reader)
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


MAX_FOUND: Final = 10
MAX_WITNESSES: Final = 20


@dataclass(frozen=True, slots=True)
class Place:
    """An entry by its index, and the first checkpoint that has it: its size and signed note; None until then."""

    index: int
    size: int | None
    note: str | None

    @property
    def root(self) -> str:
        """The root that is signed, in Base64; empty until it is."""
        return [*(self.note or "").split("\n"), "", "", ""][2]


def place_of(kind: str, subject: OuterRef) -> Subquery:
    """Where a row stands in its workspace's ledger, as a column of another statement: an object with the names of a
    `Place`; None while it is not entered."""
    later = LedgerCheckpoint.objects.filter(workspace=OuterRef("workspace"), size__gt=OuterRef("index"))
    first = {name: Subquery(later.order_by("size").values(name)[:1]) for name in ("size", "note")}
    rows = LedgerEntry.objects.filter(kind=kind, subject=subject).annotate(**first)
    return Subquery(rows.values(place=JSONObject(index="index", size="size", note="note"))[:1])


def look_up(checkpoint: LedgerCheckpoint, asked: str, *, reader: Membership) -> Sequence[Mapping[str, Any]]:
    """The entries that an index or the id of a row names, each proven by a checkpoint from its row as it is now.

    Of each its `index`, `kind` and `subject`, by how many `hashes` it is proven, and else `why_not`.

    Of what a blind review keeps from the reader nothing is found.
    """
    rows = LedgerEntry.objects.filter(workspace_id=checkpoint.workspace_id)
    number = asked.replace(",", "")
    if number.isascii() and number.isdigit() and len(number) < 16:
        rows = rows.filter(index=int(number))
    else:
        try:
            rows = rows.filter(subject=uuid.UUID(asked))
        except ValueError:
            return ()
    return [
        _prove(checkpoint, entry)
        for entry in rows.order_by("index")[:MAX_FOUND]
        if entry.kind not in BY_NAME
        or is_told(entry.kind, entry.subject, workspace_id=checkpoint.workspace_id, reader=reader)
        or not BY_NAME[entry.kind].find([entry.subject]).exists()
    ]


def _prove(checkpoint: LedgerCheckpoint, entry: LedgerEntry) -> Mapping[str, Any]:
    kind = BY_NAME.get(entry.kind)
    leaves = [leaf for _, leaf in kind.read(kind.find([entry.subject]))] if kind else []
    proof: Sequence[bytes] = ()
    if entry.index >= checkpoint.size:
        why_not = "no checkpoint has it yet; the next one will, within seconds"
    elif not leaves:
        why_not = "its row was deleted"
    else:
        try:
            proof = prove_inclusion(make_reader(checkpoint.workspace_id), entry.index, checkpoint.size)
        except IncompleteError:
            proof = ()
        root, leaf = bytes(checkpoint.root), hash_of(entry.kind, leaves[0])
        is_good = verify_inclusion(leaf, entry.index, checkpoint.size, proof, root)
        why_not = "" if is_good else "its row is not what was entered, or entries of the ledger were changed"
    shown = {"index": entry.index, "kind": entry.kind, "subject": entry.subject}
    return {**shown, "hashes": len(proof), "why_not": why_not}


@dataclass(frozen=True, slots=True)
class Compared:
    """What the ledger says to a checkpoint that somebody kept; `why_not` is empty where it continues it."""

    size: int | None
    why_not: str


def compare_kept(*, workspace_id: uuid.UUID, text: str) -> Compared:
    """Whether the ledger of a workspace, as it is now, begins with what a checkpoint was signed for."""
    key, size = get_key(), get_size(workspace_id)
    try:
        note = read_note(f"{text.strip()}\n".replace("\r\n", "\n"))
        kept = note.checkpoint
    except NoteError as error:
        return Compared(None, f"it cannot be read: {error}")
    # One key signs the ledgers of all workspaces, and the name in its line is no part of what is signed.
    own = get_verifier(key, workspace_id) if key else None
    if own is None or own.find(note) is None or kept.origin != own.name:
        return Compared(kept.size, "the key of this ledger did not sign it")
    if kept.size > size:
        return Compared(kept.size, f"only {size:,} entries are there: the ledger was cut or rolled back")
    try:
        is_same = compute_root(make_reader(workspace_id), kept.size) == kept.root
    except IncompleteError:
        is_same = False
    return Compared(kept.size, "" if is_same else "an entry before its end was changed, removed, inserted or moved")


def list_witnesses(*, workspace_id: uuid.UUID) -> Sequence[LedgerCosignature]:
    """The latest cosignature of each witness of a workspace's ledger."""
    rows = LedgerCosignature.objects.filter(workspace_id=workspace_id)
    return list(rows.order_by("verifier", "-size").distinct("verifier")[:MAX_WITNESSES])


def write_note(checkpoint: LedgerCheckpoint) -> str:
    """The note of a checkpoint with its witnesses; one that was tampered with as it is, for others to see."""
    try:
        return str(get_note(checkpoint))
    except NoteError:
        return checkpoint.note


def draw_note(note: str, *, is_alone: bool = False) -> SafeString:
    """A signed checkpoint as a QR code in SVG, black on white in every theme: what a telephone reads is the note.

    Args:
        note: its text.
        is_alone: whether it is a file of its own, and not a part of a page.
    """
    drawn = io.BytesIO()
    try:
        code = segno.make(note, error="l", encoding="utf-8", micro=False)
    except segno.DataOverflowError:
        return SafeString("")  # It was tampered with: no checkpoint is so long.
    code.save(
        drawn, kind="svg", border=4, dark="#000", light="#fff", omitsize=True, svgclass=None, lineclass=None,
        xmldecl=False, svgns=is_alone, nl=False,
    )  # fmt: skip
    # Drawn from dots: no text of the note is in it.
    return SafeString(drawn.getvalue().decode())
