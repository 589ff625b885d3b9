"""What the inspector answered, summed up over the batches of one call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Receipt:
    """Counts of records: received = stored + duplicate + quarantined.

    Attributes:
        deliveries: the ids under which the inspector keeps what was sent, one for each batch.
        problems: what was quarantined, as the inspector tells it: `index` in its delivery, `line`, `reason`, `raw`.
        warnings: what is likely not as it was meant: `index`, `line`, `code`, `reason` and, what to change, `hint`; of
            each delivery the first.
        told_in_seconds: about how long until the last of it is told in English, by what waits at the inspector.
    """

    received: int = 0
    stored: int = 0
    duplicate: int = 0
    quarantined: int = 0
    deliveries: tuple[str, ...] = ()
    problems: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[Mapping[str, Any], ...] = ()
    told_in_seconds: int = 0

    def __add__(self, other: Receipt) -> Receipt:
        return Receipt(
            received=self.received + other.received,
            stored=self.stored + other.stored,
            duplicate=self.duplicate + other.duplicate,
            quarantined=self.quarantined + other.quarantined,
            deliveries=self.deliveries + other.deliveries,
            problems=self.problems + other.problems,
            warnings=self.warnings + other.warnings,
            told_in_seconds=max(self.told_in_seconds, other.told_in_seconds),
        )


def read_receipt(body: bytes) -> Receipt | None:
    """The receipt in an answer, or None where it holds none: then something else than the inspector answered."""
    try:
        said = json.loads(body)
        return Receipt(
            received=int(said["received"]),
            stored=int(said["stored"]),
            duplicate=int(said["duplicate"]),
            quarantined=int(said["quarantined"]),
            deliveries=(str(said["delivery"]),),
            problems=tuple(said.get("problems", ())),
            warnings=tuple(dict(warning) for warning in said.get("warnings", ())),
            told_in_seconds=int(said.get("told_in_seconds", 0)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
