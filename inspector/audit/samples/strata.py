"""Strata in people's words. What is stored, and what a seed draws by, are the names that the database has."""

from __future__ import annotations

from typing import Final

from dialects import all_dialects

from .tables import AuditSample

_AND: Final = " and "
_TITLES: Final = {dialect.slug: dialect.title for dialect in all_dialects()}


def say_stratum(sample: AuditSample, name: str) -> str:
    """A stratum of a sample as people call it: dialects by their titles, everything else as it is."""
    if sample.stratum != AuditSample.Stratum.DIALECT:
        return name
    return _AND.join(_TITLES.get(slug, slug) for slug in name.split(_AND))
