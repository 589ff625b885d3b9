"""`manage.py migrate`: alone, patient beside running workers, and as the owner of the tables where there is one.

Of several that start at once one migrates, and the others wait and find nothing to do. A statement waits some seconds
for its lock and then makes room, so that no worker stands behind it for long; what was interrupted is tried again.

With DATABASE_OWNER_URL the whole command works as that role. When it is done, the application's role has its rights,
and is made if there is none of its name; and policies hold requests to their workspace, where they can.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Final, TypeVar

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands.migrate import Command as Migrate
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, transaction

from inspector.schema import count_behind, refuse_other_schema
from inspector.trail.guard import ask_guard
from inspector.trail.partitions import is_under_way, name_schema
from inspector.trail.roles import RolesError, admit_application, as_owner
from inspector.trail.row_security import raise_wall

T = TypeVar("T")

# Of the advisory lock; any number that nothing else here takes.
LOCK: Final = 7_300_411
LOCK_TIMEOUT: Final = "4s"
POLL_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 600.0
_ADDRESS: Final = ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")
# A lock that was not had in time, and a deadlock that PostgreSQL ended.
PASSING: Final = frozenset({"55P03", "40P01"})


class Command(Migrate):
    """Django's command, alone, and as the owner of the tables."""

    def execute(self, *args: Any, **options: Any) -> None:
        """Migrate, and admit the application's role where another one owns the tables.

        Already the checks before the command ask the database, when the application's role may not exist yet.
        """
        if options["database"] != DEFAULT_DB_ALIAS:
            super().execute(*args, **options)
            return
        role, password = connection.settings_dict["USER"], connection.settings_dict["PASSWORD"]
        owner = settings.DATABASE_OWNER
        # Never through a pooler: one session holds the lock, and another sets how long statements wait.
        direct = settings.DATABASES.get("direct")
        address = owner or (direct and {name: direct[name] for name in _ADDRESS})
        is_new = False
        with as_owner(address) if address else nullcontext(), alone():
            refuse_other_schema()
            if is_under_way() and count_behind():
                raise CommandError(
                    "The large tables are being partitioned: end that by manage.py partition_tables, or take it back "
                    f"by DROP SCHEMA {name_schema()} CASCADE. Then migrate."
                )
            insist(partial(super().execute, *args, **options), self.stderr.write)
            if options["plan"] or options["check_unapplied"]:
                return
            if owner:
                try:
                    with transaction.atomic():
                        is_new = admit_application(role=role, password=password)
                except RolesError as error:
                    raise CommandError(str(error)) from error
            insist(partial(raise_wall, role), self.stderr.write)
        if owner:
            self._tell_guard(f"The role {role} was made. " if is_new else "")

    def _tell_guard(self, made: str) -> None:
        """As the application again: this also shows that both addresses lead to the same tables."""
        try:
            guard = ask_guard()
        except LookupError as error:
            raise CommandError("DATABASE_OWNER_URL and DATABASE_URL lead to different databases") from error
        finally:
            connection.close()
        (self.stdout if guard.is_held else self.stderr).write(f"{made}{guard.sentence}")


def insist(work: Callable[[], T], say: Callable[[str], object], lock_timeout: str = "") -> T:
    """Do it again and again while others hold what a statement needs; what comes of it.

    Args:
        work: what to do.
        say: hears why it is tried again.
        lock_timeout: how long a statement waits for a lock, `LOCK_TIMEOUT` if not said.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    pause = 1.0
    while True:
        try:
            with impatient(lock_timeout or LOCK_TIMEOUT):
                return work()
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) not in PASSING or time.monotonic() > until:
                raise
        say(f"Others hold what this needs: it is tried again in {pause:.0f} s.")
        time.sleep(pause)
        pause = min(pause * 2, 30.0)
        drop_unfinished_indexes()


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock that lets one process migrate, on a connection of its own.

    It is asked for again and again and not waited for: a statement that waits has a snapshot, and building an index
    concurrently waits for all that have one.
    """
    own = connection.copy()
    try:
        with own.cursor() as cursor:
            while True:
                cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
                if cursor.fetchone()[0]:
                    break
                time.sleep(POLL_SECONDS)
        yield
    finally:
        own.close()


@contextmanager
def impatient(lock_timeout: str) -> Iterator[None]:
    """Let statements wait for a lock for some seconds only."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, FALSE)", [lock_timeout])
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', '0', FALSE)")


def drop_unfinished_indexes() -> None:
    """Remove what is left of indexes whose building was interrupted: their migration builds them anew."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT format('%I.%I', space.nspname, name.relname) FROM pg_index index "
            "JOIN pg_class name ON name.oid = index.indexrelid "
            "JOIN pg_namespace space ON space.oid = name.relnamespace "
            "WHERE NOT index.indisvalid AND space.nspname = current_schema()"
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX {name}")  # the database quoted it
