"""The schema's version beside the code's: code does not start on a database that is newer, or older than its baseline.

The first migration of each app is a baseline: it replaces all that were there before, whose files are gone. A database
that has all of these has it; one that has only some cannot be brought there by this code. What is newer is told by the
numbers of migrations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import OperationalError, connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder

from .starting import RefusedStartError

# The last commit that has the files of what the baselines replace.
BEFORE_BASELINES: Final = "cd4d35fc"


class FinishTables(Operation):
    """The end of a baseline: the constraints and indexes that Django puts off are made now.

    Where nothing is put off, Django records the migration in the transaction that makes the tables. Else a kill in
    between would leave the record of what it replaces half written, and the database would read as an older one.
    """

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models are as they were."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Run what was put off."""
        put_off, schema_editor.deferred_sql = schema_editor.deferred_sql, []
        for statement in put_off:
            schema_editor.execute(statement, None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Nothing: the tables go with what they have."""


class AddIndexOnline(AddIndexConcurrently):
    """`AddIndexConcurrently`, also of a table in partitions, of which PostgreSQL builds none beside writers: each of
    the partitions gets one of its own, beside them, and these are then joined."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Build it; what is left of an index that was not finished goes first."""
        model = to_state.apps.get_model(app_label, self.model_name)
        table, name = model._meta.db_table, self.index.name
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = to_regclass(%s) ORDER BY inhrelid",
                [table],
            )
            parts = [part for (part,) in cursor.fetchall()]
        if not parts:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        self._ensure_not_in_transaction(schema_editor)
        before, after = str(self.index.create_sql(model, schema_editor)).split(f' "{name}" ON "{table}" ')
        schema_editor.execute(f'DROP INDEX IF EXISTS "{name}"')
        schema_editor.execute(f'{before} "{name}" ON ONLY "{table}" {after}')
        for number, part in enumerate(parts):
            own, space = f"{name}_{number}", part.rpartition(".")[0]
            schema_editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS {space}."{own}"')
            schema_editor.execute(f'{before} CONCURRENTLY "{own}" ON {part} {after}')
            schema_editor.execute(f'ALTER INDEX "{name}" ATTACH PARTITION {space}."{own}"')


class RemoveIndexOnline(RemoveIndexConcurrently):
    """`RemoveIndexConcurrently`, also of a table in partitions, which has to be locked for that moment."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Remove it."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", [f'"{self.name}"'])
            kind = cursor.fetchone()
        if kind == ("I",):
            schema_editor.execute(f'DROP INDEX "{self.name}"')
        else:
            super().database_forwards(app_label, schema_editor, from_state, to_state)


def fill_workspace(table: str, *, pk: str, parent: str, reference: str) -> None:
    """Give each row of a table the workspace of what it refers to, piece by piece beside those who write, and keep rows
    without one out from then on. It may be done again; call it outside a transaction."""
    with connection.cursor() as cursor:
        last: list[Any] = []
        while True:
            after = f"WHERE {pk} > %s" if last else ""
            cursor.execute(
                f"WITH piece AS (SELECT {pk} FROM {table} {after} ORDER BY {pk} LIMIT 5000),"  # noqa: S608  # our names
                f" filled AS (UPDATE {table} AS row SET workspace_id = whole.workspace_id"
                f" FROM piece, {parent} AS whole WHERE row.{pk} = piece.{pk} AND whole.id = row.{reference}"
                f" AND row.workspace_id IS NULL) SELECT {pk} FROM piece ORDER BY {pk} DESC LIMIT 1",
                last,
            )
            found = cursor.fetchone()
            if found is None:
                break
            last = [*found]
        # The check is looked at beside writers, and then spares the column's own look under an exclusive lock.
        for statement in (
            "DROP CONSTRAINT IF EXISTS has_workspace",
            "ADD CONSTRAINT has_workspace CHECK (workspace_id IS NOT NULL) NOT VALID",
            "VALIDATE CONSTRAINT has_workspace",
            "ALTER workspace_id SET NOT NULL",
            "DROP CONSTRAINT has_workspace",
        ):
            cursor.execute(f"ALTER TABLE {table} {statement}")


def list_applied() -> list[str]:
    """The migrations that the database has, as in "trail.0001_initial", sorted."""
    return sorted(".".join(key) for key in MigrationRecorder(connection).applied_migrations())


def count_behind() -> int:
    """How many migrations this code has and the database has not; where there is a fault, this cannot be asked."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def find_fault(applied: Iterable[str]) -> str:
    """Why this code can neither work with a database of these migrations nor migrate it, and what to do; or ""."""
    had = {(app, name) for app, _, name in (each.partition(".") for each in applied)}
    apps = {app for app, _ in had}
    newest: dict[str, int] = {}
    missing: set[tuple[str, str]] = set()
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        newest[app] = max(newest.get(app, 0), _read_number(name))
        if app in apps and migration.__module__.startswith("inspector."):
            missing |= {*migration.replaces} - had
    newer = [f"{app}.{name}" for app, name in sorted(had) if app in newest and _read_number(name) > newest[app]]
    if newer:
        return (
            f"The schema is newer than this code ({', '.join(newer)}): start the newer version, or restore a backup "
            "from before the upgrade."
        )
    if missing:
        return (
            f"The schema is older than this code can migrate ({len(missing)} migrations are missing, such as "
            f"{'.'.join(max(missing))}). Migrate or restore it with the code of commit {BEFORE_BASELINES} first, then "
            "go on with this one. Nothing was changed."
        )
    return ""


def refuse_other_schema() -> None:
    """Refuse to start on a database that this code cannot migrate; one that is away is no reason.

    Raises:
        RefusedStartError: with why, and what to do.
    """
    try:
        fault = find_fault(list_applied())
    except OperationalError:
        return
    if fault:
        raise RefusedStartError(fault)


def _read_number(name: str) -> int:
    """The number of a migration; of one that replaces others the number of the last of them."""
    return MigrationAutodetector.parse_number(name) or 0
