"""The large tables in partitions by the hash of the workspace: made beside those who write, then put in their place.

The new tables have the old names in a schema of their own (`public_partitions`). While they are empty they get every
key with the workspace at its end, also the references between them. A trigger of the old table writes to the new one
what is written to it, and what was there before is copied piece by piece. When both have been found equal, one
transaction drops the old tables and moves the new ones to their place. The partitions stay where they are: whoever may
use a table may use them through it. Dropping that schema before that moment takes all of it back.
"""

from __future__ import annotations

import re
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction

from .roles import give_rights
from .row_security import raise_wall

# They grow with the messages; each stands behind those that it refers to.
LARGE: Final = (
    *("intake_record", "intake_sighting", "threads_conversation", "threads_message", "threads_task"),
    *("threads_block", "threads_fact", "threads_read", "audit_finding", "ledger_ledgerentry"),
)
# Rows of one transaction of copying: those who would delete one of them wait so long.
PIECE: Final = 2_000
# A transaction that names no workspace locks each partition and its indexes: so many locks for each, at most.
LOCKS: Final = 32
_COLUMNS: Final = """
SELECT array_agg(quote_ident(attname) ORDER BY attnum) FROM pg_attribute
 WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""
_KEYS: Final = """
SELECT quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint
 WHERE conrelid = %s::regclass AND contype IN ('p', 'u', 'f') ORDER BY contype = 'f', conname
"""
_INDEXES: Final = """
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %s::regclass AND NOT EXISTS (
    SELECT FROM pg_constraint WHERE conindid = indexrelid AND conrelid = indrelid) ORDER BY indexrelid
"""
_TRIGGERS: Final = """
SELECT pg_get_triggerdef(oid), quote_ident(tgname), tgenabled = 'A' FROM pg_trigger
 WHERE tgrelid = %s::regclass AND NOT tgisinternal
"""
_REFERENCES: Final = """
SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid), convalidated FROM pg_constraint
 WHERE contype = 'f' AND conparentid = 0 AND confrelid = ANY(%s::regclass[]) AND conrelid <> ALL(%s::regclass[])
 ORDER BY 1, 2
"""
_MIRROR: Final = """
CREATE FUNCTION {parts}.mirror_{table}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM {parts}.{table} WHERE ({key}) = ({old});
    ELSE
        INSERT INTO {parts}.{table} ({columns}) VALUES ({new})
            ON CONFLICT ({key}) DO UPDATE SET ({columns}) = ROW ({columns_of_new});
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER mirrored AFTER INSERT OR UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION {parts}.mirror_{table}();
"""


def ask(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def name_schema() -> str:
    """The schema of the partitions, quoted."""
    return str(ask("SELECT quote_ident(current_schema() || '_partitions')")[0][0])


def count_partitions(table: str) -> int:
    """In how many partitions a table is, 0 where it is whole or not there; its name may be of that schema."""
    return int(ask("SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(%s)", table)[0][0])


def is_under_way() -> bool:
    """Whether tables were begun to be partitioned, and have not been put in their place."""
    return bool(ask("SELECT to_regnamespace(%s) IS NOT NULL", name_schema())[0][0]) and not count_partitions(LARGE[0])


def widen(definition: str) -> str:
    """A key with the workspace at its end; a reference to a table that stays whole is as it was."""
    referred = re.search(r" REFERENCES (\w+)", definition)
    if referred and referred[1] not in LARGE:
        return definition
    return re.sub(r"\(([^()]*)\)", _append, definition, count=2 if referred else 1)


def _append(columns: re.Match[str]) -> str:
    return columns[0] if "workspace_id" in columns[1].split(", ") else f"({columns[1]}, workspace_id)"


def _list_columns(definition: str) -> list[str]:
    found = re.search(r"\(([^()]*)\)", definition)
    return found[1].split(", ") if found else []


@transaction.atomic
def make_table(table: str, count: int) -> None:
    """Make a table anew, empty, in so many partitions, and let what is written to it be written there too."""
    parts, schema = name_schema(), ask("SELECT quote_ident(current_schema())")[0][0]
    ask(f"CREATE SCHEMA IF NOT EXISTS {parts}")
    new = f"{parts}.{table}"
    [(options,)] = ask("SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = %s::regclass", table)
    [(columns,)] = ask(_COLUMNS, table)
    keys, triggers = ask(_KEYS, table), ask(_TRIGGERS, table)
    indexes = [definition for (definition,) in ask(_INDEXES, table)]
    ask(f"CREATE TABLE {new} (LIKE {table} INCLUDING ALL EXCLUDING INDEXES) PARTITION BY HASH (workspace_id)")
    for number in range(count):
        values = f"FOR VALUES WITH (MODULUS {count}, REMAINDER {number})" + (f" WITH ({options})" if options else "")
        ask(f"CREATE TABLE {new}_{number} PARTITION OF {new} {values}")
    # A reference is to the new table, where there is one.
    ask(f"SET LOCAL search_path = {parts}, {schema}")
    for name, definition in keys:
        ask(f"ALTER TABLE {new} ADD CONSTRAINT {name} {widen(definition)}")
    ask(f"SET LOCAL search_path = {schema}")
    for definition in indexes:
        made = re.sub(r" ON \S+ USING ", f" ON {new} USING ", definition, count=1)
        ask(widen(made) if made.startswith("CREATE UNIQUE") else made)
    for definition, name, is_always in triggers:
        ask(re.sub(r" ON \S+ FOR EACH ", f" ON {new} FOR EACH ", definition, count=1))
        if is_always:
            ask(f"ALTER TABLE {new} ENABLE ALWAYS TRIGGER {name}")
    key = _list_columns(widen(_find_key(table)))
    named = {
        "old": [f"OLD.{each}" for each in key],
        "new": [f"NEW.{each}" for each in columns],
        "columns_of_new": [f"EXCLUDED.{each}" for each in columns],
    }
    lists = {name: ", ".join(each) for name, each in {**named, "key": key, "columns": columns}.items()}
    ask(_MIRROR.format(parts=parts, table=table, **lists))


def _find_key(table: str) -> str:
    return str(ask("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass"
                   " AND contype = 'p'", table)[0][0])  # fmt: skip


def copy_piece(table: str, after: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copy the rows that come after one by its key, as far as they are not there; the key of the last, () at the end.

    Until this is committed they cannot be deleted; what changes them waits for them in the new table.
    """
    key, [(columns,)] = _list_columns(_find_key(table)), ask(_COLUMNS, table)
    new, keys, names = f"{name_schema()}.{table}", ", ".join(key), ", ".join(columns)
    since = f"WHERE ({keys}) > ({', '.join(['%s'] * len(key))})" if after else ""
    found = ask(
        f"WITH piece AS MATERIALIZED (SELECT * FROM {table} {since} ORDER BY {keys} LIMIT {PIECE} FOR KEY SHARE),"  # noqa: S608  # our names
        f" put AS (INSERT INTO {new} ({names}) SELECT {names} FROM piece"
        f" ON CONFLICT ({', '.join(_list_columns(widen(f'({keys})')))}) DO NOTHING)"
        f" SELECT {keys} FROM piece ORDER BY {', '.join(f'{each} DESC' for each in key)} LIMIT 1",
        *after,
    )
    return found[0] if found else ()


@transaction.atomic
def find_differing() -> list[str]:
    """The tables whose rows are not those of the new ones, at one moment."""
    ask("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    spaces = ("", f"{name_schema()}.")
    digest = "SELECT (count(*), sum(hashtextextended(row::text, 0)))::text FROM {}{} AS row"
    return [table for table in LARGE if len({ask(digest.format(space, table))[0] for space in spaces}) > 1]


@transaction.atomic
def put_in_place(role: str) -> None:
    """Drop the old tables and move the new ones to their place, with the rights of the application's role."""
    parts, schema = name_schema(), ask("SELECT quote_ident(current_schema()), current_schema()")[0]
    references = ask(_REFERENCES, [*LARGE], [*LARGE])
    ask(f"LOCK TABLE {', '.join(dict.fromkeys([*LARGE, *(each[0] for each in references)]))} IN ACCESS EXCLUSIVE MODE")
    for table, name, *_ in references:
        ask(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    for table in LARGE:
        for (column,) in ask(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attidentity <> ''", table
        ):
            numbers = [f"pg_get_serial_sequence('{each}', '{column}')" for each in (f"{parts}.{table}", table)]
            ask(f"SELECT setval({numbers[0]}, nextval({numbers[1]}))")
    ask(f"DROP TABLE {', '.join(LARGE)}")
    for table in LARGE:
        ask(f"DROP FUNCTION {parts}.mirror_{table}")
        ask(f"ALTER TABLE {parts}.{table} SET SCHEMA {schema[0]}")
    for table, name, definition, _ in references:
        ask(f"ALTER TABLE {table} ADD CONSTRAINT {name} {widen(definition)} NOT VALID")
    if settings.DATABASE_OWNER:
        give_rights(role=role, schema=schema[1])
    raise_wall(role)


def validate_references() -> None:
    """Look whether the references to these tables hold that have not been looked at, beside those who write."""
    for table, name, _, is_valid in ask(_REFERENCES, [*LARGE], [*LARGE]):
        if not is_valid:
            ask(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")
