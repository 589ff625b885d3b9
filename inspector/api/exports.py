"""Exports over the API: asked for, followed, downloaded, stopped. Their files are those of the pages."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from inspector.exports.exporters import BROUGHT
from inspector.exports.making import read_file
from inspector.exports.manifests import make_manifest
from inspector.exports.models import Export
from inspector.exports.selectors import find_export, find_progresses, list_exports
from inspector.exports.services import BusyError, ask_for_export, may_download, note_download, stop_export
from inspector.search.language import MAX_CHARACTERS, QueryError

from .authentication import caller_of, may_see_secrets, refuse_scope
from .bodies import read_json
from .endpoints import Endpoint, operation
from .problems import ProblemError
from .shapes import CURSOR, LIMIT, cut_page, page_of, read_place, show

FORMS: Final = [*Export.Form.values, *BROUGHT]
BYTES: Final = "application/octet-stream"
WANTED: Final = 'send {"form": "jsonl", "q": "…"} or {"form": "jsonl", "conversation": "…"} as application/json'
_NAMES: Final = {
    "form": str,
    "q": str,
    "conversation": str,
    "include_secrets": bool,
    "is_masked": bool,
    "has_mark": bool,
}
_BODY: Final[dict[str, Any]] = {
    "application/json": {
        "type": "object",
        "properties": {
            "form": {"type": "string", "enum": FORMS},
            "q": {"type": "string", "maxLength": MAX_CHARACTERS, "description": "the search language; empty for all"},
            "conversation": {"type": "string", "format": "uuid", "description": "one conversation, in the place of q"},
            "include_secrets": {"type": "boolean", "description": "true needs the scope secrets", "default": False},
            "is_masked": {"type": "boolean", "description": "the opposite, under its old name", "deprecated": True},
            "has_mark": {"type": "boolean", "description": "CSV begins with a byte order mark", "default": False},
        },
        "required": ["form"],
        "additionalProperties": False,
    }
}


class ExportSerializer(serializers.Serializer[Any]):
    """An export: its manifest, how far it is, and where its file is."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=[*Export.State.values, "stuck"])
    done = serializers.IntegerField(help_text="how many messages of the set are behind it")
    total = serializers.IntegerField(allow_null=True, help_text="null while they are not counted")
    failure = serializers.CharField(allow_blank=True, help_text="why it could not be made, or was given up")
    file = serializers.CharField(allow_null=True, help_text="its address, where this key may have it now")
    manifest = serializers.DictField(help_text="what the file is: docs/exports.md has its names")


ExportPageSerializer: Final = page_of("Export", ExportSerializer, "Exports, newest first")


def show_exports(exports: Sequence[Export], request: Request) -> list[dict[str, Any]]:
    """Exports as the API shows them to this key."""
    key = caller_of(request)
    progresses = find_progresses(exports=exports)
    shown = []
    for export in exports:
        progress = progresses[export.pk]
        export.workspace = key.workspace
        has_file = export.state == Export.State.DONE and may_download(export, api_key=key)
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


def _read_wish(request: Request) -> dict[str, Any]:
    """The export to make.

    Raises:
        ProblemError: 400 or 408 for a body that is no JSON or breaks off, 413 for one that is too long, 415 for
            another type, 422 where it holds anything else.
    """
    said = read_json(request._request, wanted=WANTED)
    if not isinstance(said, dict) or said.get("form") not in FORMS:
        raise ProblemError(422, WANTED)
    for name, value in said.items():
        if name not in _NAMES or not isinstance(value, _NAMES[name]):
            raise ProblemError(422, f"{name[:100]!r} does not belong there, or is of another type: {WANTED}")
    if {"q", "conversation"} <= set(said) or len(said.get("q", "")) > MAX_CHARACTERS:
        raise ProblemError(422, f"give q, of at most {MAX_CHARACTERS} characters, or conversation, not both")
    if {"include_secrets", "is_masked"} <= set(said):
        raise ProblemError(422, "give include_secrets alone: is_masked is its old name")
    if said["form"] == Export.Form.REPORT and "conversation" not in said:
        raise ProblemError(422, "a report is of one conversation: give conversation")
    return said


class Exports(Endpoint):
    """The exports of a workspace."""

    @operation(ExportPageSerializer, parameters=(CURSOR, LIMIT), scope="export")
    def list_exports(self, request: Request) -> Response:
        """A page of exports of all members."""
        workspace, given = self.workspace, self.given
        found = list_exports(workspace=workspace, before=read_place(self), limit=given["limit"] + 1)
        page, cursor = cut_page(self, found, lambda export: (export.asked_at, export.pk))
        return Response({"results": show_exports(page, request), "next": cursor})

    @operation({202: ExportSerializer}, body=_BODY, scope="export", refusals=(404, 408, 409, 413, 415, 422))
    def make_export(self, request: Request) -> Response:
        """Ask for a file of the messages of a query or of a conversation; a worker makes it.

        Secrets are masked, unless the key has the scope `secrets` and asks for `"include_secrets": true`.
        """
        key, said = self.key, _read_wish(request)
        is_masked = said.get("is_masked", not said.get("include_secrets", False))
        if not is_masked and not may_see_secrets(key):
            raise refuse_scope("secrets", what="an export with exact bytes")
        given: dict[str, Any] = {"query": said.get("q", "")}
        title = said.get("q", "")
        if "conversation" in said:
            given, title = {"conversation_id": _read_id(said["conversation"])}, f"conversation {said['conversation']}"
        try:
            export = ask_for_export(
                workspace=key.workspace,
                api_key=key,
                form=said["form"],
                is_masked=is_masked,
                has_mark=said.get("has_mark", False),
                title=title,
                **given,
            )
        except QueryError as error:
            raise ProblemError(422, f"q: {error}", parameter="q", start=error.start, end=error.end) from error
        except ValidationError as error:
            raise NotFound from error
        except BusyError as error:
            raise ProblemError(409, str(error)) from error
        return Response(show_exports([export], request)[0], status=202)

    @operation(ExportSerializer, scope="export")
    def get_export(self, request: Request, export_id: uuid.UUID) -> Response:
        """How far it is, and its manifest."""
        return Response(show_exports([self.find(find_export, export_id=export_id)], request)[0])

    @operation({200: ExportSerializer}, scope="export", refusals=(409,))
    def stop_export(self, request: Request, export_id: uuid.UUID) -> Response:
        """Cancel it while it is under way, or remove its file; for the key that asked for it. Its entry stays."""
        try:
            stopped = stop_export(export=self.find(find_export, export_id=export_id), api_key=self.key)
        except PermissionDenied as error:
            raise ProblemError(403, "an export is stopped by the key that asked for it, or by a person") from error
        except ValidationError as error:
            raise ProblemError(409, "; ".join(error.messages)) from error
        return Response(show_exports([stopped], request)[0])

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
