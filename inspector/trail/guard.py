"""Whom the trail is held against: found out by asking the database about the role that asks, never by a setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db import connection

from .row_security import across

# The trigger, and the function that it has to call.
TRIGGERS: Final[Mapping[str, str]] = {
    "deed_numbered": "number_deed",
    "deed_kept": "keep_deeds",
    "deeds_kept": "keep_deeds",
}

_ASK: Final = """
SELECT current_user,
       pg_get_userbyid(deed.relowner),
       me.rolsuper,
       pg_has_role(current_user, deed.relowner, 'MEMBER'),
       has_table_privilege(current_user, deed.oid, 'UPDATE')
           OR has_any_column_privilege(current_user, deed.oid, 'UPDATE'),
       has_table_privilege(current_user, deed.oid, 'DELETE'),
       has_table_privilege(current_user, deed.oid, 'TRUNCATE'),
       has_table_privilege(current_user, deed.oid, 'TRIGGER'),
       EXISTS (SELECT FROM pg_trigger t JOIN pg_proc f ON f.oid = t.tgfoid
               WHERE t.tgrelid = deed.oid AND NOT t.tgisinternal AND pg_has_role(current_user, f.proowner, 'MEMBER')),
       pg_has_role(current_user, space.nspowner, 'MEMBER'),
       me.rolcreaterole,
       EXISTS (SELECT FROM pg_roles r
               WHERE r.rolname IN ('pg_write_server_files', 'pg_execute_server_program')
                 AND pg_has_role(current_user, r.oid, 'MEMBER')),
       (SELECT coalesce(array_agg(t.tgname || ' ' || f.proname), '{}') FROM pg_trigger t
        JOIN pg_proc f ON f.oid = t.tgfoid AND f.pronamespace = deed.relnamespace
        WHERE t.tgrelid = deed.oid AND t.tgenabled = 'A')
FROM pg_class deed
JOIN pg_namespace space ON space.oid = deed.relnamespace
JOIN pg_roles me ON me.rolname = current_user
WHERE deed.oid = to_regclass('trail_deed')
"""

# In the order of the columns that are truths.
_WAYS: Final = (
    "it is a superuser and bypasses all permissions",
    "it owns the table of the audit log, or belongs to its owner, and could switch the triggers off",
    "it may change rows",
    "it may delete rows",
    "it may empty the table",
    "it may add triggers to the table",
    "it owns a function of the triggers and could replace it",
    "it owns the schema and could drop the table",
    "it may create roles, and on older servers join any",
    "it may write the server's files or run programs there",
)


@dataclass(frozen=True, slots=True)
class Guard:
    """What holds the trail.

    `role` is the one that asked, `owner` the one that owns the table. `missing` are the triggers that do not stand as
    they were made. `ways` are those that the role has around them; none where another role holds the trail.
    """

    role: str
    owner: str
    missing: tuple[str, ...]
    ways: tuple[str, ...]

    @property
    def is_held(self) -> bool:
        """Whether the trail is held against the role that asked."""
        return not self.missing and not self.ways

    @property
    def sentence(self) -> str:
        """Which of the two is in force, in plain words."""
        if self.missing:
            return (
                "The triggers of the audit log are not as they were created: entries could be changed. "
                f"Missing, switched off or altered: {', '.join(self.missing)}."
            )
        if self.ways:
            return (
                "The triggers refuse every change, but the application could switch them off. "
                f"Its database role, {self.role}: {'; '.join(self.ways)}."
            )
        return (
            f"Another role, {self.owner}, owns the tables. The application's role, {self.role}, may only "
            "add entries and read them."
        )


@across()
def ask_guard() -> Guard:
    """What holds the trail against the role that this process works as. One statement.

    Raises:
        LookupError: where there is no such table, as before the first migration.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ASK)
        row = cursor.fetchone()
    if row is None:
        raise LookupError("there is no table of the trail yet: run manage.py migrate first")
    role, owner, *truths, standing = row
    return Guard(
        role=role,
        owner=owner,
        missing=tuple(name for name, function in TRIGGERS.items() if f"{name} {function}" not in standing),
        ways=tuple(way for way, is_true in zip(_WAYS, truths, strict=True) if is_true),
    )
