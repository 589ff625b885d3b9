"""Findings of the messages that a query of the search language means."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models.expressions import RawSQL

from inspector.accounts.models import Workspace
from inspector.search.selectors import narrow

PATIENCE_MS: Final = 2500
_IS_MEANT: Final = '("audit_finding"."record_id", "audit_finding"."part") IN ({})'


def mean(*, workspace: Workspace, query: str, may_see_secrets: bool) -> RawSQL | None:
    """The condition on findings that a query is: those of the shown messages that it finds; None for an empty one.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    if not query.strip():
        return None
    rows = narrow(workspace=workspace, query=query, zone=None, may_see_secrets=may_see_secrets)
    # The query is written for the table of messages by its own name, which it keeps only in a statement of its own.
    statement, values = rows.order_by().values("record_id", "part").query.sql_with_params()
    return RawSQL(_IS_MEANT.format(statement), values, output_field=models.BooleanField())  # noqa: S611
