"""What an overview says of findings and of sign-offs, in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Value

from inspector.accounts.models import Workspace

from .findings.listing import list_holding
from .models import Finding, ReviewItem
from .reviews.standings import select_stale

# In the place of a severity, which is no negative number.
_STALE: Final = -1


@dataclass(frozen=True, slots=True)
class Overview:
    """How many findings stand open, by severity, the gravest first; how many sign-offs are known to be stale."""

    findings: dict[int, int]
    stale: int


def count_standing(*, workspace: Workspace) -> Overview:
    """Both counts of a workspace."""
    rows = list_holding(workspace=workspace).filter(state=Finding.State.OPEN).order_by()
    by_severity = rows.values("severity").annotate(number=Count("pk")).values_list("severity", "number")
    stale = select_stale(ReviewItem.objects.filter(workspace=workspace)).order_by()
    counted = stale.annotate(kind=Value(_STALE)).values("kind").annotate(number=Count("pk"))
    found = dict(by_severity.union(counted.values_list("kind", "number"), all=True))
    return Overview({key: found[key] for key in sorted(found, reverse=True) if key != _STALE}, found.get(_STALE, 0))
