"""`manage.py migrate`, as the owner of the tables where there is one beside the application's role.

With DATABASE_OWNER_URL the whole command works as that role. When it is done, the application's role has its rights,
and is made if there is none of its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands.migrate import Command as Migrate
from django.db import DEFAULT_DB_ALIAS, connection, transaction

from inspector.trail.guard import ask_guard
from inspector.trail.roles import RolesError, admit_application


class Command(Migrate):
    """Django's command, as the owner of the tables."""

    def execute(self, *args: Any, **options: Any) -> None:
        """Migrate, and admit the application's role where another one owns the tables.

        Already the checks before the command ask the database, when the application's role may not exist yet.
        """
        if not settings.DATABASE_OWNER or options["database"] != DEFAULT_DB_ALIAS:
            super().execute(*args, **options)
            return
        role, password = connection.settings_dict["USER"], connection.settings_dict["PASSWORD"]
        with as_owner(settings.DATABASE_OWNER):
            super().execute(*args, **options)
            if options["plan"] or options["check_unapplied"]:
                return
            try:
                with transaction.atomic():
                    is_new = admit_application(role=role, password=password)
            except RolesError as error:
                raise CommandError(str(error)) from error
        # As the application again: this also shows that both addresses lead to the same tables.
        try:
            guard = ask_guard()
        except LookupError as error:
            raise CommandError("DATABASE_OWNER_URL and DATABASE_URL lead to different databases") from error
        finally:
            connection.close()
        made = f"The role {role} was made. " if is_new else ""
        (self.stdout if guard.is_held else self.stderr).write(f"{made}{guard.sentence}")


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
