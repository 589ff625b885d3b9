"""Verifying a ledger against what is there: each leaf is made again from its row, and each root from the leaves. On
request a worker does it, and its job keeps what came of it until it is asked for again.

What is found is named by its index. A root alone cannot say which leaf is another: of a ledger that was written anew as
a whole, the checkpoints of earlier sizes say between which two sizes it departs from what was signed.
"""

from __future__ import annotations

import uuid
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from sys import maxsize
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef

from inspector.intake import jobs
from inspector.intake.models import Job, Record
from inspector.intake.sealed import find_unreadable
from inspector.keyring.encryption import KeyringError
from inspector.retention.models import Erasure

from .kinds import BY_NAME, KINDS, Leaf, spell_leaf
from .merkle import EMPTY_ROOT, TILE, TILE_HEIGHT, compute_root, fold, hash_leaves, hash_node, join, read_from
from .models import LedgerCheckpoint, LedgerEntry, LedgerHash
from .notes import Note, NoteError, read_note
from .proofs import get_key, get_verifier

# So many entries are compared at once, and so many faults are named.
_BLOCK: Final = 2_000
MAX_FAULTS: Final = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as it was entered. `index` is the first entry it concerns; None where it has none."""

    index: int | None
    kind: str
    subject: uuid.UUID | None
    text: str

    def __str__(self) -> str:
        of = f", {self.kind} {self.subject}" if self.subject else ""
        return f"{'No entry' if self.index is None else f'Entry {self.index}'}{of}: {self.text}."


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared, and what was found; in the order of the entries."""

    size: int
    checkpoints: int
    waiting: int
    faults: Sequence[Fault]

    @property
    def holds(self) -> bool:
        """Whether everything is as it was entered and signed."""
        return not self.faults


class Roots:
    """The roots over growing numbers of leaves; of every 256 that are complete one hash is kept, or one for many."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._tiles = 0
        self._complete: list[tuple[int, bytes]] = []

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return self._tiles * TILE + len(self._pending)

    def extend(self, leaves: Sequence[bytes]) -> list[tuple[int, int, bytes]]:
        """Add hashes of leaves; the subtrees of 256 leaves or more that they complete, as (height, index, hash)."""
        pending = [*self._pending, *leaves]
        whole = len(pending) - len(pending) % TILE
        self._pending = pending[whole:]
        return [each for at in range(0, whole, TILE) for each in self._close_tile(pending[at : at + TILE])]

    def _close_tile(self, tile: Sequence[bytes]) -> list[tuple[int, int, bytes]]:
        height, found = TILE_HEIGHT, fold(tile)
        done = [(height, self._tiles, found)]
        while self._complete and self._complete[-1][0] == height:
            found = hash_node(self._complete.pop()[1], found)
            height += 1
            done.append((height, self._tiles >> (height - TILE_HEIGHT), found))
        self._complete.append((height, found))
        self._tiles += 1
        return done

    def compute(self) -> bytes:
        """The root over the leaves so far."""
        parts = [found for _, found in self._complete]
        if self._pending:
            parts.append(compute_root(read_from(self._pending), len(self._pending)))
        return join(parts) if parts else EMPTY_ROOT


def verify_ledger(workspace_id: uuid.UUID, *, exported: Sequence[str] = ()) -> Verification:
    """Compare the ledger of a workspace with its rows, its hashes and its checkpoints.

    Args:
        workspace_id: whose ledger.
        exported: signed notes that were kept elsewhere: what they vouch for must still be there.

    Raises:
        NoteError: where one of these is no checkpoint of this ledger.
    """
    return _Verifying(workspace_id, exported).run()


class _Verifying:
    def __init__(self, workspace_id: uuid.UUID, exported: Sequence[str]) -> None:
        self._workspace = workspace_id
        key = get_key()
        self._verifier = get_verifier(key, workspace_id) if key else None
        self._signed: dict[int, list[tuple[bytes, str]]] = defaultdict(list)
        self._faults: list[Fault] = []
        self._checkpoints = 0
        self._is_locked = False
        for note in exported:
            self._expect(read_note(note), "the exported checkpoint")
        rows = LedgerCheckpoint.objects.filter(workspace_id=workspace_id).order_by("size")
        for row in rows.iterator():
            try:
                self._expect(read_note(row.note), "the checkpoint", row)
            except NoteError as error:
                self._report(row.size, "", None, f"the checkpoint of this size is damaged: {error}")

    def run(self) -> Verification:
        roots, good = Roots(), 0
        stored = self._iterate_hashes()
        sizes = [*sorted(self._signed), maxsize]
        for block in self._iterate_blocks():
            hashes = self._compare_rows(block, roots.size)
            while hashes:
                # Up to the next size that was signed, of which the root is compared.
                many = sizes[bisect(sizes, roots.size)] - roots.size
                for height, index, found in roots.extend(hashes[:many]):
                    if height % TILE_HEIGHT == 0 and next(stored, None) != (height, index, found):
                        text = f"the stored hash of the {1 << height} entries from here on is missing, or another"
                        self._report(index << height, "", None, text)
                good, hashes = self._compare_roots(roots, good), hashes[many:]
            if roots.size <= block[-1][0].index:
                break
        for size in sorted(size for size in self._signed if size > roots.size):
            (_, whose), *_ = self._signed[size]
            text = f"{whose} vouches for {size} entries, and {roots.size} are there: the ledger was cut or rolled back"
            self._report(roots.size, "", None, text)
            break
        waiting = self._count_waiting()
        faults = sorted(self._faults, key=lambda fault: (fault.index is None, fault.index or 0))
        return Verification(roots.size, self._checkpoints, waiting, faults)

    def _compare_rows(self, block: Sequence[tuple[LedgerEntry, Leaf | None]], size: int) -> list[bytes]:
        """The hashes of these entries, each compared with what its row makes; up to a gap behind the first `size`."""
        hashes: list[bytes] = []
        made = hash_leaves(b"" if leaf is None else spell_leaf(entry.kind, leaf) for entry, leaf in block)
        for (entry, leaf), hashed in zip(block, made, strict=True):
            if entry.index != size + len(hashes):
                text = f"the entries from here to {entry.index - 1} are missing"
                self._report(size + len(hashes), "", None, text)
                break
            hashes.append(bytes(entry.leaf_hash))
            if leaf is None:
                self._report(entry.index, entry.kind, entry.subject, "its row was deleted")
            elif leaf.workspace != self._workspace or hashed != hashes[-1]:
                self._report(entry.index, entry.kind, entry.subject, "its row was changed after it was entered")
        return hashes

    def _expect(self, note: Note, whose: str, row: LedgerCheckpoint | None = None) -> None:
        point = note.checkpoint
        if self._verifier is None or self._verifier.find(note) is None:
            if row is None:
                raise NoteError("the exported checkpoint is not signed by the key of this ledger")
            self._report(point.size, "", None, f"{whose} of this size is not signed by the key of this ledger")
        elif row is not None and (row.size, bytes(row.root)) != (point.size, point.root):
            self._report(row.size, "", None, f"{whose} of this size has another size or root than its signed note")
        self._signed[point.size].append((point.root, whose))
        self._checkpoints += 1

    def _compare_roots(self, roots: Roots, good: int) -> int:
        """Compare the root at a size with what was signed of it; the largest size so far at which it was the same."""
        if roots.size not in self._signed:
            return good
        found = roots.compute()
        for root, whose in self._signed[roots.size]:
            if root != found:
                text = f"{whose} of {roots.size} entries was signed for other entries"
                known = [
                    each.index for each in self._faults if each.index is not None and good <= each.index < roots.size
                ]
                moved = None if known else self._find_moved(good, roots.size, root)
                if moved is not None:
                    known, text = [moved], f"{text}: from here on they were put into another order"
                where = "" if known else f": the first that differs is one from {good} to {roots.size - 1}"
                self._report(min(known, default=good), "", None, f"{text}{where}")
                return good
        return roots.size

    def _find_moved(self, good: int, size: int, root: bytes) -> int | None:
        """The first entry from `good` on that another had the index of; None where they were not just moved.

        Each pass enters rows by their ids. Where that order gives the signed root, it was the order.
        """
        rows = LedgerEntry.objects.filter(workspace_id=self._workspace, index__lt=size)
        before = rows.filter(index__lt=good).order_by("index").values_list("index", "leaf_hash")
        after = [*rows.filter(index__gte=good).order_by("entered_at", "subject").values_list("index", "leaf_hash")]
        roots = Roots()
        roots.extend([bytes(leaf) for _, leaf in (*before, *after)])
        moved = (at for at, (index, _) in enumerate(after, good) if index != at)
        return next(moved, None) if roots.compute() == root else None

    def _iterate_blocks(self) -> Iterator[list[tuple[LedgerEntry, Leaf | None]]]:
        """Entries with the leaves that their rows make now, block by block; None where the row is gone."""
        after = -1
        while True:
            rows = LedgerEntry.objects.filter(workspace_id=self._workspace, index__gt=after).order_by("index")
            block = [*rows[:_BLOCK]]
            if not block:
                return
            by_kind: Mapping[str, dict[uuid.UUID, Leaf]] = {
                name: _read_leaves(name, [entry.subject for entry in block if entry.kind == name])
                for name in {entry.kind for entry in block}
            }
            self._open_sealed({entry.subject: entry.index for entry in block if entry.kind == "record"})
            yield [(entry, by_kind[entry.kind].get(entry.subject)) for entry in block]
            after = block[-1].index

    def _open_sealed(self, records: Mapping[uuid.UUID, int]) -> None:
        """Open what is sealed, for its leaf is made of the digest that it says. A destroyed key has an erasure."""
        try:
            found = find_unreadable(records.keys())
        except KeyringError as error:
            if not self._is_locked:
                self._report(None, "", None, f"sealed records cannot be opened and compared: {error}")
            self._is_locked = True
            return
        by_key = Erasure.objects.filter(kind=Erasure.Kind.PERIOD, target=OuterRef("sealed_with"))
        gone = [pk for pk, error in found.items() if error.is_destroyed]
        destroyed = Record.objects.filter(Exists(by_key), pk__in=gone)
        for subject in found.keys() - set(destroyed.values_list("pk", flat=True)):
            self._report(records[subject], "record", subject, str(found[subject]))

    def _iterate_hashes(self) -> Iterator[tuple[int, int, bytes]]:
        """The stored hashes in the order in which a growing tree completes them."""
        rows = LedgerHash.objects.filter(workspace_id=self._workspace)
        found = [(row.height, row.index, bytes(row.hash)) for row in rows.iterator()]
        return iter(sorted(found, key=lambda row: (((row[1] + 1) << row[0]), row[0])))

    def _count_waiting(self) -> int:
        """How many rows have no entry yet. A few are normal: they are entered some seconds after they were written."""
        return sum(
            kind.rows.filter(**{kind.workspace: self._workspace})
            .filter(~Exists(LedgerEntry.objects.filter(kind=kind.name, subject=OuterRef("subject"))))
            .count()
            for kind in KINDS
        )

    def _report(self, index: int | None, kind: str, subject: uuid.UUID | None, text: str) -> None:
        if len(self._faults) < MAX_FAULTS:
            self._faults.append(Fault(index, kind, subject, text))


def _read_leaves(name: str, subjects: Sequence[uuid.UUID]) -> dict[uuid.UUID, Leaf]:
    kind = BY_NAME.get(name)
    return {leaf.subject: leaf for _, leaf in kind.read(kind.find(subjects))} if kind else {}


# So many faults are kept; the first says where to begin.
MAX_KEPT: Final = 20


@transaction.atomic
def ask_to_verify(*, workspace_id: uuid.UUID) -> None:
    """Let a worker verify the ledger of a workspace."""
    jobs.ask(kind=Job.Kind.VERIFY, subjects=[workspace_id], workspace_id=workspace_id)
    jobs.wake_workers()


def verify(job: Job) -> None:
    """Verify the ledger of the job's workspace, and keep what was found.

    Raises:
        LostLeaseError: if the lease has passed to another worker.
    """
    at = datetime.now(UTC)
    found = verify_ledger(job.workspace_id)
    kept = [[each.index, each.kind, str(each.subject or ""), each.text] for each in found.faults[:MAX_KEPT]]
    with jobs.together(job):
        jobs.checkpoint(job, {
            "at": at.isoformat(), "size": found.size, "checkpoints": found.checkpoints, "waiting": found.waiting,
            "count": len(found.faults), "faults": kept,
        })  # fmt: skip
        jobs.finish(job)


def find_checked(*, workspace_id: uuid.UUID) -> dict[str, Any] | None:
    """What came of the latest verification of a workspace's ledger; None where nobody has asked for one.

    Returns:
        Whether another one `is_under_way`, and the `failure` of one that could not be done. Of one that was done, `at`,
        `size`, `checkpoints`, `waiting`, and how many faults there are: `count`, whether that `has_more`, and of the
        first `MAX_KEPT` of them `index`, `kind`, `subject` and `text`.
    """
    job = Job.objects.filter(kind=Job.Kind.VERIFY, subject=workspace_id).first()
    if job is None:
        return None
    found = {
        "is_under_way": job.state in (Job.State.QUEUED, Job.State.RUNNING),
        "failure": job.failure if job.state == Job.State.DEAD else "",
    }
    if kept := job.checkpoint:
        names = ("index", "kind", "subject", "text")
        found |= kept | {
            "at": datetime.fromisoformat(kept["at"]),
            "has_more": kept["count"] >= MAX_FAULTS,
            "faults": [dict(zip(names, each, strict=True)) for each in kept["faults"]],
        }
    return found
