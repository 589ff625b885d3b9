"""What only a superuser of the server may give, so that row-level security can hold requests. It knows no Django."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from psycopg import sql

# The functions of the operators by which words and terms are looked up in an index. Beside a policy PostgreSQL uses an
# index only for an operator that says nothing of the rows that the policy hides; these say true or false and no more.
LEAKPROOF: Final = (
    "ts_match_vq(tsvector, tsquery)",
    "arraycontains(anyarray, anyarray)",
    "arrayoverlap(anyarray, anyarray)",
)
MAX_NAME_BYTES: Final = 63


def name_within(role: str) -> str:
    """The role as which the application's role answers requests within a workspace."""
    suffix = "_within"
    return role.encode()[: MAX_NAME_BYTES - len(suffix)].decode(errors="ignore") + suffix


def spell_powers(*, role: str, owner: str) -> Iterator[sql.SQL | sql.Composed]:
    """The statements, which may be said any number of times, in the database itself.

    Args:
        role: the application's, which is there.
        owner: of the tables.
    """
    within = name_within(role)
    yield sql.SQL(
        "DO $$ BEGIN CREATE ROLE {} NOLOGIN NOSUPERUSER NOBYPASSRLS; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    ).format(sql.Identifier(within))
    yield sql.SQL("GRANT {} TO {}").format(sql.Identifier(within), sql.Identifier(role))
    if role != owner:
        # Workers and commands work across workspaces, and COPY is refused to whom a policy holds.
        yield sql.SQL("ALTER ROLE {} BYPASSRLS").format(sql.Identifier(role))
    for function in LEAKPROOF:
        yield sql.SQL(f"ALTER FUNCTION pg_catalog.{function} LEAKPROOF")
