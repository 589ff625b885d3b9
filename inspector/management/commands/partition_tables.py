"""`manage.py partition_tables`: the large tables in partitions by workspace, beside those who read and write.

Where it breaks off the same command goes on: it makes what is not made, and passes over the rows that are there.
"""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import nullcontext
from functools import partial
from itertools import count as count_from
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from inspector.schema import count_behind
from inspector.trail import partitions
from inspector.trail.partitions import LARGE, LOCKS, PIECE, ask, count_partitions, name_schema
from inspector.trail.roles import as_owner

from .migrate import alone, insist

# Less than PostgreSQL waits before it looks for a deadlock: it is this command that makes room.
LOCK_TIMEOUT = "500ms"
TOLD_EVERY = 50


class Command(BaseCommand):
    """Make, copy, compare, put in place."""

    help = "Put the large tables into partitions by the hash of the workspace, beside those who write."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """In how many."""
        parser.add_argument("--partitions", type=int, default=16, help="of each table, 2 to 256 (default 16)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what is left of it."""
        role, count = connection.settings_dict["USER"], options["partitions"]
        address = settings.DATABASE_OWNER or settings.DATABASES.get("direct")
        with as_owner(address) if address else nullcontext(), alone():
            ask("SELECT set_config('statement_timeout', '0', FALSE)")
            if not count_partitions(LARGE[0]):
                refuse(count)
                for table in LARGE:
                    self._fill(table, count)
                self.stdout.write("Comparing every row")
                if differing := partitions.find_differing():
                    raise CommandError(f"Rows of {', '.join(differing)} differ: nothing was put in place.")
                insist(partial(partitions.put_in_place, role), self.stderr.write, LOCK_TIMEOUT)
            self.stdout.write("Checking references to the partitioned tables, and gathering statistics")
            partitions.validate_references()
            ask(f"ANALYZE {', '.join(LARGE)}")
            self.stdout.write(f"{len(LARGE)} tables are in {count_partitions(LARGE[0])} partitions each.")

    def _fill(self, table: str, count: int) -> None:
        if not count_partitions(f"{name_schema()}.{table}"):
            insist(partial(partitions.make_table, table, count), self.stderr.write, LOCK_TIMEOUT)
        last: tuple[Any, ...] = ()
        for pieces in count_from(1):
            last = insist(partial(partitions.copy_piece, table, last), self.stderr.write, LOCK_TIMEOUT)
            if not last:
                break
            if pieces % TOLD_EVERY == 0:
                self.stdout.write(f"{table}: {pieces * PIECE:,} rows")
        self.stdout.write(f"{table} is copied")


def refuse(count: int) -> None:
    """Refuse what could not come to a good end.

    Raises:
        CommandError: with why, and what to do.
    """
    if not 2 <= count <= 256:
        raise CommandError("--partitions takes 2 to 256.")
    if count_behind():
        raise CommandError("Migrations are not applied: run manage.py migrate first.")
    begun = count_partitions(f"{name_schema()}.{LARGE[0]}")
    if begun not in (0, count):
        raise CommandError(
            f"It was begun with {begun} partitions: say --partitions {begun}, or take it back by "
            f"DROP SCHEMA {name_schema()} CASCADE and begin anew."
        )
    [(locks, may_create)] = ask(
        "SELECT current_setting('max_locks_per_transaction')::int, has_database_privilege(current_database(), 'CREATE')"
    )
    if locks < LOCKS * count:
        raise CommandError(
            f"max_locks_per_transaction is {locks}, and {count} partitions need {LOCKS * count}: set it, and restart "
            "PostgreSQL."
        )
    if not may_create:
        raise CommandError("The owner of the tables may make no schema: GRANT CREATE ON DATABASE … TO it.")
