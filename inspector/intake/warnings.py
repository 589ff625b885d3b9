"""What the sender of a delivery should be told of its records: all counted by code, the first hundred kept, and the
first of each code.

`Delivery.warnings` holds it as {"counts": {code: number}, "first": [[index, line, code, reason, hint], …]}, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final

from .identity import Draft

MAX_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class WarningRow:
    """A warning of one record: its place in the delivery from zero, and the line that it begins on from one."""

    index: int
    line: int
    code: str
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class Warned:
    """The warnings of a delivery: the first of them, and how many there are, by code."""

    first: tuple[WarningRow, ...]
    counts: Mapping[str, int]

    @property
    def kinds(self) -> tuple[WarningRow, ...]:
        """Of those alike in their words the first."""
        found: dict[tuple[str, str], WarningRow] = {}
        for row in self.first:
            found.setdefault((row.reason, row.hint), row)
        return tuple(found.values())

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


def add_warnings(held: dict[str, Any], drafts: Iterable[Draft]) -> dict[str, Any]:
    """What is held of a delivery's warnings, with those of these records; what was given is left as it is."""
    rows = [
        WarningRow(draft.index, draft.framed.line, warning.code, warning.reason, warning.hint)
        for draft in drafts
        for warning in draft.warnings
    ]
    if not rows:
        return held
    first = list(held.get("first", ()))
    counts = Counter(held.get("counts", {}))
    for row in rows:
        if len(first) < MAX_KEPT or row.code not in counts:
            first.append(astuple(row))
        counts[row.code] += 1
    return {"counts": dict(counts), "first": first}


def list_warnings(held: Mapping[str, Any]) -> Warned:
    """The warnings that `add_warnings` put together."""
    return Warned(tuple(WarningRow(*row) for row in held.get("first", ())), held.get("counts", {}))
