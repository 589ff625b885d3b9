"""Exports over the API: asked for, followed, downloaded, stopped. Their files are those of the pages."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from inspector.bounds import BYTES
from inspector.exports.exporters import BROUGHT
from inspector.exports.making import read_file
from inspector.exports.models import Export
from inspector.exports.selectors import find_export, find_progresses, list_exports, make_manifest
from inspector.exports.services import BusyError, ask_for_export, may_download, note_download, stop_export
from inspector.search.language import MAX_CHARACTERS, QueryError

from .authentication import may_see_secrets, refuse_scope
from .endpoints import Endpoint, operation
from .parameters import Document, take_choice, take_flag, take_id, take_text
from .problems import ProblemError
from .shapes import cut_page, listing, read_place, show

FORMS: Final = [*Export.Form.values, *BROUGHT]


_WISH: Final = Document(
    '{"form": "jsonl", "q": "…"} or {"form": "jsonl", "conversation": "…"}',
    (
        take_choice("form", choices=FORMS, is_required=True),
        take_text("q", max_characters=MAX_CHARACTERS, about="the search language; empty for all"),
        # What is no id names nothing that is there.
        replace(
            take_id("conversation", about="one conversation, in the place of q"), read=take_text("conversation").read
        ),
        take_flag("include_secrets", otherwise=False, about="true needs the scope secrets"),
        take_flag("is_masked", is_deprecated=True, about="the opposite, under its old name"),
        take_flag("has_mark", default=False, otherwise=False, about="CSV begins with a byte order mark"),
    ),
)


class ExportSerializer(serializers.Serializer[Any]):
    """An export: its manifest, how far it is, and where its file is."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=[*Export.State.values, "stuck"])
    done = serializers.IntegerField(help_text="how many messages of the set are behind it")
    total = serializers.IntegerField(allow_null=True, help_text="null while they are not counted")
    failure = serializers.CharField(allow_blank=True, help_text="why it could not be made, or was given up")
    file = serializers.CharField(allow_null=True, help_text="its address, where this key may have it now")
    manifest = serializers.DictField(help_text="what the file is: docs/exports.md has its names")


class Exports(Endpoint):
    """The exports of a workspace."""

    @listing("Export", ExportSerializer, "Exports, newest first", scope="export")
    def list_exports(self, request: Request) -> dict[str, Any]:
        """A page of exports of all members."""
        found = list_exports(workspace=self.workspace, before=read_place(self), limit=self.given["limit"] + 1)
        page, cursor = cut_page(self, found, lambda export: (export.asked_at, export.pk))
        return {"results": self._show(page), "next": cursor}

    @operation({202: ExportSerializer}, body=_WISH, scope="export", refusals=(404, 408, 409, 413, 415, 422))
    def make_export(self, request: Request) -> dict[str, Any]:
        """Ask for a file of the messages of a query or of a conversation; a worker makes it.

        Secrets are masked, unless the key has the scope `secrets` and asks for `"include_secrets": true`.
        """
        key, said = self.key, _WISH.read(request)
        query, conversation, is_masked = said["q"], said["conversation"], said["is_masked"]
        if query is not None and conversation is not None:
            raise ProblemError(422, "give q or conversation, not both")
        if is_masked is not None and said["include_secrets"] is not None:
            raise ProblemError(422, "give include_secrets alone: is_masked is its old name")
        if said["form"] == Export.Form.REPORT and conversation is None:
            raise ProblemError(422, "a report is of one conversation: give conversation")
        is_masked = not said["include_secrets"] if is_masked is None else is_masked
        if not is_masked and not may_see_secrets(key):
            raise refuse_scope("secrets", what="an export with exact bytes")
        try:
            export = ask_for_export(
                workspace=key.workspace,
                api_key=key,
                form=said["form"],
                is_masked=is_masked,
                has_mark=said["has_mark"],
                title=query or "" if conversation is None else f"conversation {conversation}",
                **({"query": query or ""} if conversation is None else {"conversation_id": _read_id(conversation)}),
            )
        except QueryError as error:
            raise ProblemError(422, f"q: {error}", parameter="q", start=error.start, end=error.end) from error
        except ValidationError as error:
            raise NotFound from error
        except BusyError as error:
            raise ProblemError(409, str(error)) from error
        return self._show([export])[0]

    @operation(ExportSerializer, scope="export")
    def get_export(self, request: Request, export_id: uuid.UUID) -> dict[str, Any]:
        """How far it is, and its manifest."""
        return self._show([self.find(find_export, export_id=export_id)])[0]

    @operation({200: ExportSerializer}, scope="export", refusals=(409,))
    def stop_export(self, request: Request, export_id: uuid.UUID) -> dict[str, Any]:
        """Cancel it while it is under way, or remove its file; for the key that asked for it. Its entry stays."""
        try:
            stopped = stop_export(export=self.find(find_export, export_id=export_id), api_key=self.key)
        except PermissionDenied as error:
            raise ProblemError(403, "an export is stopped by the key that asked for it, or by a person") from error
        except ValidationError as error:
            raise ProblemError(409, "; ".join(error.messages)) from error
        return self._show([stopped])[0]

    @operation(
        {(200, BYTES): OpenApiResponse(OpenApiTypes.BINARY, description="the file, as a download")},
        scope="export",
        refusals=(409,),
        media_type=BYTES,
        headers=[OpenApiParameter("X-SHA256", {"type": "string"}, "header", response=[200], description="of it")],
    )
    def get_export_file(self, request: Request, export_id: uuid.UUID) -> StreamingHttpResponse:
        """The file, for a key that may have it today; 409 where there is none yet, or none any more."""
        key, export = self.key, self.find(find_export, export_id=export_id)
        if not may_download(export, api_key=key):
            raise refuse_scope("secrets", what="a file with exact bytes")
        if export.state != Export.State.DONE:
            raise ProblemError(409, f"there is no file: the export is {export.get_state_display().lower()}")
        pieces = read_file(export)
        note_download(export=export, door="API", api_key=key)
        response = StreamingHttpResponse(pieces, content_type=BYTES)
        response["Content-Length"] = str(export.size_bytes)
        response["Content-Disposition"] = f'attachment; filename="{export.file_name}"'
        response["X-Content-Type-Options"] = "nosniff"
        response["X-SHA256"] = bytes(export.sha256 or b"").hex()
        response["Cache-Control"] = "no-store, private"
        return response

    def _show(self, exports: Sequence[Export]) -> list[dict[str, Any]]:
        """Exports as this key sees them."""
        progresses, shown = find_progresses(exports=exports), []
        for export in exports:
            progress, export.workspace = progresses[export.pk], self.workspace
            has_file = export.state == Export.State.DONE and may_download(export, api_key=self.key)
            shown.append(
                show(
                    ExportSerializer,
                    progress,
                    id=export.pk,
                    state="stuck" if progress.is_stuck else export.state,
                    file=f"/api/v1/exports/{export.pk}/file" if has_file else None,
                    manifest=make_manifest(export),
                )
            )
        return shown


def _read_id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise NotFound from error
