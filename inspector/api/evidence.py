"""Evidence: the audit log; the ledger's checkpoints, proofs and signatures of witnesses; and what was erased for good.

Erasing is an owner's act, which a key with the scope for it does in their name.
"""

from __future__ import annotations

import base64
import uuid
from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.models import ApiKey
from inspector.audit.reviews.bindings import list_told_deeds
from inspector.database import make_storable, or_404
from inspector.erasing import Target, ask_to_erase, preview
from inspector.intake.withdrawals import MAX_REASON_LENGTH
from inspector.ledger.kinds import BY_NAME
from inspector.ledger.models import LedgerCheckpoint
from inspector.ledger.notes import NoteError
from inspector.ledger.proofs import (
    IncompleteError,
    add_cosignature,
    get_checkpoint,
    get_key,
    get_note,
    get_verifier,
    is_told,
    prove_entry,
    prove_growth,
)
from inspector.retention.models import Erasure
from inspector.retention.services import find_tombstone, list_erasures
from inspector.trail.models import DEEDS, Deed
from inspector.trail.services import Wanted

from .authentication import act_for
from .endpoints import BODY_REFUSALS, Endpoint, operation
from .parameters import Document, take_choice, take_id, take_moment, take_number, take_text
from .problems import ProblemError
from .shapes import CURSOR, LIMIT, cut_page, listing, page_of, read_row_key, show, walk_by_id

_TRAIL: Final = "the trail of a program"
_ACTOR: Final = "a kind, a colon and an id, as member:7 or api-key:…; of the product and its operator the kind alone"


class DoerSerializer(serializers.Serializer[Any]):
    """Who did it, by the name of that time."""

    kind = serializers.ChoiceField(choices=Deed.Actor.values, source="actor_kind")
    id = serializers.CharField(allow_blank=True, source="actor_id")
    name = serializers.CharField(allow_blank=True, source="actor_name")


class ThingSerializer(serializers.Serializer[Any]):
    """What it was done to, by the name of that time."""

    kind = serializers.CharField(source="object_kind")
    id = serializers.CharField(allow_blank=True, source="object_id")
    label = serializers.CharField(  # type: ignore[assignment]  # the thing's own word
        allow_blank=True, source="object_label"
    )


class DeedSerializer(serializers.Serializer[Any]):
    """An action; docs/trail.md lists the kinds."""

    number = serializers.IntegerField(source="sequence", help_text="in its workspace, by the database, without a gap")
    at = serializers.DateTimeField()
    actor = DoerSerializer()
    address = serializers.CharField(allow_blank=True, help_text="that the request came from; empty outside of one")
    deed = serializers.CharField(source="code", help_text="the code of its kind")
    told = serializers.CharField(help_text="the action in a sentence")
    object = ThingSerializer(allow_null=True)
    about = serializers.ListField(child=serializers.UUIDField(), help_text="the ids of all that it concerns")
    details = serializers.DictField()


class Trail(Endpoint):
    """What people and programs did."""

    @operation(
        page_of("Deed", DeedSerializer, "Actions, newest first"),
        parameters=(
            take_text("q", about="filter by words", default="", max_characters=200),
            CURSOR,
            LIMIT,
            take_text("actor", about=f"filter by actor: {_ACTOR}", default="", max_characters=100),
            take_choice("deed", about="filter by kind", choices=sorted(DEEDS), default=""),
            take_id("about", about="filter by the id of an object"),
            take_moment("since", about="filter: from this time on"),
            take_moment("until", about="filter: before this time"),
        ),
        scope="trail",
    )
    def list_deeds(self, request: Request) -> dict[str, Any]:
        """A page of the trail. What would tell of a review that is still blind is missing, and so is its number."""
        given = self.given
        wanted = Wanted(
            actor=_read_actor(given["actor"]),
            code=given["deed"],
            about=given["about"],
            words=make_storable(given["q"].strip()),
            since=given["since"],
            until=given["until"],
        )
        rows = list_told_deeds(workspace_id=self.workspace.pk, wanted=wanted)
        if key := read_row_key(self, _TRAIL):
            rows = rows.filter(sequence__lt=key[0])
        page, cursor = cut_page(self, list(rows[: given["limit"] + 1]), lambda deed: [deed.sequence], _TRAIL)
        return {"results": [show_deed(deed) for deed in page], "next": cursor}


def _read_actor(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    kind, _, actor_id = text.partition(":")
    if kind not in Deed.Actor.values or "\x00" in actor_id:
        raise ProblemError(400, f"actor is {_ACTOR}", parameter="actor", allowed=_ACTOR)
    return kind, make_storable(actor_id)


def show_deed(deed: Deed) -> dict[str, Any]:
    """A deed as the list shows it."""
    thing = show(ThingSerializer, deed) if deed.object_kind else None
    return show(DeedSerializer, deed, actor=show(DoerSerializer, deed), object=thing)


# What anybody who may read messages may have a proof of; of all else, whoever may read the audit log.
OPEN_KINDS: Final = ("record", "delivery")
_COSIGNATURE: Final = Document(
    '{"note": "…", "key": "name+id+key"}',
    (
        take_text("note", is_required=True, max_characters=10**6),
        take_text("key", is_required=True, max_characters=10**6),
    ),
)
_SIZE: Final = take_number("size", about="of the tree; without it, that of the latest checkpoint", least=1)


class CheckpointSerializer(serializers.Serializer[Any]):
    """A checkpoint: `note` is the signed note (C2SP tlog-checkpoint) with the lines of its witnesses."""

    origin = serializers.CharField()
    size = serializers.IntegerField(help_text="how many entries it is of")
    root = serializers.CharField(help_text="Base64")  # type: ignore[assignment]  # the tree's own word
    signed_at = serializers.DateTimeField()
    note = serializers.CharField()
    key = serializers.CharField(help_text="the ledger's public key, as verifiers take it: name+id+key")


class InclusionSerializer(serializers.Serializer[Any]):
    """That an entry is in the tree of a checkpoint (RFC 6962, section 2.1.1)."""

    kind = serializers.CharField()
    id = serializers.UUIDField(source="subject")
    index = serializers.IntegerField()
    leaf = serializers.DictField(help_text="what the leaf says; hashed as canonical JSON")
    size = serializers.IntegerField()
    root = serializers.CharField(help_text="Base64")  # type: ignore[assignment]  # the tree's own word
    path = serializers.ListField(child=serializers.CharField(), help_text="hashes in Base64, the nearest first")
    note = serializers.CharField()


class ConsistencySerializer(serializers.Serializer[Any]):
    """That the tree of a later size begins with that of an earlier one (RFC 6962, section 2.1.2)."""

    old = serializers.IntegerField()
    new = serializers.IntegerField()
    old_root = serializers.CharField()
    new_root = serializers.CharField()
    path = serializers.ListField(child=serializers.CharField())


class Ledger(Endpoint):
    """Checkpoints of the ledger, proofs that something is in it and that it only grew, and signatures of witnesses."""

    @operation(CheckpointSerializer, parameters=(_SIZE,), refusals=(404,))
    def get_checkpoint(self, request: Request) -> dict[str, Any]:
        """The latest checkpoint, or the one of a size; 404 where there is none."""
        return _show_checkpoint(self._find_checkpoint(self.given["size"]))

    @operation(
        InclusionSerializer,
        parameters=(
            take_choice("kind", about="what it is", choices=sorted(BY_NAME), is_required=True),
            take_id("id", about="its id", is_required=True),
            _SIZE,
        ),
        refusals=(404, 409),
    )
    def prove_inclusion(self, request: Request) -> dict[str, Any]:
        """The audit path of an entry; 404 while there is none. Beyond records and deliveries it needs `trail` too."""
        key, kind = self.key, self.given["kind"]
        if kind not in OPEN_KINDS and ApiKey.Scope.TRAIL not in key.scopes:
            raise ProblemError(403, f"a proof of kind {kind} needs the scope trail")
        checkpoint = self._find_checkpoint(self.given["size"])
        if not is_told(kind, self.given["id"], workspace_id=key.workspace_id):
            raise NotFound
        try:
            found = or_404(prove_entry(checkpoint, kind=kind, subject=self.given["id"]))
        except IncompleteError as error:
            raise ProblemError(409, f"the ledger is damaged: {error}") from None
        return show(
            InclusionSerializer,
            found,
            size=checkpoint.size,
            root=_spell(checkpoint.root),
            path=[_spell(each) for each in found.path],
            note=str(get_note(checkpoint)),
        )

    @operation(
        ConsistencySerializer,
        parameters=(
            take_number("from", about="the earlier size", is_required=True),
            take_number("to", about="the later size; without it, that of the latest checkpoint", least=1),
        ),
        refusals=(404, 409),
    )
    def prove_consistency(self, request: Request) -> dict[str, Any]:
        """The consistency proof between two sizes, of which the later one has a checkpoint."""
        old, new = self.given["from"], self.given["to"]
        if new is not None and old > new:
            raise ProblemError(400, f"the earlier size is at most the later one, {new}", parameter="from")
        checkpoint = self._find_checkpoint(new, name="to")
        if old > checkpoint.size:
            raise ProblemError(400, f"the ledger has {checkpoint.size} entries at that checkpoint", parameter="from")
        try:
            old_root, path = prove_growth(checkpoint, old)
        except IncompleteError as error:
            raise ProblemError(409, f"the ledger is damaged: {error}") from None
        roots = {"old_root": _spell(old_root), "new_root": _spell(checkpoint.root)}
        return {"old": old, "new": checkpoint.size, **roots, "path": [_spell(each) for each in path]}

    @operation({201: CheckpointSerializer}, body=_COSIGNATURE, scope="witness", refusals=(404, 408, 413, 415, 422))
    def add_cosignature(self, request: Request) -> dict[str, Any]:
        """Add a witness's cosignature of a checkpoint (C2SP tlog-cosignature) to its note."""
        said = _COSIGNATURE.read(request)
        try:
            checkpoint = or_404(add_cosignature(workspace_id=self.key.workspace_id, **said))
        except NoteError as error:
            raise ProblemError(422, str(error)) from None
        return _show_checkpoint(checkpoint)

    def _find_checkpoint(self, size: int | None, *, name: str = "size") -> LedgerCheckpoint:
        """The checkpoint of a size, the latest without one.

        Raises:
            ProblemError: 400 for a size beyond the latest, which the parameter `name` asks for; 404 where there is none
                of that size.
        """
        workspace_id = self.key.workspace_id
        found = get_checkpoint(workspace_id, size)
        if found is None and size is not None:
            latest = or_404(get_checkpoint(workspace_id, None))
            if size > latest.size:
                allowed = f"a size from 1 to {latest.size}, that of the latest checkpoint"
                raise ProblemError(400, f"{name} is {allowed}, and not {size}", parameter=name, allowed=allowed)
            raise ProblemError(404, f"no checkpoint is of {size} entries; the latest is of {latest.size}")
        return or_404(found)


def _show_checkpoint(checkpoint: LedgerCheckpoint) -> dict[str, Any]:
    key, note = get_key(), get_note(checkpoint)
    return show(
        CheckpointSerializer,
        checkpoint,
        origin=note.checkpoint.origin,
        root=_spell(checkpoint.root),
        note=str(note),
        key=str(get_verifier(key, checkpoint.workspace_id)) if key else "",
    )


def _spell(data: bytes | memoryview) -> str:
    return base64.b64encode(data).decode()


_ERASURE: Final = Document(
    '{"do": "erase", "kind": "person", "name": "ada", "direction": "sent", "reason": "…"}, or with the id of a record',
    (
        take_choice("do", choices=("preview", "erase"), is_required=True, about="count what it means, or erase it"),
        take_choice("kind", choices=("record", "delivery", "person", "period"), is_required=True, about="what goes"),
        take_text("id", default="", max_characters=36, about="of the record or the delivery"),
        take_text(
            "name", default="", max_characters=1000, about="of the person, as messages spell it; the period, as 2026-10"
        ),
        take_choice(
            "direction",
            default="",
            choices=("sent", "both"),
            about="of a person: only what it sent, or also received",
        ),
        take_text("reason", default="", max_characters=MAX_REASON_LENGTH, about="to erase; kept with the tombstones"),
    ),
)


class ErasureSerializer(serializers.Serializer[Any]):
    """An erasure; `finished_at` is null until all is gone. Of a preview `id` is null, and it counts what it means."""

    id = serializers.UUIDField(allow_null=True)
    kind = serializers.CharField()
    target = serializers.UUIDField(allow_null=True, help_text="the record, delivery or period's key; no person")
    by = serializers.CharField(source="by.username", allow_null=True, help_text="null where it is by age")
    at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField()
    finished_at = serializers.DateTimeField(allow_null=True)
    records = serializers.IntegerField(help_text="erased so far, or to be erased")
    messages = serializers.IntegerField(allow_null=True, help_text="of a preview, in these records")
    others = serializers.IntegerField(allow_null=True, help_text="of a preview of a person: those of others among them")
    first_at = serializers.DateTimeField(allow_null=True, help_text="of a preview, the time of the oldest")
    last_at = serializers.DateTimeField(allow_null=True)
    is_held = serializers.BooleanField(allow_null=True, help_text="of a preview, whether a legal hold stops it")


def refuse_erased(workspace_id: uuid.UUID, about: uuid.UUID) -> None:
    """Say of a message or record that it was erased, when and why.

    Raises:
        ProblemError: 410 where it was.
    """
    if tombstone := find_tombstone(workspace_id=workspace_id, about=about):
        raise ProblemError(
            410, f"it was {tombstone.erasure}", record=str(tombstone.subject), sha256=bytes(tombstone.sha256).hex(),
            size=tombstone.size_bytes,
        )  # fmt: skip


class Erasures(Endpoint):
    """What was erased, and asking for more."""

    @listing("Erasure", ErasureSerializer, "Erasures, newest first", scope="erase")
    def list_erasures(self, request: Request) -> dict[str, Any]:
        """A page of erasures, those by age among them."""
        found = list_erasures(workspace_id=self.workspace.pk)
        page, cursor = walk_by_id(self, found, "erasures", is_newest_first=True)
        return {"results": [_show_erasure(each) for each in page], "next": cursor}

    @operation(
        {200: ErasureSerializer, 201: ErasureSerializer},
        body=_ERASURE,
        scope="erase",
        refusals=(404, *BODY_REFUSALS),
    )
    def erase(self, request: Request) -> Response:
        """Count what would be erased (200), or have it erased for good by a worker (201), in the name of an owner."""
        said, workspace = _ERASURE.read(request), self.workspace
        try:
            subject = uuid.UUID(said["id"]) if said["id"] else None
        except ValueError as error:
            raise ProblemError(422, "the id is a UUID", members=["id"]) from error
        target = Target(kind=said["kind"], subject=subject, name=said["name"], is_both=said["direction"] == "both")
        with act_for(request) as person:
            if said["do"] == "erase":
                made = ask_to_erase(membership=person, target=target, reason=said["reason"])
                return Response(_show_erasure(list_erasures(workspace_id=workspace.pk).get(pk=made.pk)), status=201)
            seen = preview(workspace_id=workspace.pk, target=target)
        counted = show(
            ErasureSerializer,
            seen,
            **dict.fromkeys(("id", "by", "at", "finished_at")),
            kind=target.kind,
            target=subject,
            reason="",
            first_at=seen.first,
            last_at=seen.last,
        )
        return Response(counted)

    @operation(ErasureSerializer, scope="erase")
    def get_erasure(self, request: Request, erasure_id: uuid.UUID) -> dict[str, Any]:
        """How far it is."""
        found = or_404(list_erasures(workspace_id=self.key.workspace_id).filter(pk=erasure_id).first())
        return _show_erasure(found)


def _show_erasure(erasure: Erasure) -> dict[str, Any]:
    return show(ErasureSerializer, erasure, **dict.fromkeys(("messages", "others", "first_at", "last_at", "is_held")))
