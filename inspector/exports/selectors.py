"""Reads of exports: those of a workspace, one of them, and how far it is."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Exists, OuterRef

from inspector.accounts.models import Workspace
from inspector.audit.models.findings import Finding
from inspector.database import take_page
from inspector.intake.models import Job
from inspector.search.selectors import fetch

from .listing import find_messages
from .manifests import MAX_COUNTED
from .models import Export

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
    return {export.pk: _measure(export, failures) for export in exports}


def _measure(export: Export, failures: Mapping[uuid.UUID, str]) -> Progress:
    done = export.messages + export.withdrawn + export.gone
    if not export.is_under_way:
        return Progress(done, export.listed, export.failure, is_stuck=False)
    return Progress(done, export.listed, failures.get(export.pk, ""), export.pk in failures)


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
