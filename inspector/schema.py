"""The schema's version beside the code's: code that is older than its database does not start.

Migrations are compared by their numbers: of those that were squashed only numbers are left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from .starting import RefusedStartError


def list_applied() -> list[str]:
    """The migrations that the database has, as in "trail.0001_initial", sorted."""
    return sorted(".".join(key) for key in MigrationRecorder(connection).applied_migrations())


def list_newer(applied: Iterable[str]) -> list[str]:
    """Those of these migrations that are newer than any that this version of the code has for their app."""
    newest: dict[str, int] = {}
    for app, name in MigrationLoader(None).disk_migrations:
        newest[app] = max(newest.get(app, 0), _read_number(name))
    pairs = [(each, *each.split(".", 1)) for each in applied]
    return [each for each, app, name in pairs if app in newest and _read_number(name) > newest[app]]


def refuse_newer_schema() -> None:
    """Refuse to start on a database that a newer version of the inspector has migrated; one that is away is no reason.

    Raises:
        RefusedStartError: with the migrations that this version does not know.
    """
    try:
        newer = list_newer(list_applied())
    except OperationalError:
        return
    finally:
        connection.close()
    if newer:
        raise RefusedStartError(
            f"A newer version of the inspector has migrated this database ({', '.join(newer)}). Start that version, or "
            "restore a backup that was made before the upgrade."
        )


def _read_number(name: str) -> int:
    match = re.match(r"\d+", name)
    return int(match[0]) if match else 0
