"""`manage.py restore`: bring a backup back into an empty database, and prove that all of it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from inspector.backups import (
    BackupError,
    as_owner_of_tables,
    get_server_version,
    put_back_secrets,
    read_secrets,
    restore_backup,
    warn_of_keys,
)
from inspector.embedded import EmbeddedError
from inspector.embedded.binaries import find_program
from inspector.ledger.notes import NoteError, read_note


class Command(BaseCommand):
    """Restore a backup."""

    help = "Restore a backup into an empty database and compare every table with what was counted when it was made."
    # The tables that the checks would ask are not there yet.
    requires_system_checks = []  # noqa: RUF012  # as Django declares it

    def add_arguments(self, parser: CommandParser) -> None:
        """Take where from."""
        parser.add_argument("folder", type=Path, help="the folder of the backup")
        parser.add_argument(
            "--secrets",
            type=Path,
            metavar="FILE",
            help="put these secrets, copied with the backup, into the state folder",
        )

        parser.add_argument(
            "--checkpoint",
            type=Path,
            action="append",
            default=[],
            metavar="FILE",
            help="a checkpoint that was kept elsewhere: a backup that is older than it is refused",
        )
        parser.add_argument("--accept-older", action="store_true", help="restore it nonetheless")

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore it, and say what is there."""
        try:
            # The application's role may not be there yet: migrating makes it.
            with as_owner_of_tables():
                version, _ = get_server_version()
            pg_restore = find_program("pg_restore", version)
            secrets = read_secrets(options["secrets"]) if options["secrets"] else {}
            manifest = restore_backup(
                options["folder"].absolute(),
                pg_restore=pg_restore,
                say=self.stdout.write,
                kept=[read_note(path.read_text(encoding="utf-8")) for path in options["checkpoint"]],
                is_older_fine=options["accept_older"],
            )
            put_back_secrets(secrets)
        except (BackupError, EmbeddedError) as error:
            raise CommandError(str(error)) from error
        except (OSError, NoteError, UnicodeDecodeError) as error:
            raise CommandError(f"The checkpoint cannot be used: {error}.") from error
        except OperationalError as error:
            raise CommandError(f"The database cannot be reached: {' '.join(str(error).split())}") from error
        self.stdout.write(f"The backup of {manifest.made_at} is restored.")
        if manifest.outside:
            self.stderr.write(f"{manifest.outside}, and not in the backup: keep a copy of it too.")
        warning = warn_of_keys(manifest)
        if warning:
            self.stderr.write(warning)
