"""Findings of the messages that a query of the search language means."""

from __future__ import annotations

from typing import Final

from django.db.models.expressions import RawSQL

from inspector.accounts.models import Workspace
from inspector.search.conversations import mean

_OF_FINDING: Final = (
    '"threads_message"."record_id" = "audit_finding"."record_id" AND "threads_message"."part" = "audit_finding"."part"'
)


def mean_findings(*, workspace: Workspace, query: str, may_see_secrets: bool) -> RawSQL | None:
    """The condition on findings that a query is: those of the shown messages that it finds; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    return mean(_OF_FINDING, workspace=workspace, query=query, may_see_secrets=may_see_secrets)
