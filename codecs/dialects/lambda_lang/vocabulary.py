"""The vocabulary of each release: what an atom means there, in which domain, and what it meant elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from .atoms import DOMAINS, NAMES, ONLY_IN_0_2, TITLES, VERBS, WORDS

RELEASES = ("0.1", "0.7", "1.0", "1.1", "1.2", "1.3", "1.5", "1.5.1", "1.6", "1.7", "1.8", "1.8.1", "2.0")
NEWEST = "2.0"
SPOKEN = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", *RELEASES[2:])

History = tuple[tuple[str, str | None], ...]


def order_release(release: str) -> tuple[int, ...]:
    """A release as numbers to compare; parts that are no numbers, or absurdly long, count as none."""
    return tuple(int(part) for part in release.split(".")[:4] if part.isdecimal() and len(part) < 9)


@cache
def histories() -> dict[str, dict[str, History]]:
    """Domain ("" is the core) to atom to its history: (from release, meaning or None)."""
    tables = {"": VERBS + WORDS} | DOMAINS
    return {domain: dict(_read_table(table)) for domain, table in tables.items()}


def _read_table(table: str) -> Iterator[tuple[str, History]]:
    for entry in table.replace("\n", ";").split(";"):
        atom, *cells = entry.split() or [""]
        if not atom:
            continue
        yield atom, tuple(_read_cell(cell) for cell in cells)


def _read_cell(cell: str) -> tuple[str, str | None]:
    release, _, meaning = cell.partition(":")
    return release, None if meaning == "-" else meaning.replace("_", " ")


class Vocabulary:
    """The atoms of one release.

    Attributes:
        release: the release whose tables are used.
        core: atom to meanings, the usual one first.
        domains: domain to atom to meanings.
        names: what a domain may be called on the wire, to the domain.
    """

    def __init__(self, release: str) -> None:
        self.release = release
        at = order_release(release)
        tables = {domain: self._table(rows, at) for domain, rows in histories().items()}
        self.core = tables.pop("")
        self.domains = tables
        self.names = {
            name: domain
            for name, domain, first, last in NAMES
            if order_release(first) <= at and not (last and order_release(last) <= at)
        }

    @staticmethod
    def _table(rows: dict[str, History], at: tuple[int, ...]) -> dict[str, tuple[str, ...]]:
        table: dict[str, tuple[str, ...]] = {}
        for atom, history in rows.items():
            meaning = _meaning_at(history, at)
            if meaning:
                table[atom] = tuple(meaning.split("/"))
        return table

    def find(self, atom: str, domain: str | None = None) -> tuple[str, ...]:
        """The meanings of an exact atom in a domain, or in the core; none if it is not there."""
        if domain is None:
            return self.core.get(atom, ())
        return self.domains.get(domain, {}).get(atom, ())


def _meaning_at(history: History, at: tuple[int, ...]) -> str | None:
    # Below v0.7 the v0.1 table holds, and v0.7's where v0.1 has no entry.
    if at < (0, 7):
        return history[0][1] if history[0][0] in ("0.1", "0.7") else None
    held = [meaning for release, meaning in history if order_release(release) <= at]
    return held[-1] if held else None


@cache
def load_vocabulary(release: str) -> Vocabulary:
    """The vocabulary that a declared release selects: the last table at or before it."""
    at = order_release(release)
    if at < (0, 7):
        return Vocabulary("0.1")
    return Vocabulary(next(known for known in reversed(RELEASES) if order_release(known) <= at))


def is_newer(release: str) -> bool:
    """Whether a release is newer than every table here."""
    return order_release(release)[:2] > order_release(NEWEST)


@cache
def other_meanings(atom: str, domain: str, release: str) -> tuple[str, ...]:
    """What an atom meant in other releases, in words: `“space” in v0.7`; empty where it never changed.

    Args:
        atom: the atom.
        domain: its domain, or "" for the core.
        release: the release of the table in use.
    """
    history = histories().get(domain, {}).get(atom, ())
    now = _meaning_at(history, order_release(release)) if history else None
    said = []
    for index, (first, meaning) in enumerate(history):
        if meaning is None or meaning == now:
            continue
        later = history[index + 1][0] if index + 1 < len(history) else None
        since = "" if index == 0 else f" from v{first}"
        until = f" before v{later}" if later else ""
        said.append(f"“{meaning}”{since}{until or ('' if since else f' in v{first}')}")
    if not domain and atom in ONLY_IN_0_2:
        said.append(f"“{ONLY_IN_0_2[atom]}” in v0.2")
    return tuple(said)


@cache
def other_domains(name: str, atom: str, release: str) -> tuple[str, ...]:
    """Which domains a name stood for in other releases, and what an atom meant there.

    Args:
        name: what stands before the colon.
        atom: the atom behind it, or "".
        release: the release of the table in use.

    Returns:
        `the emotion domain before v2.0, with “cf” as “confusion”`.
    """
    now = load_vocabulary(release).names.get(name)
    said = []
    for known, domain, first, last in NAMES:
        if known != name or domain == now:
            continue
        when = f"before v{last}" if last else f"from v{first}"
        held = [meaning for _, meaning in histories().get(domain, {}).get(atom, ()) if meaning]
        meant = f", with “{atom}” as “{held[0]}”" if held else ""
        said.append(f"the {title_domain(domain)} domain {when}{meant}")
    return tuple(said)


@cache
def list_meanings(atom: str, domain: str) -> tuple[tuple[str, ...], ...]:
    """Every set of meanings that an atom had in a domain ("" is the core), the oldest first."""
    history = histories().get(domain, {}).get(atom, ())
    return tuple(tuple(meaning.split("/")) for _, meaning in history if meaning)


def title_domain(domain: str) -> str:
    """A domain's name for people."""
    return TITLES.get(domain, domain)
