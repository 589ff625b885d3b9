"""Loosening: of a query that finds nothing, the conditions without which it would find something."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final

from django.db.models import IntegerField, Value

from inspector.accounts.models import Workspace

from .parts import Part, cut_parts, take_away
from .selectors import fetch, narrow

PATIENCE_MS: Final = 700
# Of a longer query the first so many parts are left away, each by itself.
MAX_PARTS: Final = 8


def find_droppable(
    *, workspace: Workspace, query: str, zone: tzinfo | None = None, may_see_secrets: bool = False
) -> list[Part]:
    """The parts of a query without which, each by itself, it finds something; one statement.

    None where that takes longer than a reader would wait.

    Args:
        query: in the search language.
        zone: whose days the days of the query are; UTC where none is given.
        may_see_secrets: as in `selectors.search`.

    Raises:
        QueryError: for a query that cannot be understood.
    """
    parts = cut_parts(query)[:MAX_PARTS]
    if len(parts) < 2:
        return []
    sides = []
    for number, part in enumerate(parts):
        rows = narrow(workspace=workspace, query=take_away(query, part), zone=zone, may_see_secrets=may_see_secrets)
        sides.append(rows.order_by().values_list(Value(number, output_field=IntegerField()))[:1])
    found = fetch(sides[0].union(*sides[1:], all=True), PATIENCE_MS)
    return [parts[number] for (number,) in sorted(found or ())]
