"""Reads of exports: those of a workspace, one of them, how far it is, and its manifest, as the page shows it and as
JSON beside the file.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Exists, OuterRef

from dialects import SHAPE_VERSION
from inspector.accounts.models import Workspace
from inspector.audit.models.findings import Finding
from inspector.database import take_page
from inspector.intake.models import Job
from inspector.search.selectors import fetch

from .entries import find_messages
from .forms import write_instant
from .models import Export

# Of the lines and columns. It changes when one of them means something else; a new name alone does not change it.
SCHEMA_VERSION: Final = "1"
SET_RULE: Final = (
    "All messages that were stored at the snapshot (fixed_at), matched the query and were not withdrawn, in order of "
    "time. The English of each is that of the time of writing, before finished_at. "
    "listed = messages + withdrawn since the snapshot + gone (re-read since the snapshot)."
)
FINDINGS_RULE: Final = (
    "One row for each finding that the filters match, as it was at the time of writing, before finished_at. The set "
    "are the messages with such a finding at the snapshot (fixed_at) that were not withdrawn, in order of time. "
    "listed = messages + withdrawn since the snapshot + gone (re-read since the snapshot)."
)
# The same for whoever reads a report.
PRINTED_RULE: Final = (
    "It holds the messages of the snapshot in order of time. Its end counts the messages that were withdrawn or "
    "re-read while it was written."
)
MASK_RULE: Final = (
    "Secrets are masked: each character of one is U+2022. The SHA-256 beside a record is of its exact bytes."
)
EXACT_RULE: Final = (
    "Secrets are included: every record is exact to the character. "
    "The SHA-256 beside it is of its bytes as they were received."
)
CELL_RULE: Final = (
    "A cell that a spreadsheet would read as a formula begins with an apostrophe, which is not part of the record."
)
CHANGED_RULE: Final = (
    "Each record is compared with its entry in the ledger when it is written. One that is not what was entered is "
    "marked as changed and has no SHA-256. A record may have no entry for some seconds after it came."
)
# Of the messages with a secret.
MAX_COUNTED: Final = 10_000
OPENED_RULE: Final = "Sealed messages stay sealed: text decrypted by the keyring is in no export."

_FILTERED: Final = (Export.Subject.CONVERSATIONS, Export.Subject.FINDINGS)


def say_secrets(count: int | None) -> str:
    """How many messages of an export hold a secret that a rule found, in words; None is a number that is not known."""
    if count is None:
        return "not counted"
    if not count:
        return "none found"
    if count > MAX_COUNTED:
        return f"found in {MAX_COUNTED:,}+ messages"
    return f"found in {count:,} {'message' if count == 1 else 'messages'}"


def make_manifest(export: Export) -> dict[str, Any]:
    """The manifest as JSON types; what is not known yet is None."""
    return {
        "export": str(export.pk),
        "workspace": export.workspace.slug,
        "asked_by": export.asked_by,
        "asked_at": write_instant(export.asked_at),
        "subject": export.subject,
        "query": export.query if export.subject == Export.Subject.QUERY else None,
        "conversation": str(export.conversation_id) if export.conversation_id else None,
        "sample": str(export.sample_id) if export.sample_id else None,
        "filters": export.filters if export.subject in _FILTERED else None,
        "time_zone": export.zone,
        "form": export.form,
        "schema_version": SCHEMA_VERSION,
        "record_version": SHAPE_VERSION,
        "decoder_version": export.decoder or None,
        "is_masked": export.is_masked,
        "include_secrets": not export.is_masked,
        "state": export.state,
        "fixed_at": write_instant(export.fixed_at) if export.fixed_at else None,
        "finished_at": write_instant(export.finished_at) if export.finished_at else None,
        "expires_at": write_instant(export.expires_at) if export.expires_at else None,
        "listed": export.listed if not export.is_under_way else None,
        "messages": export.messages,
        "rows": export.rows,
        "masked_messages": export.masked,
        "changed_messages": export.changed,
        "withdrawn": export.withdrawn,
        "gone": export.gone,
        "file_name": export.file_name,
        "size_bytes": export.size_bytes,
        "unpacked_bytes": export.unpacked_bytes,
        "sha256": bytes(export.sha256).hex() if export.sha256 else None,
        "about": {
            "set": FINDINGS_RULE if export.subject == Export.Subject.FINDINGS else SET_RULE,
            "secrets": MASK_RULE if export.is_masked else EXACT_RULE,
            **({"cells": CELL_RULE} if export.form == Export.Form.CSV else {}),
            "sealed": OPENED_RULE,
            "changed": CHANGED_RULE,
        },
    }


# Longer than this no page waits for a number.
PATIENCE_MS: Final = 2500


def list_exports(
    *, workspace: Workspace, before: tuple[datetime, uuid.UUID] | None = None, limit: int = 50
) -> list[Export]:
    """The exports of a workspace, newest first, by keyset.

    Args:
        before: (asked_at, id) of the last one seen.
    """
    rows = Export.objects.filter(workspace=workspace)
    return take_page(rows, "asked_at", before, limit)


def find_export(*, workspace: Workspace, export_id: uuid.UUID) -> Export | None:
    """The export of that id in this workspace, or None."""
    return Export.objects.select_related("workspace").filter(workspace=workspace, pk=export_id).first()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an export is. `total` is None while the messages are not counted.

    `failure` says why it could not be made, or why the work on it was given up (`is_stuck`).
    """

    done: int
    total: int | None
    failure: str
    is_stuck: bool


def find_progresses(*, exports: Sequence[Export]) -> dict[uuid.UUID, Progress]:
    """How far each of these exports is; one whose work was given up after three attempts says so."""
    subjects = [export.pk for export in exports if export.is_under_way]
    dead = Job.objects.filter(kind=Job.Kind.EXPORT, subject__in=subjects, state=Job.State.DEAD)
    failures = dict(dead.values_list("subject", "failure")) if subjects else {}
    return {
        each.pk: Progress(
            done=each.messages + each.withdrawn + each.gone,
            total=each.listed,
            failure=failures.get(each.pk, "") if each.is_under_way else each.failure,
            is_stuck=each.pk in failures,
        )
        for each in exports
    }


def count_secrets(export: Export) -> int | None:
    """How many messages of an export hold a secret that a rule found, whatever was made of the finding; one statement.

    Args:
        export: what is meant; it need not be stored.

    Returns:
        The number, at most `MAX_COUNTED` and one; None where counting takes too long.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    found = Finding.objects.filter(workspace=export.workspace, rule="token-in-clear", holds=True)
    is_one = Exists(found.filter(record=OuterRef("record"), part=OuterRef("part")))
    rows = find_messages(export, export.workspace).filter(is_one).order_by().values_list("pk")
    counted = fetch(rows[: MAX_COUNTED + 1], PATIENCE_MS)
    return None if counted is None else len(counted)
