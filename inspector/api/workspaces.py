"""The workspace of a key: what it is called, renaming and archiving it, and making another."""

from __future__ import annotations

import logging
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.accounts.workspaces import archive_workspace, make_workspace, rename_workspace

from .authentication import ACT_REFUSALS, act_for
from .documents import Document, Text
from .endpoints import Endpoint
from .parameters import Choice
from .shapes import show

logger = logging.getLogger(__name__)

_ACT: Final = Document(
    '{"act": "rename", "name": "Night shift"} or {"act": "archive"}',
    (
        Choice(name="act", choices=("rename", "archive"), is_required=True, about="the action on the workspace"),
        Text(name="name", max_characters=120, about="to rename it to"),
    ),
)
_MADE: Final = Document(
    '{"slug": "night", "name": "Night shift"}',
    (
        Text(name="slug", is_required=True, max_characters=64, about="its part of every address"),
        Text(name="name", is_required=True, max_characters=120, about="as people read it"),
    ),
)


class WorkspaceSerializer(serializers.Serializer[Any]):
    """A workspace."""

    id = serializers.UUIDField()
    slug = serializers.CharField(help_text="its part of the address of every page")
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    archived_at = serializers.DateTimeField(
        allow_null=True, help_text="since when it takes no messages and its keys are refused"
    )


class WorkspaceView(Endpoint):
    """The workspace that the key belongs to."""

    scopes: ClassVar = {"GET": ("read", "workspace")}

    @extend_schema(operation_id="get_workspace", responses=WorkspaceSerializer)
    def get(self, request: Request) -> Response:
        """What it is called, and since when it is there."""
        return Response(show(WorkspaceSerializer, self.workspace))


class WorkspaceActsView(Endpoint):
    """An action on the workspace of the key."""

    scopes: ClassVar = {"POST": "workspace"}
    refusals: ClassVar = {"POST": ACT_REFUSALS}

    @extend_schema(operation_id="act_on_workspace", request=_ACT.schema, responses={201: WorkspaceSerializer})
    def post(self, request: Request) -> Response:
        """Rename or archive it, in the name of the member who made the key: an owner of the workspace today.

        Once it is archived every key of it is refused, this one too: an owner restores it on its settings page.
        """
        key, said = self.key, _ACT.read(request)
        with act_for(request) as person:
            if said["act"] == "rename":
                rename_workspace(workspace=key.workspace, name=said["name"], by=person)
            else:
                archive_workspace(workspace=key.workspace, by=person)
        logger.info("key %s: workspace %s: %s", key.prefix, key.workspace_id, said["act"])
        return Response(show(WorkspaceSerializer, key.workspace), status=201)


class WorkspacesView(Endpoint):
    """Other workspaces."""

    scopes: ClassVar = {"POST": "workspace"}
    refusals: ClassVar = {"POST": ACT_REFUSALS}

    @extend_schema(operation_id="make_workspace", request=_MADE.schema, responses={201: WorkspaceSerializer})
    def post(self, request: Request) -> Response:
        """Make another one, in the name of the member who made the key: an owner of the key's workspace today.

        They own the new one. This key sees nothing of it: its owner makes keys for it on its settings page.
        """
        key, said = self.key, _MADE.read(request)
        with act_for(request) as person:
            workspace = make_workspace(**said, owner=person.user, by=person)
        logger.info("key %s: made workspace %s", key.prefix, workspace.pk)
        return Response(show(WorkspaceSerializer, workspace), status=201)
