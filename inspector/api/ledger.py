"""The ledger: its checkpoints, proofs that something is in it and that it only grew, and signatures of witnesses."""

from __future__ import annotations

import base64
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.models import ApiKey
from inspector.database import or_404
from inspector.ledger.kinds import BY_NAME
from inspector.ledger.models import LedgerCheckpoint
from inspector.ledger.notes import NoteError
from inspector.ledger.proofs import Inclusion, add_cosignature, is_told, prove_entry, prove_growth
from inspector.ledger.selectors import IncompleteError, get_checkpoint, get_note
from inspector.ledger.sequencing import get_key, get_verifier

from .authentication import caller_of
from .bodies import read_json
from .endpoints import Endpoint
from .parameters import Choice, Id, Number
from .problems import ProblemError

# What anybody who may read messages may have a proof of; of all else, whoever may read the audit log.
OPEN_KINDS: Final = ("record", "delivery")
WANTED: Final = 'send {"note": "…", "key": "name+id+key"} as application/json'
_BODY: Final[dict[str, Any]] = {
    "application/json": {
        "type": "object",
        "properties": {"note": {"type": "string"}, "key": {"type": "string"}},
        "required": ["note", "key"],
        "additionalProperties": False,
    }
}
_SIZE: Final = Number(name="size", about="of the tree; without it, that of the latest checkpoint", least=1)


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
    id = serializers.UUIDField()
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


class CheckpointView(Endpoint):
    """The latest checkpoint."""

    refusals: ClassVar = {"GET": (404,)}
    parameters: ClassVar = {"GET": (_SIZE,)}

    @extend_schema(operation_id="get_checkpoint", responses=CheckpointSerializer)
    def get(self, request: Request) -> Response:
        """The latest checkpoint, or the one of a size; 404 where there is none."""
        return Response(_show(_find_checkpoint(request, self.given["size"])))


class InclusionView(Endpoint):
    """Proof that something is in the ledger."""

    refusals: ClassVar = {"GET": (404, 409)}
    parameters: ClassVar = {
        "GET": (
            Choice(name="kind", about="what it is", choices=sorted(BY_NAME), is_required=True),
            Id(name="id", about="its id", is_required=True),
            _SIZE,
        )
    }

    @extend_schema(operation_id="prove_inclusion", responses=InclusionSerializer)
    def get(self, request: Request) -> Response:
        """The audit path of an entry; 404 while there is none. Beyond records and deliveries it needs `trail` too."""
        key, kind = self.key, self.given["kind"]
        if kind not in OPEN_KINDS and ApiKey.Scope.TRAIL not in key.scopes:
            raise ProblemError(403, f"a proof of kind {kind} needs the scope trail")
        checkpoint = _find_checkpoint(request, self.given["size"])
        if not is_told(kind, self.given["id"], workspace_id=key.workspace_id):
            raise NotFound
        try:
            found = prove_entry(checkpoint, kind=kind, subject=self.given["id"])
        except IncompleteError as error:
            raise ProblemError(409, f"the ledger is damaged: {error}") from None
        if found is None:
            raise NotFound
        return Response(_show_inclusion(checkpoint, found))


class ConsistencyView(Endpoint):
    """Proof that the ledger only grew."""

    parameters: ClassVar = {
        "GET": (
            Number(name="from", about="the earlier size", is_required=True),
            Number(name="to", about="the later size; without it, that of the latest checkpoint", least=1),
        )
    }
    refusals: ClassVar = {"GET": (404, 409)}

    @extend_schema(operation_id="prove_consistency", responses=ConsistencySerializer)
    def get(self, request: Request) -> Response:
        """The consistency proof between two sizes, of which the later one has a checkpoint."""
        checkpoint = _find_checkpoint(request, self.given["to"])
        old = self.given["from"]
        if old > checkpoint.size:
            raise ProblemError(400, f"the ledger has {checkpoint.size} entries at that checkpoint", parameter="from")
        try:
            old_root, path = prove_growth(checkpoint, old)
        except IncompleteError as error:
            raise ProblemError(409, f"the ledger is damaged: {error}") from None
        return Response(
            {
                "old": old,
                "new": checkpoint.size,
                "old_root": _spell(old_root),
                "new_root": _spell(bytes(checkpoint.root)),
                "path": [_spell(each) for each in path],
            }
        )


class CosignaturesView(Endpoint):
    """Signatures of witnesses."""

    scopes: ClassVar = {"POST": "witness"}
    refusals: ClassVar = {"POST": (404, 408, 413, 415, 422)}
    takes_large_bodies = False

    @extend_schema(operation_id="add_cosignature", request=_BODY, responses={201: CheckpointSerializer})
    def post(self, request: Request) -> Response:
        """Add a witness's cosignature of a checkpoint (C2SP tlog-cosignature) to its note."""
        given = read_json(request._request, wanted=WANTED)
        if not isinstance(given, dict) or {*given} != {"note", "key"} or {*map(type, given.values())} != {str}:
            raise ProblemError(422, WANTED)
        try:
            checkpoint = add_cosignature(workspace_id=self.key.workspace_id, **given)
        except NoteError as error:
            raise ProblemError(422, str(error)) from None
        if checkpoint is None:
            raise NotFound
        return Response(_show(checkpoint), status=201)


def _find_checkpoint(request: Request, size: int | None) -> LedgerCheckpoint:
    return or_404(get_checkpoint(caller_of(request).workspace_id, size or None))


def _show(checkpoint: LedgerCheckpoint) -> dict[str, Any]:
    key = get_key()
    note = get_note(checkpoint)
    return {
        "origin": note.checkpoint.origin,
        "size": checkpoint.size,
        "root": _spell(bytes(checkpoint.root)),
        "signed_at": checkpoint.signed_at,
        "note": str(note),
        "key": str(get_verifier(key, checkpoint.workspace_id)) if key else "",
    }


def _show_inclusion(checkpoint: LedgerCheckpoint, found: Inclusion) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "id": found.subject,
        "index": found.index,
        "leaf": found.leaf,
        "size": checkpoint.size,
        "root": _spell(bytes(checkpoint.root)),
        "path": [_spell(each) for each in found.path],
        "note": str(get_note(checkpoint)),
    }


def _spell(data: bytes) -> str:
    return base64.b64encode(data).decode()
