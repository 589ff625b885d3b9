"""The registry: every dialect there is, found by its module, and the ranking of a text by all of them.

Every module or package beside this one whose name has no leading underscore is a dialect's home and must end
with `DIALECT = Dialect(...)` under its own name. Another package brings dialects by entry points of the group
`dialects`: each is named by its slug and names the object. A missing or repeated declaration stops the start.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
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
        if not module.name.startswith("_"):
            declared = getattr(import_module(f"{package}.{module.name}"), "DIALECT", None)
            found[module.name] = _check(declared, module.name, f"{package}.{module.name}")
    for point in list_installed("dialects"):
        if point.name in found:
            raise RegistryError(f"{point.value} calls itself {point.name!r}, which there is already")
        found[point.name] = _check(point.load(), point.name, point.value)
    return tuple(sorted(found.values(), key=lambda dialect: (dialect.rank, dialect.slug)))


def _check(declared: object, name: str, home: str) -> Dialect:
    if not isinstance(declared, Dialect):
        raise RegistryError(f"{home} declares no DIALECT")
    if declared.slug != name:
        raise RegistryError(f"{home} calls itself {declared.slug!r}")
    return declared


@cache
def list_installed(group: str) -> tuple[EntryPoint, ...]:
    """The entry points that other packages have under a group, in the order of their names."""
    return tuple(sorted(entry_points(group=group), key=lambda point: point.name))


def digest_installed(group: str) -> str:
    """What tells the entry points that are installed under a group, with the versions of their packages, from others:
    a full stop and eight characters, or nothing where none is installed."""
    said = [
        f"{point.name} {point.dist.name if point.dist else ''} {point.dist.version if point.dist else ''}"
        for point in list_installed(group)
    ]
    return f".{hashlib.sha256(chr(10).join(said).encode()).hexdigest()[:8]}" if said else ""


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
