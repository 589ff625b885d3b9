"""Two roles for one database: the owner of the tables, who migrates, and the application, who works with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import connection
from psycopg import sql

# Tables that are only added to. Apps above this one have some of them, which are named here as the database knows them.
ONLY_ADDED_TO: Final = (
    "trail_deed",
    *(f"ledger_ledger{name}" for name in ("entry", "hash", "checkpoint", "cosignature")),
    "keyring_keyevent",
    "retention_retentionrule",
    "retention_tombstone",
    "audit_findingact",
    "audit_commentturn",
    "audit_rulechange",
    "audit_rubric",
)
# Rows of evidence of which some columns move, and no row ever goes: the columns that the application may change.
ONLY_CHANGED_IN: Final = {
    "intake_record": (
        *("wire", "envelope", "facts", "is_from_file"),
        *("order_time", "order_basis", "order_source", "order_index"),
    ),
    "intake_withdrawal": ("taken_back_by_id", "taken_back_at", "taken_back_reason"),
    "audit_review": ("withdrawn_at",),
    "retention_legalhold": ("lifted_by_id", "lifted_at"),
    "retention_erasure": ("finished_at",),
    "ledger_ledgerkey": ("sealed",),
    "keyring_periodkey": ("kek_id", "data_key", "destroyed_at"),
}
# What the application's role may do. Everything of these is taken back first, so that an earlier grant is gone too.
_RIGHTS: Final = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "REVOKE CREATE ON SCHEMA {schema} FROM {role}, PUBLIC",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    *(
        statement
        for table in (*ONLY_ADDED_TO, *ONLY_CHANGED_IN)
        for statement in (
            f"REVOKE ALL ON {table} FROM {{role}}, PUBLIC",
            f"GRANT SELECT, INSERT ON {table} TO {{role}}",
        )
    ),
    # The one way to clear evidence: it leaves what a tombstone says, and heeds holds.
    "GRANT EXECUTE ON FUNCTION erase_buried(uuid[]) TO {role}",
    *(f"GRANT UPDATE ({', '.join(columns)}) ON {table} TO {{role}}" for table, columns in ONLY_CHANGED_IN.items()),
)
# Statistics for the planner, before autovacuum comes by; older servers have no such right, and it is done without.
_UPKEEP: Final = "GRANT MAINTAIN ON ALL TABLES IN SCHEMA {schema} TO {role}"
_FIRST_WITH_UPKEEP: Final = 170_000


class RolesError(Exception):
    """The two roles cannot be told apart, or the application's cannot be made."""


def admit_application(*, role: str, password: str) -> bool:
    """As the owner, give the application's role its rights; whether the role had to be made.

    Args:
        role: its name.
        password: what it signs in with, should it have to be made; an existing role keeps its own.

    Raises:
        RolesError: where the owner is asked to admit itself, or a role that the owner may not make.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, current_schema(), to_regrole(quote_ident(%s)) IS NOT NULL", [role])
        owner, schema, is_there = cursor.fetchone()
        if role in ("", owner):
            raise RolesError("DATABASE_OWNER_URL and DATABASE_URL name the same role: the application needs its own")
        if not is_there:
            _make_role(cursor, role, password)
    give_rights(role=role, schema=schema)
    return not is_there


def give_rights(*, role: str, schema: str) -> None:
    """As the owner, give a role what the application may do with the tables, and no more."""
    with connection.cursor() as cursor:
        rights = (*_RIGHTS, _UPKEEP) if connection.connection.info.server_version >= _FIRST_WITH_UPKEEP else _RIGHTS
        for right in rights:
            cursor.execute(sql.SQL(right).format(schema=sql.Identifier(schema), role=sql.Identifier(role)))


def _make_role(cursor: Any, role: str, password: str) -> None:
    cursor.execute("SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user")
    if not cursor.fetchone()[0]:
        raise RolesError(
            f"there is no role {role}, and the owner may not make one: have it made with CREATE ROLE … LOGIN PASSWORD …"
        )
    # The server is given what the password is checked by, so that the password itself is in none of its logs.
    proof = connection.connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    cursor.execute(
        sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}").format(
            sql.Identifier(role), sql.Literal(proof)
        )
    )


@contextmanager
def as_owner(address: dict[str, Any]) -> Iterator[None]:
    """Work as the owner of the tables, and as the application again when that is done."""
    connection.close()
    kept = dict(connection.settings_dict)
    connection.settings_dict.update(address)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(kept)
