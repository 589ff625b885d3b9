"""Strata in people's words. What is stored, and what a seed draws by, are the names that the database has."""

from __future__ import annotations

from typing import Final

from dialects import title_of

from .tables import AuditSample

# Between the names that a stratum is made of.
AND: Final = " and "


def say_stratum(sample: AuditSample, name: str) -> str:
    """A stratum of a sample as people call it: dialects by their titles, everything else as it is."""
    if sample.stratum != AuditSample.Stratum.DIALECT:
        return name
    return AND.join(map(title_of, name.split(AND)))
