"""The registry: every dialect there is, found by its module, and the ranking of a text by all of them.

Every module or package beside this one whose name has no leading underscore is a dialect's home and must end
with `DIALECT = Dialect(...)` under its own name. A missing or repeated declaration stops the start.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ._dialect import Dialect
from ._errors import RegistryError, UnknownDialectError
from ._json import is_json
from ._record import Candidate


@cache
def all_dialects() -> tuple[Dialect, ...]:
    """Every dialect, in the order of its rank and slug; prose is last."""
    package = __name__.rpartition(".")[0]
    home = import_module(package)
    found: dict[str, Dialect] = {}
    for module in iter_modules(home.__path__):
        if module.name.startswith("_"):
            continue
        dialect = getattr(import_module(f"{package}.{module.name}"), "DIALECT", None)
        if not isinstance(dialect, Dialect):
            raise RegistryError(f"{package}.{module.name} declares no DIALECT")
        if dialect.slug != module.name:
            raise RegistryError(f"{package}.{module.name} calls itself {dialect.slug!r}")
        found[dialect.slug] = dialect
    return tuple(sorted(found.values(), key=lambda dialect: (dialect.rank, dialect.slug)))


@cache
def _by_slug() -> dict[str, Dialect]:
    return {dialect.slug: dialect for dialect in all_dialects()}


def get_dialect(slug: str) -> Dialect:
    """The dialect of that slug.

    Raises:
        UnknownDialectError: if there is none.
    """
    try:
        return _by_slug()[slug]
    except KeyError:
        raise UnknownDialectError(slug, tuple(_by_slug())) from None


def title_of(slug: str) -> str:
    """A dialect as people write it; the slug itself where there is no such dialect, or none any more."""
    found = _by_slug().get(slug)
    return found.title if found else slug


# A dialect that is this sure has seen its own frame from end to end; none other can claim the same text.
_CERTAIN = 0.98


def detect(wire: str) -> tuple[Candidate, ...]:
    """The dialects a text may be in, likeliest first. Never raises.

    A score is from 0 to 1; ties go to the lower rank. Where one is certain no further dialect is asked, else prose is
    among them: any text is at least text. Of JSON only the dialects are asked whose messages are objects of it.
    """
    found: list[Candidate] = []
    is_object: bool | None = None
    for dialect in all_dialects():
        if not dialect.has_objects:
            is_object = is_json(wire) if is_object is None else is_object
            if is_object:
                continue
        candidate = dialect.sniff(wire)
        if candidate is not None:
            found.append(candidate)
            if candidate.score >= _CERTAIN:
                break
    return tuple(sorted(found, key=lambda candidate: -candidate.score))
