"""Asking for exports, stopping them and taking them away: writes, one transaction each."""

from __future__ import annotations

import logging
import uuid
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from inspector.accounts.models import ApiKey, Membership, User, Workspace
from inspector.audit.samples import find_sample
from inspector.database import make_storable
from inspector.intake import jobs
from inspector.intake.models import Job
from inspector.search.language import QueryError
from inspector.search.selectors import read_query
from inspector.threads.selectors import find_conversation
from inspector.trail.services import Thing, record_deed

from .making import drop_file
from .models import UNDER_WAY, Export

logger = logging.getLogger(__name__)

MAX_UNDER_WAY: Final = 5
MAX_TITLE_LENGTH: Final = 200


class BusyError(Exception):
    """As many exports as a workspace may have are under way."""


@transaction.atomic
def ask_for_export(
    *, workspace: Workspace, membership: Membership | None = None, api_key: ApiKey | None = None, **given: Any
) -> Export:
    """Ask for a file: of a query, a conversation, an audit sample, or the conversations or findings of a filtered list.

    Args:
        membership, api_key: who asks; one of them.
        given: what is meant and how it is written, as `make_export` takes it.

    Raises:
        QueryError: for a query that cannot be understood.
        ValidationError: where the workspace has no such conversation, or for a report of anything else.
        BusyError: while too many are under way.
    """
    # Two who ask at once count one after the other.
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    if Export.objects.filter(workspace=workspace, state__in=UNDER_WAY).count() >= MAX_UNDER_WAY:
        raise BusyError(f"{MAX_UNDER_WAY} exports are under way in this workspace: wait for one, or cancel one.")
    export = make_export(workspace=workspace, membership=membership, api_key=api_key, **given)
    export.save(force_insert=True)
    jobs.ask(kind=Job.Kind.EXPORT, subjects=[export.pk], workspace_id=workspace.pk)
    jobs.wake_workers()
    record_deed(
        "export.asked",
        workspace_id=workspace.pk,
        by=membership or api_key,
        on=_name_export(export),
        about=[each for each in (export.conversation_id, export.sample_id) if each],
        details={
            "form": export.form,
            "include_secrets": not export.is_masked,
            "is_masked": export.is_masked,
            "query": export.query if export.subject == Export.Subject.QUERY else None,
            "filters": export.filters,
        },
    )
    return export


def make_export(
    *,
    workspace: Workspace,
    form: str,
    is_masked: bool = True,
    membership: Membership | None = None,
    api_key: ApiKey | None = None,
    query: str | None = None,
    conversation_id: uuid.UUID | None = None,
    sample_id: uuid.UUID | None = None,
    filters: dict[str, str] | None = None,
    has_findings: bool = False,
    title: str = "",
    zone: str = "UTC",
    has_mark: bool = False,
) -> Export:
    """The export that is meant, not stored.

    Args:
        form: one of `Export.Form`, or the slug of an exporter that another package brings.
        is_masked: whether secrets are masked; they always are for whoever may not see them.
        membership, api_key: who asks; one of them.
        query, conversation_id, sample_id, filters: what is meant; one of them. The names of `filters` are those of
            `threads.selectors.filter_conversations`, or of `audit.findings.selectors.select_findings`.
        has_findings: whether `filters` are those of a list of findings.
        title: what people call it.
        zone: whose days the days of the query are, a name of the IANA database.
        has_mark: whether a CSV file begins with a byte order mark.

    Raises:
        QueryError: for a query that cannot be understood.
        ValidationError: where the workspace has no such conversation, or for a report of anything else, or
            findings in another form than CSV and JSON Lines.
    """
    if form == Export.Form.REPORT and conversation_id is None and sample_id is None:
        raise ValidationError("a report is of one conversation, or of an audit sample")
    if has_findings and form not in (Export.Form.CSV, Export.Form.JSONL):
        raise ValidationError("findings are written as CSV or JSON Lines")
    is_masked = is_masked or not may_have_exact(membership=membership, api_key=api_key)
    if query is not None:
        if make_storable(query) != query:
            raise QueryError("a search with NUL or half a character in it cannot be kept", 0, len(query))
        read_query(query)
        subject = Export.Subject.QUERY
    elif conversation_id is not None:
        if find_conversation(workspace=workspace, conversation_id=conversation_id) is None:
            raise ValidationError("there is no such conversation in this workspace")
        subject = Export.Subject.CONVERSATION
    elif sample_id is not None:
        if find_sample(workspace=workspace, sample_id=sample_id) is None:
            raise ValidationError("there is no such sample in this workspace")
        subject = Export.Subject.SAMPLE
    else:
        subject = Export.Subject.FINDINGS if has_findings else Export.Subject.CONVERSATIONS
    return Export(
        workspace=workspace,
        asked_by_user=membership.user if membership else None,
        asked_by_key=api_key,
        asked_by=membership.user.get_username() if membership else f"key {api_key.name}" if api_key else "",
        subject=subject,
        query=query or "",
        conversation_id=conversation_id,
        sample_id=sample_id,
        filters=filters or {},
        title=make_storable(title)[:MAX_TITLE_LENGTH],
        zone=zone,
        form=form,
        is_masked=is_masked,
        has_mark=has_mark and form == Export.Form.CSV,
    )


def _name_export(export: Export) -> Thing:
    return Thing("export", export.pk, export.title or export.get_subject_display())


def may_have_exact(*, membership: Membership | None = None, api_key: ApiKey | None = None) -> bool:
    """Whether who asks may have the exact bytes of what holds a secret, as of now."""
    if membership is not None:
        return membership.is_auditor
    return api_key is not None and ApiKey.Scope.SECRETS in api_key.scopes


def may_download(export: Export, *, membership: Membership | None = None, api_key: ApiKey | None = None) -> bool:
    """Whether who asks may have the file, as of now: a masked one every member may, another who may see secrets."""
    return export.is_masked or may_have_exact(membership=membership, api_key=api_key)


def may_stop(export: Export, *, membership: Membership | None = None, api_key: ApiKey | None = None) -> bool:
    """Whether who asks may cancel the export or remove its file: whoever asked for it, and owners."""
    if membership is not None:
        return membership.is_owner or export.asked_by_user_id == membership.user.pk
    return api_key is not None and export.asked_by_key_id == api_key.pk


@transaction.atomic
def stop_export(*, export: Export, membership: Membership | None = None, api_key: ApiKey | None = None) -> Export:
    """Cancel an export that is under way, or remove the file of one that is done; its row stays.

    Raises:
        PermissionDenied: for anybody but who asked for it, and owners.
        ValidationError: where there is nothing to stop or to remove.
    """
    if not may_stop(export, membership=membership, api_key=api_key):
        raise PermissionDenied("only the member who asked for an export, or an owner, may cancel it")
    held = Export.objects.select_for_update(no_key=True).get(pk=export.pk)
    if held.state in UNDER_WAY:
        held.state, held.finished_at = Export.State.CANCELLED, timezone.now()
    elif held.state == Export.State.DONE:
        held.state = Export.State.REMOVED
    else:
        raise ValidationError("it has no file any more")
    held.save(update_fields=["state", "finished_at"])
    drop_file(held)
    record_deed("export.discarded", workspace_id=held.workspace_id, by=membership or api_key, on=_name_export(held))
    return held


@transaction.atomic
def note_download(*, export: Export, door: str, by: User | None = None, api_key: ApiKey | None = None) -> None:
    """Note that somebody was given the file of an export: the one place that knows of every download.

    Call it before the first byte is sent.
    """
    Export.objects.filter(pk=export.pk).update(downloads=F("downloads") + 1, downloaded_at=timezone.now())
    record_deed(
        "export.downloaded",
        workspace_id=export.workspace_id,
        on=_name_export(export),
        about=[each for each in (export.conversation_id, export.sample_id) if each],
        details={"door": door, "form": export.form, "is_masked": export.is_masked, "messages": export.messages},
    )
    logger.info(
        "export %s (%s, %s, %d messages) is given to %s by the %s",
        export.pk,
        export.form,
        "masked" if export.is_masked else "exact",
        export.messages,
        f"user {by.pk}" if by else f"key {api_key.prefix}" if api_key else "nobody",
        door,
    )
