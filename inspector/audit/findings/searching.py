"""Findings of the messages that a query of the search language means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import models
from django.db.models.expressions import RawSQL

from inspector.accounts.models import Workspace
from inspector.search.selectors import LONGEST_MASKED_BYTES, narrow, shows
from inspector.threads.models import Message
from inspector.threads.summaries import has_record, load_records

from .tables import Finding

PATIENCE_MS: Final = 2500
_IS_MEANT: Final = '("audit_finding"."record_id", "audit_finding"."part") IN ({})'


@dataclass(frozen=True, slots=True)
class Meant:
    """What a query means: the condition on findings, and what of it has to stand in unmasked characters."""

    condition: RawSQL
    needles: Sequence[str]


def mean(*, workspace: Workspace, query: str, may_see_secrets: bool) -> Meant | None:
    """What a query means of findings: those of the shown messages that it finds; None for an empty query.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    if not query.strip():
        return None
    rows, needles = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=may_see_secrets)
    # The query is written for the table of messages by its own name, which it keeps only in a statement of its own.
    statement, values = rows.order_by().values("record_id", "part").query.sql_with_params()
    condition: Any = RawSQL(_IS_MEANT.format(statement), values, output_field=models.BooleanField())  # noqa: S611
    return Meant(condition, needles)


def keep_unmasked(
    found: Sequence[Finding], messages: Mapping[UUID, Message], needles: Sequence[str]
) -> Sequence[Finding]:
    """Of these findings those whose message holds what was asked for in characters that are not masked.

    Args:
        found: what the query found.
        messages: theirs, by the finding's id.
        needles: of `Meant`; without any, all are kept.
    """
    if not needles:
        return found
    load_records(messages=list(messages.values()), most_bytes=LONGEST_MASKED_BYTES)
    return [finding for finding in found if _shows(messages.get(finding.pk), needles)]


def _shows(message: Message | None, needles: Sequence[str]) -> bool:
    return message is not None and has_record(message) and shows(message, needles)
