"""`manage.py doctor`: what is wrong with this installation, and what to do, in sentences.

Each check yields its complaints. What needs the database is looked at only where it answers. A start that is refused
(`inspector/starting.py`) says its sentence before any of this.
"""

from __future__ import annotations

import os
import shutil
import stat
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection, connections
from django.utils import timezone

from inspector.database import REPLICA, find_snapshot, on_replica
from inspector.embedded.binaries import OLDEST_MAJOR
from inspector.intake import object_store
from inspector.intake.liveness import reach_broker
from inspector.intake.selectors import ask_server, list_measures
from inspector.keyring.encryption import KeyringError, load_keks
from inspector.schema import count_behind, find_fault, list_applied
from inspector.trail.guard import ask_guard
from inspector.trail.partitions import is_under_way, name_schema
from inspector.trail.row_security import tell_wall

MIN_FREE_BYTES: Final = 1024**3
MAX_DRIFT: Final = timedelta(seconds=5)
MAX_LAG_SECONDS: Final = 120.0
# Of the sessions that the database takes.
MAX_SESSIONS_SHARE: Final = 0.9


class Command(BaseCommand):
    """Look at everything, and end with 1 where something is wrong."""

    help = "Say what is wrong with this installation and what to do. Ends with 1 where anything is."
    # A database that is away is one of the answers.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whether triggers alone are enough for the audit log."""
        parser.add_argument("--held", action="store_true", help="fail unless another role owns the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        """Look and tell."""
        complaints = [*check_state(), *check_broker()]
        try:
            connection.ensure_connection()
        except DatabaseError as error:
            reason = " ".join(str(error).split())
            complaints.append(f"The database does not answer: {reason}. Start it, or correct DATABASE_URL.")
        else:
            behind = [*check_schema()]
            complaints += behind or [*check_trail(options["held"]), *check_partitions(), *check_store(), *check_clock()]
            complaints += () if behind else (*check_work(), *check_sessions(), *check_replica())
            if not behind:
                self.stdout.write(f"{ask_guard().sentence}\n{tell_wall()}")
        for complaint in complaints:
            self.stdout.write(f"WRONG: {complaint}")
        if complaints:
            raise CommandError(f"{len(complaints)} things are wrong." if complaints[1:] else "One thing is wrong.")
        store = "object store, " if object_store.ALIAS in settings.STORAGES else ""
        self.stdout.write(f"Nothing is wrong: state folder, broker, database, schema, {store}clock, work and sessions.")


def check_state() -> Iterator[str]:
    """The state folder is this user's alone, its secrets can be read, and its disk has room."""
    folder = settings.STATE_DIR
    if folder.is_dir():
        for path in (folder, *(folder / name for name in ("secret_key", "keyring_key", "database_url"))):
            if not path.exists():
                continue
            found = path.stat()
            if found.st_uid != os.geteuid():
                yield f"{path} belongs to user {found.st_uid}, and this is user {os.geteuid()}: chown it."
            # Through a folder others may go: the account of the embedded PostgreSQL does, where root runs it.
            elif stat.S_IMODE(found.st_mode) & (0o066 if path == folder else 0o077):
                yield f"{path} can be read by others: chmod go-rwx {path}."
        free = shutil.disk_usage(folder).free
        if free < MIN_FREE_BYTES:
            yield f"The disk of {folder} has {free // 1024**2} MB left: make room, or uploads and the database stop."
    if settings.KEYRING_KEY or settings.KEYRING_KEY_FILE.exists():
        try:
            load_keks()
        except (KeyringError, OSError, ValueError) as error:
            yield f"The keyring's key cannot be used: {error}"


def check_broker() -> Iterator[str]:
    """The broker takes a connection, where one is named."""
    if not settings.CELERY_BROKER_URL:
        return
    try:
        reach_broker()
    except Exception as error:  # noqa: BLE001  # each transport has its own
        yield (
            f"The broker does not answer ({type(error).__name__}): start it, or correct CELERY_BROKER_URL. Nothing is "
            "lost meanwhile, and nothing is read."
        )


def check_schema() -> Iterator[str]:
    """The server is new enough, and its schema is exactly this code's."""
    version = connection.connection.info.server_version // 10_000
    if version < OLDEST_MAJOR:
        yield f"The database is PostgreSQL {version}: {OLDEST_MAJOR} or newer is needed."
        return
    try:
        fault = find_fault(list_applied())
        behind = 0 if fault else count_behind()
    except DatabaseError:
        yield "The database's list of migrations cannot be read by this role: run manage.py migrate."
        return
    if fault:
        yield fault
    if behind:
        yield f"{behind} migrations are not applied: run manage.py migrate."


def check_trail(must_be_held: bool) -> Iterator[str]:
    """The triggers of the audit log stand; with `must_be_held` another role owns it."""
    guard = ask_guard()
    if guard.missing or (must_be_held and not guard.is_held):
        yield guard.sentence


def check_partitions() -> Iterator[str]:
    """The large tables are whole or in partitions, and not on the way."""
    if is_under_way():
        yield (
            "Partitioning the large tables has begun and not ended, and each of their rows is written twice: run "
            f"manage.py partition_tables again, or take it back by DROP SCHEMA {name_schema()} CASCADE."
        )


def check_store() -> Iterator[str]:
    """The object store takes, gives and deletes, where one is named; and one is where rows name objects."""
    if object_store.ALIAS in settings.STORAGES:
        try:
            object_store.try_out()
        except object_store.StoreError as error:
            yield f"{error} It says: {error.__cause__}. Start it, or correct OBJECT_STORE and its key."
    elif named := object_store.tell_named():
        yield f"{named}: set OBJECT_STORE again as it was."


def check_clock() -> Iterator[str]:
    """This machine's clock is the database's, and neither was ahead while something was written."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT clock_timestamp(), (SELECT max(received_at) FROM intake_delivery),"
            " (SELECT max(due_at) FROM intake_job WHERE state = 'queued' AND lease_token IS NULL)"
        )
        at, received, due = cursor.fetchone()
    drift = timezone.now() - at
    if abs(drift) > MAX_DRIFT:
        yield f"This machine's clock is {_tell_drift(drift)} of the database's: let both keep time by NTP."
    yield from _check_moment(received, at, "a delivery was received", "its times stay as they were written.")
    # An alert waits for an hour at most, and what is due by time for a day.
    late = at + timedelta(days=2)
    yield from _check_moment(due, late, "a job is due", "docs/operations.md says how to have it done now.")


def _check_moment(moment: datetime | None, latest: datetime, what: str, then: str) -> Iterator[str]:
    if moment and moment > latest + MAX_DRIFT:
        yield f"The clock was ahead: {what} at {moment:%Y-%m-%d %H:%M} UTC, which is still to come; {then}"


def _tell_drift(drift: timedelta) -> str:
    return f"{abs(drift).total_seconds():.0f} s {'ahead' if drift > timedelta() else 'behind'}"


def check_work() -> Iterator[str]:
    """What is due is worked on, and nothing was given up."""
    samples = {measure.name: measure.samples for measure in list_measures()}
    lag = max(sample.value for sample in samples["inspector_oldest_due_seconds"])
    if lag > MAX_LAG_SECONDS:
        yield f"Work has been due for {lag:.0f} s: start a worker, or more of them where some run."
    dead = sum(sample.value for sample in samples["inspector_jobs"] if sample.labels["state"] == "dead")
    dead += samples["inspector_dead_letters"][0].value
    if dead:
        yield f"{dead:.0f} jobs and records were given up: the page Dead letters says why, and tries them again."


def check_replica() -> Iterator[str]:
    """A replica, where one is named, follows this database and has what it has."""
    if REPLICA in connections.settings and not on_replica(find_snapshot)():
        yield "REPLICA_URL names no replica that is read from, as the line above says: the primary answers everything."


def check_sessions() -> Iterator[str]:
    """The database has sessions left."""
    used, most, _ = ask_server()
    if used > MAX_SESSIONS_SHARE * most:
        yield f"{used:.0f} of {most:.0f} sessions of the database are in use: raise max_connections, or pool them."
