"""Proof bundles: what somebody needs to verify a workspace or a conversation without the server, as a zip in a stream.

docs/proofs.md has the form. A bundle says no more than its reader may know: no verdict that is still blind, no text
that was withdrawn, for a viewer the records and the verdicts alone, and exact bytes and English only where they were
asked for by somebody who may have them. What it leaves out is counted by whoever verifies it.

Memory does not grow with the workspace: entries go by in batches, and of a conversation the indexes are held.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import uuid
import zipfile
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any, Final, TypeVar

from django.db.models import Exists, OuterRef, QuerySet

from inspector.accounts.models import Membership, Workspace
from inspector.audit.models import Comment, CommentTurn, FindingAct, Review
from inspector.audit.models.reviews import Binding
from inspector.audit.reviews.bindings import (
    Line,
    list_told_deeds,
    read_bound,
    read_lines,
    select_open,
    select_told,
)
from inspector.database import cut_windows
from inspector.intake.models import Record, Sighting, Withdrawal
from inspector.intake.sealed import clear_length, find_unreadable
from inspector.retention.models import Tombstone
from inspector.retention.services import find_tombstones
from inspector.threads.models import Conversation, Message
from inspector.trail.services import Thing, Wanted, record_deed

from .kinds import BY_NAME, describe_leaf
from .merkle import HASH_BYTES, prove_inclusion
from .models import LedgerCheckpoint, LedgerEntry
from .proofs import IncompleteError, get_checkpoint, get_key, get_verifier, make_reader, name_origin, write_note

T = TypeVar("T")

FORMAT: Final = "inspector-bundle/1"
_BATCH: Final = 500
_LEAVES: Final = 4096
_WINDOW_BYTES: Final = 8 * 1024 * 1024
# About what a hash of a proof takes in a line.
_PROOF_HASH_BYTES: Final = 47
# What a viewer may know of: a record by its digests, and verdicts.
_OPEN_KINDS: Final = ("record", "verdict", "erasure")


class NoCheckpointError(Exception):
    """The ledger of the workspace has no checkpoint yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What is to be in a bundle, and for whom.

    `membership` is whose knowledge it is cut to; None is the operator, who has the database. `is_exact` asks for bytes
    and English; whoever may not see secrets gets neither.
    """

    workspace: Workspace
    checkpoint: LedgerCheckpoint
    conversation: Conversation | None
    membership: Membership | None
    is_exact: bool

    @property
    def file_name(self) -> str:
        """What the file is called."""
        about = f"conversation-{self.conversation.pk.hex[-12:]}" if self.conversation else self.workspace.slug
        return f"proof-{about}-{self.checkpoint.size}.zip"


def make_bundle(
    *,
    workspace: Workspace,
    conversation: Conversation | None = None,
    membership: Membership | None = None,
    is_exact: bool = False,
) -> Bundle:
    """A bundle of the latest checkpoint, of all the workspace or one of its conversations.

    Raises:
        NoCheckpointError: where there is none yet.
    """
    checkpoint = get_checkpoint(workspace.pk)
    if checkpoint is None:
        raise NoCheckpointError("The ledger has no checkpoint yet: the first one is signed within seconds.")
    return Bundle(
        workspace=workspace,
        checkpoint=checkpoint,
        conversation=conversation,
        membership=membership,
        is_exact=is_exact and (membership is None or membership.is_auditor),
    )


def note_bundle(bundle: Bundle) -> None:
    """Record that somebody takes a bundle; call it before the first byte is given."""
    record_deed(
        "bundle.made",
        workspace_id=bundle.workspace.pk,
        on=Thing("proof bundle", "", bundle.file_name),
        about=[bundle.conversation.pk] if bundle.conversation else [],
        details={"include_secrets": bundle.is_exact, "is_masked": not bundle.is_exact, "size": bundle.checkpoint.size},
    )


class _Sink(io.RawIOBase):
    """Takes what is written to it; `take` gives it away."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data, self.parts = b"".join(self.parts), []
        return data


def write_bundle(bundle: Bundle) -> Iterator[bytes]:
    """The zip, in pieces; the manifest, which lists the digests of the files, stands at its end."""
    indexes = _select_indexes(bundle)
    has_leaves = _has_leaves(bundle, indexes)
    files: list[tuple[str, Iterable[bytes]]] = [
        ("checkpoint.txt", [write_note(bundle.checkpoint).encode()]),
        ("entries.jsonl", _write_entries(bundle, indexes, has_proofs=not has_leaves)),
        *([("records.bin", _read_sources(bundle, indexes))] if bundle.is_exact else []),
        ("english.jsonl", _write_english(bundle)),
        *([("leaves.bin", _read_leaves(bundle))] if has_leaves else []),
    ]
    sink, digests = _Sink(), {}
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for name, pieces in files:
            digest = hashlib.sha256()
            with target.open(_name_member(name), "w", force_zip64=True) as member:
                for piece in pieces:
                    member.write(piece)
                    digest.update(piece)
                    if written := sink.take():
                        yield written
            digests[name] = digest.hexdigest()
        target.writestr(_name_member("manifest.json"), json.dumps(_make_manifest(bundle, digests), indent=1))
    yield sink.take()


def _name_member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, datetime.now(UTC).timetuple()[:6])
    member.compress_type = zipfile.ZIP_STORED if name == "leaves.bin" else zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    return member


def _make_manifest(bundle: Bundle, digests: dict[str, str]) -> dict[str, Any]:
    key = get_key()
    return {
        "format": FORMAT,
        "subject": "conversation" if bundle.conversation else "workspace",
        "id": str(bundle.conversation.pk if bundle.conversation else bundle.workspace.pk),
        "workspace": bundle.workspace.slug,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "origin": name_origin(key, bundle.workspace.pk) if key else "",
        "size": bundle.checkpoint.size,
        "verifier_key": str(get_verifier(key, bundle.workspace.pk)) if key else "",
        "has_exact_bytes": bundle.is_exact,
        "files": digests,
    }


def _select_indexes(bundle: Bundle) -> Sequence[int]:
    """Of which entries the bundle is, in their order."""
    if bundle.conversation is None:
        return range(bundle.checkpoint.size)
    found = array("q")
    for kind, subjects in _list_subjects(bundle, bundle.conversation).items():
        for some in _cut(subjects):
            found.extend(_list_entered(bundle, kind, some).values_list("index", flat=True))
    return array("q", sorted(set(found)))


def _cut(items: Iterable[T]) -> Iterator[list[T]]:
    source = iter(items)
    return iter(lambda: list(islice(source, _BATCH)), [])


def _list_entered(bundle: Bundle, kind: str, subjects: Collection[uuid.UUID]) -> QuerySet[LedgerEntry]:
    """The entries of these rows that the checkpoint has."""
    rows = LedgerEntry.objects.filter(workspace_id=bundle.workspace.pk, index__lt=bundle.checkpoint.size)
    return rows.filter(kind=kind, subject__in=subjects)


def _list_subjects(bundle: Bundle, conversation: Conversation) -> dict[str, Iterable[uuid.UUID]]:
    """The subjects of the entries that a conversation is about, kind by kind."""
    messages = Message.objects.filter(conversation=conversation)
    records = messages.values("record")
    deliveries = Sighting.objects.filter(record__in=records).values("delivery")
    withdrawals = Withdrawal.objects.filter(delivery__in=deliveries)
    rows: dict[str, QuerySet[Any]] = {
        "withdrawal": withdrawals,
        "withdrawal-undone": withdrawals,
        "verdict": Review.objects.filter(conversation=conversation),
        "comment": Comment.objects.filter(record__in=records),
        "comment-turn": CommentTurn.objects.filter(comment__record__in=records),
        "finding-act": FindingAct.objects.filter(finding__conversation=conversation),
        "action": _list_deeds(bundle, about=conversation.pk),
    }
    subjects = {
        kind: found.order_by()
        .annotate(entered_as=BY_NAME[kind].subject)
        .values_list("entered_as", flat=True)
        .iterator()
        for kind, found in rows.items()
    }
    # By what the messages name: the entry of a record that is gone is in the bundle, and says so.
    tombstones = Tombstone.objects.filter(about__contains=[conversation.pk])
    named = messages.order_by().values_list("record_id", flat=True).iterator()
    erased = tombstones.values_list("subject", flat=True).iterator()
    erasures = tombstones.values_list("erasure", flat=True).distinct().iterator()
    return {"record": chain(named, erased), "erasure": erasures, **subjects}


def _list_deeds(bundle: Bundle, about: uuid.UUID | None = None) -> QuerySet[Any]:
    return list_told_deeds(workspace_id=bundle.workspace.pk, wanted=Wanted(about=about), reader=bundle.membership)


def _may_know(bundle: Bundle, kind: str) -> bool:
    return bundle.membership is None or bundle.membership.is_auditor or kind in _OPEN_KINDS


def _narrow(bundle: Bundle, kind: str, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Those rows of a kind that the bundle's reader may know of."""
    if not _may_know(bundle, kind):
        return rows.none()
    narrow = _NARROWED.get(kind)
    return narrow(bundle, rows) if narrow else rows


def _narrow_verdicts(bundle: Bundle, rows: QuerySet[Review]) -> QuerySet[Review]:
    return select_told(rows, reader_id=_find_reader(bundle))


def _find_reader(bundle: Bundle) -> int | None:
    return bundle.membership.user_id if bundle.membership else None


def _narrow_comments(bundle: Bundle, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Without those whose words were withdrawn."""
    withdrawals = CommentTurn.objects.filter(kind=CommentTurn.Kind.WITHDRAWN)
    own = withdrawals.filter(comment=OuterRef("pk"), of=None)
    return rows.exclude(Exists(own if rows.model is Comment else withdrawals.filter(of=OuterRef("pk"))))


_NARROWED: Final[dict[str, Callable[[Bundle, QuerySet[Any]], QuerySet[Any]]]] = {
    "verdict": _narrow_verdicts,
    "verdict-withdrawn": lambda bundle, rows: select_open(rows, reader_id=_find_reader(bundle)),
    "action": lambda bundle, rows: rows.filter(pk__in=_list_deeds(bundle).order_by().values("pk")),
    "comment": _narrow_comments,
    "comment-turn": _narrow_comments,
}


def _has_leaves(bundle: Bundle, indexes: Sequence[int]) -> bool:
    """Whether the hashes of all leaves are in the bundle, and no proofs: always of a workspace, else the shorter."""
    size = bundle.checkpoint.size
    return bundle.conversation is None or size * HASH_BYTES < len(indexes) * size.bit_length() * _PROOF_HASH_BYTES


def _write_entries(bundle: Bundle, indexes: Sequence[int], *, has_proofs: bool) -> Iterator[bytes]:
    """A line for each entry that may be told: its leaf and content as its row says now, and its proof."""
    read = make_reader(bundle.workspace.pk)
    for at in range(0, len(indexes), _BATCH):
        entries = _read_batch(bundle, indexes[at : at + _BATCH])
        kept = _load_leaves(bundle, entries)
        for index, kind, subject in entries:
            if (kind, subject) not in kept:
                continue
            line = {"index": index, **kept[kind, subject]}
            if has_proofs:
                try:
                    proof = prove_inclusion(read, index, bundle.checkpoint.size)
                except IncompleteError:
                    proof = []
                line["proof"] = [base64.b64encode(each).decode() for each in proof]
            yield _write_line(line)


def _read_batch(bundle: Bundle, indexes: Sequence[int], **narrowed: str) -> list[tuple[int, str, uuid.UUID]]:
    rows = LedgerEntry.objects.filter(workspace_id=bundle.workspace.pk, index__in=indexes, **narrowed)
    return list(rows.order_by("index").values_list("index", "kind", "subject"))


def _load_leaves(
    bundle: Bundle, entries: Collection[tuple[int, str, uuid.UUID]]
) -> dict[tuple[str, uuid.UUID], dict[str, Any]]:
    """What is written of these entries, by kind and id; those of which nothing may be said are missing.

    One whose row is gone has no leaf: what it was is lost, and whoever verifies the bundle says so.
    """
    found: dict[tuple[str, uuid.UUID], dict[str, Any]] = {}
    for kind in {kind for _, kind, _ in entries}:
        subjects = [subject for _, other, subject in entries if other == kind]
        gone = set(subjects)
        if table := BY_NAME.get(kind):
            rows = table.find(subjects)
            told = set(_narrow(bundle, kind, rows).values_list("pk", flat=True))
            for pk, leaf in table.read(rows):
                gone.discard(leaf.subject)
                if pk in told:
                    content = None if leaf.digest else leaf.content
                    found[kind, leaf.subject] = {"leaf": describe_leaf(kind, leaf), "content": content}
            for subject, tombstone in find_tombstones(kind=kind, subjects=subjects).items():
                if (kind, subject) in found:
                    found[kind, subject]["erased"] = _describe_tombstone(tombstone)
        for subject in gone if _may_know(bundle, kind) else ():
            found[kind, subject] = {"leaf": None, "kind": kind, "id": str(subject)}
    if bundle.is_exact:
        records = [subject for kind, subject in found if kind == "record"]
        unreadable = find_unreadable(records)
        for pk, size in Record.objects.filter(pk__in=records).values_list("pk", clear_length("source")):
            if "erased" not in found["record", pk] and pk not in unreadable:
                found["record", pk]["bytes"] = size
    return found


def _describe_tombstone(tombstone: Tombstone) -> dict[str, Any]:
    """What is told of something erased; `erasure` is the id of the entry that says so itself."""
    erasure = tombstone.erasure
    told = {"on": tombstone.at.astimezone(UTC).isoformat(timespec="seconds"), "reason": erasure.reason}
    return {**told, "by_id": erasure.by_id, "erasure": str(erasure.pk), "size": tombstone.size_bytes}


def _read_sources(bundle: Bundle, indexes: Sequence[int]) -> Iterator[bytes]:
    """The exact bytes of the records, one after the other in the order of their entries."""
    for at in range(0, len(indexes), _BATCH):
        entries = _read_batch(bundle, indexes[at : at + _BATCH], kind="record")
        records = [subject for _, _, subject in entries]
        sizes = dict(Record.objects.filter(pk__in=records).values_list("pk", clear_length("source")))
        unreadable = find_unreadable(records)
        present = [each for each in records if each in sizes and each not in unreadable]
        for window in cut_windows(present, size_of=sizes.__getitem__, max_items=_BATCH, max_bytes=_WINDOW_BYTES):
            held = Record.objects.only("source", "sealed_with").in_bulk(window)
            yield b"".join(bytes(held[each].source) for each in window)


def _read_leaves(bundle: Bundle) -> Iterator[bytes]:
    """All leaf hashes of the checkpoint as the ledger keeps them."""
    for start in range(0, bundle.checkpoint.size, _LEAVES):
        end = min(start + _LEAVES, bundle.checkpoint.size)
        rows = LedgerEntry.objects.filter(workspace_id=bundle.workspace.pk, index__gte=start, index__lt=end)
        yield b"".join(bytes(each) for each in rows.order_by("index").values_list("leaf_hash", flat=True))


def _write_english(bundle: Bundle) -> Iterator[bytes]:
    """What each verdict is bound to, message by message; of a conversation that has none, what is there now.

    A verdict is passed over while some of its records have no entry in the checkpoint: nothing could be said of them.
    """
    reviews = Review.objects.filter(workspace=bundle.workspace)
    if bundle.conversation:
        reviews = reviews.filter(conversation=bundle.conversation)
    told = _narrow_verdicts(bundle, reviews).values("binding")
    has_verdict = False
    for bound in Binding.objects.filter(pk__in=told).order_by("pk").iterator(chunk_size=1):
        lines = read_bound(bound)
        records = {line.record for line in lines}
        if sum(_list_entered(bundle, "record", some).count() for some in _cut(records)) == len(records):
            has_verdict = True
            yield from _write_lines(bundle, bytes(bound.digest).hex(), lines)
    if bundle.conversation and not has_verdict:
        yield from _write_lines(bundle, None, read_lines(conversation_id=bundle.conversation.pk))


def _write_lines(bundle: Bundle, binding: str | None, lines: Sequence[Line]) -> Iterator[bytes]:
    for some in _cut(lines):
        records = {line.record for line in some}
        texts: dict[tuple[uuid.UUID, int], str] = {}
        if bundle.is_exact:
            rows = Message.objects.filter(workspace=bundle.workspace, record__in=records)
            texts = {(record, part): text for record, part, text in rows.values_list("record", "part", "english")}
        entered = set(_list_entered(bundle, "record", records).values_list("subject", flat=True))
        for line in some:
            if line.record not in entered:
                continue
            text = texts.get((line.record, line.part), "")
            written = {
                "binding": binding,
                "record": str(line.record),
                "part": line.part,
                "sha256": line.raw.hex(),
                "decoder": line.decoder,
                # What is read otherwise by now is not what was signed.
                "english": text if hashlib.sha256(text.encode()).digest() == line.english else None,
                "english_sha256": line.english.hex(),
                "beside": line.told.hex(),
            }
            yield _write_line(written)


def _write_line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
