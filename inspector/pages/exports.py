"""Exports: asking for one, the list of all there were, and one with its progress, its manifest and its file.

The forms say what is to be exported, as an address names it, and how, as a person chooses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from inspector.accounts.models import Membership
from inspector.accounts.selectors import find_channel
from inspector.audit.rules import RULES
from inspector.audit.samples import find_sample
from inspector.database import or_404
from inspector.exports.exporters import BROUGHT
from inspector.exports.making import read_file
from inspector.exports.models import Export
from inspector.exports.reports import POLICY
from inspector.exports.selectors import (
    Progress,
    count_secrets,
    find_export,
    find_progresses,
    list_exports,
    make_manifest,
    say_secrets,
)
from inspector.exports.services import (
    BusyError,
    ask_for_export,
    make_export,
    may_download,
    may_stop,
    note_download,
    stop_export,
)
from inspector.intake.selectors import find_delivery
from inspector.search.language import MAX_CHARACTERS, QueryError
from inspector.threads.selectors import find_conversation

from .findings import read_filters, read_state
from .lists import ConversationFilter, list_page
from .shell import PageForm, attempt, parse_id, render_page, render_part, within_workspace
from .shown.told import name_conversations, shorten

Forms = Sequence[tuple[str, str]]
FORMS: Final[Forms] = (
    (Export.Form.JSONL, "JSON Lines: exact, and can be delivered again"),
    (Export.Form.CSV, "CSV: for a spreadsheet"),
    *((slug, f"{exporter.title}: {exporter.about}") for slug, exporter in BROUGHT.items()),
)
FORMS_AND_REPORT: Final[Forms] = (
    *FORMS,
    (
        Export.Form.REPORT,
        "Report: to read and to print, with English, raw, fields, findings, verdicts, comments and hashes",
    ),
)
FORMS_OF_FINDINGS: Final[Forms] = (
    (Export.Form.CSV, "CSV: for a spreadsheet"),
    (Export.Form.JSONL, "JSON Lines: for programs"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Meant:
    """What is to be exported: what `ask_for_export` takes, in words, and as hidden fields of a form.

    `forms` are those that a person can choose, each with its words; the first is chosen to begin with.
    """

    given: Mapping[str, Any]
    title: str
    kind: str
    hidden: tuple[tuple[str, str], ...]
    forms: Forms = FORMS
    is_everything: bool = False


def read_meant(said: Mapping[str, str], membership: Membership) -> Meant | None:
    """What the parameters of an address or a form name; None for a conversation or a sample that is not there.

    `findings` is there for a list of findings, with its filters; `conversation` is the id of one, `sample` that of an
    audit sample; `conversations` is there for a list of them, with its filters; else `q` is a query, and nothing at all
    is every message.
    """
    if "findings" in said:
        return _read_findings(said, membership)
    if said.get("conversation"):
        conversation_id = parse_id(said["conversation"])
        conversation = conversation_id and find_conversation(
            workspace=membership.workspace, conversation_id=conversation_id
        )
        if not conversation:
            return None
        return Meant(
            given={"conversation_id": conversation_id},
            title=shorten(name_conversations([conversation])[conversation.pk]),
            kind="The conversation",
            hidden=(("conversation", str(conversation_id)),),
            forms=FORMS_AND_REPORT,
        )
    if said.get("sample"):
        return _read_sample(said["sample"], membership)
    if "conversations" in said:
        filters = ConversationFilter(said).read()
        words = ", ".join(f"{name} {value}" for name, value in filters.items())
        return Meant(
            given={"filters": filters},
            title=f"Conversations with {words}" if words else "All conversations",
            kind="Every message of",
            hidden=(("conversations", "1"), *filters.items()),
        )
    query = said.get("q", "").strip()[:MAX_CHARACTERS]
    return Meant(
        given={"query": query},
        title=query or "Every message of the workspace",
        kind="Messages that the search finds" if query else "Messages",
        hidden=(("q", query),),
        is_everything=not query,
    )


def _read_sample(text: str, membership: Membership) -> Meant | None:
    sample_id = parse_id(text)
    sample = sample_id and find_sample(workspace=membership.workspace, sample_id=sample_id)
    if not sample:
        return None
    return Meant(
        given={"sample_id": sample.pk},
        title=shorten(sample.queue.name),
        kind="The audit sample",
        hidden=(("sample", str(sample.pk)),),
        forms=FORMS_AND_REPORT,
    )


def _read_findings(said: Mapping[str, str], membership: Membership) -> Meant | None:
    """The findings of a list, narrowed by the parameters of its address; None where one names what is not there."""
    asked = read_filters(said)
    filters = {name: value for name, value in asked.items() if value and name != "order"} | {
        name: said[name] for name in ("rule", "channel", "delivery", "conversation") if said.get(name)
    }
    if not _is_there(filters, membership):
        return None
    hidden = (("findings", "1"), *filters.items())
    words = " and ".join(f"{name} {value}" for name, value in filters.items())
    filters["state"] = read_state(asked)
    if asked["assignee"] == "me":
        filters["assignee"] = str(membership.user_id)
    return Meant(
        given={"filters": filters, "has_findings": True},
        title=f"Findings with {words}",
        kind="Findings of the list",
        hidden=hidden,
        forms=FORMS_OF_FINDINGS,
    )


def _is_there(filters: Mapping[str, str], membership: Membership) -> bool:
    """Whether the rule, channel, delivery and conversation that are named are there."""
    workspace = membership.workspace
    if filters.get("rule", "") not in ("", *RULES):
        return False
    if "channel" in filters and find_channel(workspace=workspace, name=filters["channel"]) is None:
        return False
    for name, find in (("delivery", find_delivery), ("conversation", find_conversation)):
        if name in filters:
            named = parse_id(filters[name])
            if named is None or find(workspace=workspace, **{f"{name}_id": named}) is None:
                return False
    return True


class ExportForm(PageForm):
    """The form of the file, and whether it includes secrets; only who may see them can choose that."""

    form = forms.ChoiceField(
        widget=forms.RadioSelect,
        error_messages={"required": "Choose a form.", "invalid_choice": "Choose a form."},
    )
    include_secrets = forms.BooleanField(required=False, label="Include secrets")
    has_mark = forms.BooleanField(required=False, label="CSV: begin with a byte order mark, for Excel")

    def __init__(self, *args: Any, membership: Membership, choices: Forms, secrets: int | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer("form", choices, choices[0][0])
        self.may_choose = membership.is_auditor
        if secrets is not None:
            self.fields["include_secrets"].label = f"Include secrets: {say_secrets(secrets)}"

    def read(self) -> dict[str, Any]:
        """What `ask_for_export` takes, of a valid form."""
        said = self.cleaned_data
        return {
            "form": said["form"],
            "is_masked": not (said["include_secrets"] and self.may_choose),
            "has_mark": said["has_mark"],
        }


PAGE_ROWS = 50
MAX_TITLE_LENGTH = 40

MEDIA_TYPES: dict[str, str] = {
    Export.Form.JSONL: "application/jsonl; charset=utf-8",
    Export.Form.CSV: "text/csv; charset=utf-8",
    Export.Form.REPORT: "text/html; charset=utf-8",
}


@within_workspace("GET")
def show_exports(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The exports of the workspace, newest first, by keyset; above them those under way."""
    exports = partial(list_exports, workspace=membership.workspace)
    page, pages = list_page(request, membership, exports, PAGE_ROWS, "asked_at")
    progresses = find_progresses(exports=page)
    rows = [describe(export, progresses[export.pk], membership) for export in page]
    context = {
        "rows": rows,
        "under_way": [row for row in rows if row["is_under_way"]],
        **pages,
    }
    return render_page(request, membership, "exports/exports.html", context, section="exports")


@within_workspace("GET", "HEAD", "POST")
def ask(request: HttpRequest, membership: Membership) -> HttpResponse:
    """What is to be exported and how; a POST asks for it."""
    meant = or_404(read_meant(request.POST if request.method == "POST" else request.GET, membership))
    if request.method != "POST":
        return _answer(request, membership, meant, _make_form(meant, membership, None, request.GET.get("form", "")))
    form = _make_form(meant, membership, request.POST)
    if not form.is_valid():
        return _answer(request, membership, meant, form, status=422)
    try:
        export = ask_for_export(
            workspace=membership.workspace,
            membership=membership,
            zone=membership.user.time_zone,
            title=meant.title,
            **meant.given,
            **form.read(),
        )
    except QueryError as error:
        form.add_error(None, f"The search cannot be exported: {error}.")
        return _answer(request, membership, meant, form, status=422)
    except BusyError as error:
        form.add_error(None, str(error))
        return _answer(request, membership, meant, form, status=409)
    return redirect("pages:export", membership.workspace.slug, export.pk)


def _make_form(meant: Meant, membership: Membership, said: Any, chosen: str = "") -> ExportForm:
    """The form; its address may have chosen the file's."""
    initial = {"form": chosen} if chosen in dict(meant.forms) else None
    secrets = _count_secrets(meant, membership) if membership.is_auditor else None
    return ExportForm(said, membership=membership, choices=meant.forms, secrets=secrets, initial=initial)


def _count_secrets(meant: Meant, membership: Membership) -> int | None:
    """How many of the messages that are meant hold a secret; None where the search is not understood, or is slow."""
    try:
        export = make_export(
            workspace=membership.workspace,
            membership=membership,
            form=meant.forms[0][0],
            is_masked=False,
            zone=membership.user.time_zone,
            **meant.given,
        )
        return count_secrets(export)
    except QueryError:
        return None


def _answer(
    request: HttpRequest, membership: Membership, meant: Meant, form: ExportForm, *, status: int = 200
) -> HttpResponse:
    context = {"meant": meant, "form": form}
    return render_page(request, membership, "exports/new.html", context, section="exports", status=status)


@within_workspace("GET", of=find_export)
def show_export(request: HttpRequest, membership: Membership, export: Export) -> HttpResponse:
    """One export: how far it is, then its manifest and its file."""
    row = describe(export, find_progresses(exports=[export])[export.pk], membership)
    context = {"export": row, "manifest": make_manifest(export)}
    return render_page(request, membership, "exports/export.html", context, section="exports")


@within_workspace("GET", of=find_export)
def show_progress(request: HttpRequest, membership: Membership, export: Export) -> HttpResponse:
    """How far it is: a piece of page that asks for itself again, and at the end for the report or the whole page."""
    row = describe(export, find_progresses(exports=[export])[export.pk], membership)
    response = render_part(request, membership, "exports/_progress.html", {"export": row})
    slug = membership.workspace.slug
    own = reverse("pages:export", args=[slug, export.pk])
    # Whoever waits for it on its own page reads it next; a list stays where it is.
    if row["is_report"] and row["may_download"] and urlsplit(request.headers.get("HX-Current-URL", "")).path == own:
        response["HX-Redirect"] = f"{reverse('pages:export-file', args=[slug, export.pk])}?open"
    elif not row["is_under_way"]:
        response["HX-Refresh"] = "true"
    return response


@within_workspace("GET", of=find_export)
def download(request: HttpRequest, membership: Membership, export: Export) -> HttpResponseBase:
    """The file, for whoever may have it today; where there is none any more, the page that says so."""
    if not may_download(export, membership=membership):
        raise PermissionDenied
    if export.state != Export.State.DONE:
        return redirect("pages:export", membership.workspace.slug, export.pk)
    response = answer_file(export, is_opened="open" in request.GET and export.form == Export.Form.REPORT)
    note_download(export=export, door="page", by=membership.user)
    return response


def answer_file(export: Export, *, is_opened: bool = False) -> StreamingHttpResponse:
    """The file of an export as a download that no browser will interpret; a report may be opened, and runs nothing."""
    pieces: Iterator[bytes] = read_file(export)
    brought = BROUGHT[export.form].media_type if export.form in BROUGHT else "application/octet-stream"
    kind = "application/gzip" if export.is_packed else MEDIA_TYPES.get(export.form, brought)
    headers = {
        "Content-Length": str(export.size_bytes),
        "Content-Disposition": f'{"inline" if is_opened else "attachment"}; filename="{export.file_name}"',
        "Content-Security-Policy": POLICY,
    }
    return StreamingHttpResponse(pieces, content_type=kind, headers=headers)


@within_workspace("GET", of=find_export)
def download_manifest(request: HttpRequest, membership: Membership, export: Export) -> HttpResponse:
    """The manifest as JSON, beside the file."""
    text = json.dumps(make_manifest(export), indent=2, ensure_ascii=True) + "\n"
    headers = {"Content-Disposition": f'attachment; filename="{export.file_name}.manifest.json"'}
    return HttpResponse(text, content_type="application/json", headers=headers)


@within_workspace("POST", of=find_export)
def stop(request: HttpRequest, membership: Membership, export: Export) -> HttpResponse:
    """Cancel what is under way, or remove the file."""
    attempt(
        request,
        lambda: stop_export(export=export, membership=membership),
        lambda it: "The file is removed." if it.state == Export.State.REMOVED else "The export is cancelled.",
        refusal="Nothing was changed: ",
    )
    return redirect("pages:export", membership.workspace.slug, export.pk)


def describe(export: Export, progress: Progress, membership: Membership) -> dict[str, Any]:
    """An export as rows and pages show it."""
    has_file = export.state == Export.State.DONE
    is_under_way = export.is_under_way and not progress.is_stuck
    return {
        "title": export.title or "Everything",
        "short": shorten(export.title, MAX_TITLE_LENGTH) or "Everything",
        "row": export,
        # It stays on one line of a narrow table.
        "kept_as": f"{export.get_form_display()}, {'masked' if export.is_masked else 'exact'}".replace(" ", "\u00a0"),
        "is_report": export.form == Export.Form.REPORT,
        "state": "stuck" if progress.is_stuck else "ready" if has_file else export.state,
        "is_under_way": is_under_way,
        "is_done": has_file,
        "progress": progress,
        "sha256": bytes(export.sha256).hex() if export.sha256 else "",
        "may_download": has_file and may_download(export, membership=membership),
        "may_stop": (export.is_under_way or has_file) and may_stop(export, membership=membership),
    }
