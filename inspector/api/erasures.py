"""Erasures: an owner's acts, which a key with the scope for it does in their name."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.database import or_404
from inspector.erasing import Target, ask_to_erase, preview
from inspector.intake.withdrawals import MAX_REASON_LENGTH
from inspector.retention.models import Erasure
from inspector.retention.selectors import find_tombstone, list_erasures

from .authentication import ACT_REFUSALS, act_for
from .bodies import Document, Text
from .endpoints import Endpoint
from .paging import CURSOR, LIMIT, page_of, walk_by_id
from .parameters import Choice
from .problems import ProblemError
from .shapes import show

_REQUEST: Final = Document(
    '{"do": "erase", "kind": "person", "name": "ada", "direction": "sent", "reason": "…"}, or with the id of a record',
    (
        Choice(name="do", choices=("preview", "erase"), is_required=True, about="count what it means, or erase it"),
        Choice(name="kind", choices=("record", "delivery", "person", "period"), is_required=True, about="what goes"),
        Text(name="id", max_characters=36, about="of the record or the delivery"),
        Text(name="name", max_characters=1000, about="of the person, as messages spell it; the period, as 2026-10"),
        Choice(
            name="direction",
            default="",
            choices=("sent", "both"),
            about="of a person: only what it sent, or also received",
        ),
        Text(name="reason", max_characters=MAX_REASON_LENGTH, about="to erase; kept with the tombstones"),
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


ErasurePageSerializer: Final = page_of("Erasure", ErasureSerializer, "Erasures, newest first")


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


class ErasuresView(Endpoint):
    """What was erased, and asking for more."""

    scopes: ClassVar = {"GET": "erase", "POST": "erase"}
    parameters: ClassVar = {"GET": (CURSOR, LIMIT)}
    refusals: ClassVar = {"POST": ACT_REFUSALS}

    @extend_schema(operation_id="list_erasures", responses=ErasurePageSerializer)
    def get(self, request: Request) -> Response:
        """A page of erasures, those by age among them."""
        workspace = self.workspace
        found = list_erasures(workspace_id=workspace.pk)
        page, cursor = walk_by_id(found, self.given, workspace, of="erasures", is_newest_first=True)
        return Response({"results": [_show(each) for each in page], "next": cursor})

    @extend_schema(
        operation_id="erase", request=_REQUEST.schema, responses={200: ErasureSerializer, 201: ErasureSerializer}
    )
    def post(self, request: Request) -> Response:
        """Count what would be erased (200), or have it erased for good by a worker (201), in the name of an owner."""
        said, workspace = _REQUEST.read(request), self.workspace
        try:
            subject = uuid.UUID(said["id"]) if said["id"] else None
        except ValueError as error:
            raise ProblemError(422, "the id is a UUID", members=["id"]) from error
        target = Target(kind=said["kind"], subject=subject, name=said["name"], is_both=said["direction"] == "both")
        with act_for(request) as person:
            if said["do"] == "erase":
                made = ask_to_erase(membership=person, target=target, reason=said["reason"])
                return Response(_show(list_erasures(workspace_id=workspace.pk).get(pk=made.pk)), status=201)
            seen = preview(workspace_id=workspace.pk, target=target)
        return Response(
            show(
                ErasureSerializer,
                seen,
                **dict.fromkeys(("id", "by", "at", "finished_at")),
                kind=target.kind,
                target=subject,
                reason="",
                first_at=seen.first,
                last_at=seen.last,
            )
        )


class ErasureView(Endpoint):
    """One erasure."""

    scopes: ClassVar = {"GET": "erase"}

    @extend_schema(operation_id="get_erasure", responses=ErasureSerializer)
    def get(self, request: Request, erasure_id: uuid.UUID) -> Response:
        """How far it is."""
        found = or_404(list_erasures(workspace_id=self.key.workspace_id).filter(pk=erasure_id).first())
        return Response(_show(found))


def _show(erasure: Erasure) -> dict[str, Any]:
    return show(ErasureSerializer, erasure, **dict.fromkeys(("messages", "others", "first_at", "last_at", "is_held")))
